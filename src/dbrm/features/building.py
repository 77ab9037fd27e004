"""The functions that build features; what the operators of the search call."""

from collections.abc import Sequence

from dbrm.errors import InvalidSettingError
from dbrm.features.base import Feature
from dbrm.features.nodes import Covariate, Modification, Product
from dbrm.features.projection import Projection, Standardized
from dbrm.features.transforms import Transform

__all__ = ["covariate", "modify", "multiply", "project", "shortened"]


def covariate(name: str) -> Covariate:
    """Return the feature that is one column of the table."""
    return Covariate(name)


def modify(transform: Transform, child: Feature, knot: float | None = None) -> Feature:
    """Return g(F); for an idempotent g applied to a g(...), that itself.

    A transform of the standardised argument, ``sin[z]``, gives ``sin((F - c)/s)``.

    Parameters
    ----------
    transform
        The function g.
    child
        The feature F.
    knot
        The value of a knot at a training quantile, once known.
    """
    if transform.base is not None:
        return Modification(transform.base, Standardized(child))
    return Modification(transform, child, knot)


def multiply(*features: Feature) -> Feature:
    """Return the product of the features; of a single one, that itself."""
    if not features:
        msg = "multiply needs at least one feature; got none."
        raise InvalidSettingError(msg)
    return features[0] if len(features) == 1 else Product(features)


def project(
    transform: Transform,
    children: Sequence[Feature],
    weights: Sequence[float],
    bias: float | None = None,
    *,
    weights_in_identity: bool = False,
    knot: float | None = None,
) -> Projection:
    """Return g(bias + weights . children); see `Projection`.

    Of a transform of the standardised argument, ``sin[z]``, the plain one: a sum has weights
    of its own. The result's ``children`` are sorted and its ``weights`` follow them.
    """
    return Projection(
        transform.base or transform,
        children,
        weights,
        bias,
        fixed_identity=weights_in_identity,
        knot=knot,
    )


def shortened(feature: Feature) -> list[Feature]:
    """Return all features with one function or one factor less.

    Projections stay whole. Knots at quantiles of what has changed are to be fitted again.
    """
    found: list[Feature] = []
    if isinstance(feature, Modification):
        (child,) = feature.children
        transform = feature.transform
        if isinstance(child, Standardized):
            (child,), transform = child.children, transform.standardized()
        found = [child, *(modify(transform, shorter) for shorter in shortened(child))]
    elif isinstance(feature, Product):
        for i, factor in enumerate(feature.children):
            others = (*feature.children[:i], *feature.children[i + 1 :])
            found.append(multiply(*others))
            found.extend(multiply(shorter, *others) for shorter in shortened(factor))
    return list(dict.fromkeys(found))
