"""The functions that build features, called by the operators of the search."""

from collections.abc import Sequence

from dbrm.errors import InvalidSettingError
from dbrm.features.base import Feature
from dbrm.features.nodes import Covariate, Modification, Product
from dbrm.features.parametric import at_zero
from dbrm.features.projection import Projection, Standardized
from dbrm.features.transforms import Transform

__all__ = ["covariate", "modify", "multiply", "project", "shortened"]


def covariate(name: str) -> Covariate:
    """Return the feature that is one column of the table."""
    return Covariate(name)


def modify(transform: Transform, child: Feature, knot: float | None = None) -> Feature:
    """Return g(F); if g is idempotent and F is a g(...), return F.

    A transform of the standardised argument, ``sin[z]``, gives ``sin((F - c)/s)``; one with a
    free knot gives ``hinge(F, 3.2)``.

    Parameters
    ----------
    transform
        The function g.
    child
        The feature F.
    knot
        The value of a free knot, or of one at a training quantile once it is known.
    """
    if transform.base is not None:
        return Modification(transform.base, Standardized(child))
    return Modification(transform, child, knot)


def multiply(*features: Feature) -> Feature:
    """Return the product of the features; a single one is returned as it is."""
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

    A transform of the standardised argument, ``sin[z]``, is replaced by the plain one, because
    the weights already scale the sum; one with a free knot by that with the knot zero, because
    the bias already shifts it. ``children`` of the result are sorted, and ``weights``
    follow that order.
    """
    return Projection(
        at_zero(transform) if transform.free_knot else transform.base or transform,
        children,
        weights,
        bias,
        weights_in_identity=weights_in_identity,
        knot=knot,
    )


def shortened(feature: Feature) -> list[Feature]:
    """Return all features with one function or one factor less.

    Projections are not shortened, nor is what is inside a function with a free knot. Knots at
    quantiles of a changed argument must be fitted again.
    """
    found: list[Feature] = []
    if isinstance(feature, Modification):
        (child,) = feature.children
        transform = feature.transform
        if isinstance(child, Standardized):
            (child,), transform = child.children, transform.standardized()
        found = [child]
        if not transform.free_knot:
            found += [modify(transform, shorter) for shorter in shortened(child)]
    elif isinstance(feature, Product):
        for i, factor in enumerate(feature.children):
            others = (*feature.children[:i], *feature.children[i + 1 :])
            found.append(multiply(*others))
            found.extend(multiply(shorter, *others) for shorter in shortened(factor))
    return list(dict.fromkeys(found))
