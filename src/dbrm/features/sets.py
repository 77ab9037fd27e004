"""Resolve names of transforms, named sets, and the user's own transforms."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from dbrm.errors import InvalidSettingError, raise_unknown
from dbrm.features.library import ALIASES, TRANSFORMS
from dbrm.features.parametric import FAMILIES, FREE_KNOTS
from dbrm.features.transforms import Transform

__all__ = [
    "TRANSFORM_SETS",
    "find_builtin",
    "get_transform",
    "resolve_transforms",
    "transform_names",
]

_PAPER_G2 = ("sigmoid", "sin", "exp_neg_abs", "log1p_abs", "troot", "pow2_3", "pow3_5")

# Set name -> transform names. The "-code" sets are those of the published scripts,
# whose sines take degrees; the others of the paper are those of its text.
TRANSFORM_SETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "paper-classification": ("gauss", "tanh", "atan", "sin"),
        "paper-g1": ("sigmoid", "sin", "tanh", "atan", "troot"),
        "paper-g2": _PAPER_G2,
        "paper-g1-code": ("sigmoid", "sin_degrees", "cos_degrees", "tanh", "atan", "troot"),
        "paper-g2-code": tuple("sin_degrees" if g == "sin" else g for g in _PAPER_G2),
        # Standardised arguments, so that results do not depend on units.
        "smooth": tuple(
            f"{g}[z]" for g in ("sigmoid", "tanh", "atan", "gauss", "sin", "cos", "erf", "arcsinh")
        ),
        # The functions of textbook formulas, of plain arguments.
        "laws": ("sin", "cos", "exp", "log_abs", "sqrt_abs", "square", "power[-1]"),
        "powers": ("troot", "sqrt_abs", "square", "pow2_3", "cube", "pow3_5"),
        # Royston and Altman: -2, -1, -1/2, 0 (the logarithm), 1/2, 2, 3; 1 is the covariate.
        "fractional-polynomials": (
            "power[-2]",
            "power[-1]",
            "power[-0.5]",
            "log_abs",
            "sqrt_abs",
            "square",
            "cube",
        ),
        "logic": ("not",),
        "steps": tuple(
            f"{family}[q{q}]" for q in (0.25, 0.5, 0.75) for family in ("step", "step_down")
        ),
        # Knots at any training value.
        "free-knots": ("hinge", "hinge_down", "step", "step_down"),
    }
)


def find_builtin(name: str) -> Transform | None:
    """Return the built-in transform of this name, or None.

    ``sin[z]`` is `Transform.standardized`; a family without a parameter, ``step``, has free knots;
    ``sqrt`` and its like are other names, ``pow[2]`` is ``power[2]``.

    Raises
    ------
    InvalidSettingError
        If a family is known but the text between its brackets is not a number.
    """
    name = ALIASES.get(name, name)
    if name in TRANSFORMS:
        return TRANSFORMS[name]
    if name in FREE_KNOTS:
        return FREE_KNOTS[name]
    if name.endswith("[z]"):
        base = find_builtin(name[: -len("[z]")])
        return None if base is None else base.standardized()
    family, bracket, parameter = name.partition("[")
    family = "power" if family == "pow" else family
    if bracket and parameter.endswith("]") and family in FAMILIES:
        return FAMILIES[family](parameter[:-1])
    return None


def get_transform(name: str) -> Transform:
    """Return the built-in transform of this name: ``"sin"``, ``"step[q0.5]"``, ``"step"``."""
    found = find_builtin(name)
    if found is None:
        hint = f"Write its parameter: {name}[1.5]." if name in FAMILIES else ""
        raise_unknown("transform", name, transform_names(), hint=hint)
    return found


def transform_names() -> tuple[str, ...]:
    """Return the names of the built-in transforms; families as ``step[c]``."""
    families = [f"{family}[{_PARAMETERS.get(family, 'c')}]" for family in FAMILIES]
    return (*TRANSFORMS, *FREE_KNOTS, *families)


_PARAMETERS = {"power": "r"}


def resolve_transforms(
    spec: str | Transform | Iterable[str | Transform],
) -> tuple[Transform, ...]:
    """Turn names, named sets and transforms into transforms.

    Parameters
    ----------
    spec
        A name, the name of a set, a `Transform`, or a sequence of these.

    Returns
    -------
        Each transform once, in the order of first mention.

    Raises
    ------
    UnknownNameError
        If a name is neither a transform nor a set.
    InvalidSettingError
        If two different functions share a name: features are identified by it.

    Examples
    --------
    >>> [g.name for g in resolve_transforms(["logic", "sin", "sin"])]
    ['not', 'sin']
    """
    items = [spec] if isinstance(spec, str | Transform) else _listed(spec)
    found: dict[str, Transform] = {}
    for item in items:
        for transform in _resolve(item):
            _check_same(found.setdefault(transform.name, transform), transform)
    return tuple(found.values())


def _listed(spec: object) -> list[object]:
    if not isinstance(spec, Iterable):
        msg = f"transforms must be names or Transform objects; got {spec!r}."
        raise InvalidSettingError(msg)
    return list(spec)


def _resolve(item: object) -> tuple[Transform, ...]:
    if isinstance(item, Transform):
        # Your own function may have one of the other names: it is then written under that name.
        builtin = None if item.name in ALIASES else find_builtin(item.name)
        if builtin is not None:
            _check_same(builtin, item)
        return (item,)
    if not isinstance(item, str):
        msg = f"transforms must be names or Transform objects; got {item!r}."
        raise InvalidSettingError(msg)
    if item in TRANSFORM_SETS:
        return tuple(get_transform(name) for name in TRANSFORM_SETS[item])
    if find_builtin(item) is None and item not in FAMILIES:
        hint = "Write its exponent: pow[1.5]." if item == "pow" else ""
        raise_unknown("transform", item, (*transform_names(), *ALIASES, *TRANSFORM_SETS), hint=hint)
    return (get_transform(item),)


def _check_same(known: Transform, given: Transform) -> None:
    if known is not given and known.function is not given.function:
        msg = (
            f"Two different functions are called {given.name!r}. Features are identified by the "
            "names of their transforms, so give your own another name."
        )
        raise InvalidSettingError(msg)
