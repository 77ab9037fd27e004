"""Other spellings of laws: an exponential of a sum with logarithms is a product."""

from dbrm.evolution.sweep.powers import Powers
from dbrm.features import Feature, Modification, Product, Projection, multiply, project

__all__ = ["without_logarithms"]


def without_logarithms(feature: Feature, powers: Powers) -> Feature | None:
    r"""A law with :math:`f^k e^{\dots}` in the place of :math:`e^{k \log|f| + \dots}`.

    For multiples :math:`k` of one half. They are equal where :math:`f` is positive, and only the
    first goes on beyond a zero of it. ``None`` if there is nothing to spell otherwise.
    """
    factors = feature.children if isinstance(feature, Product) else (feature,)
    spelt: list[Feature] = []
    for factor in factors:
        found = _as_product(factor, powers)
        if found is None:
            return None
        spelt += found
    return multiply(*spelt) if len(spelt) > len(factors) or spelt != list(factors) else None


def _as_product(factor: Feature, powers: Powers) -> list[Feature] | None:
    """The factors of an exponential, or the factor itself; ``None`` if they cannot be spelt."""
    if not isinstance(factor, Projection) or factor.transform.name != "exp":
        return [factor]
    found: list[Feature] = []
    rest: list[tuple[Feature, float]] = []
    for child, weight in zip(factor.children, factor.weights, strict=True):
        is_log = isinstance(child, Modification) and child.transform.name == "log_abs"
        if is_log and (2.0 * weight).is_integer():
            power = powers.feature(child.children[0], weight)
            if power is None:
                return None
            found.append(power)
        else:
            rest.append((child, weight))
    if not found:
        return [factor]
    if rest or factor.bias is not None:
        if not rest:
            return found
        children, weights = zip(*rest, strict=True)
        found.append(project(factor.transform, children, weights, weights_in_identity=True))
    return found
