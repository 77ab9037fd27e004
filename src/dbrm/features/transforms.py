"""`Transform`: a nonlinear function g with its derivative, export forms and properties.

A transform sees columns of numbers, never tables or features.
"""

import re
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from importlib import import_module
from math import inf, isfinite
from typing import Any, Literal, final

import numpy as np

from dbrm._typing import Column, FloatArray
from dbrm.errors import InvalidSettingError
from dbrm.features.interval import REALS, Interval

__all__ = ["Transform", "sympy"]

_NAME = re.compile(r"[^\W\d]\w*(\[[^\[\]`=\s]+\])?")
# Arguments at which a transform is evaluated for its properties.
_NEAR = np.linspace(0.013, 10.0, 400)
_FAR = 1.37 * np.logspace(-15.0, 15.0, 61)
# The cube root of the machine epsilon balances truncation against rounding.
_STEP = float(np.cbrt(np.finfo(np.float64).eps))


@final
class _LazySympy:
    """The module SymPy, imported at its first use: `import dbrm` must not pay for it."""

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(import_module("sympy"), name)
        except ImportError as error:
            msg = 'Export to SymPy needs the sympy package: pip install "dbrm[sympy]".'
            raise ImportError(msg) from error


sympy: Any = _LazySympy()


@final
@dataclass(frozen=True, slots=True, eq=False)
class Transform:
    r"""A nonlinear function :math:`g: \mathbb{R} \to \mathbb{R}` (paper, Sec. 2.1).

    ``Transform("cube", lambda x: x**3)`` is enough; the other arguments give speed, exact
    derivatives, better export and fewer duplicates. Transforms are compared by name, because
    features are identified by their text.

    Parameters
    ----------
    name
        An identifier; a parametrised transform adds its parameter in brackets,
        ``step[1.5]``.
    function
        Maps an array to an array of the same shape, value by value.
    derivative
        The derivative, of the same form. By central differences if omitted.
    sympy
        Maps a SymPy expression to :math:`g` of it. If omitted, export uses an
        undefined function of this name.
    expression
        What :math:`g` computes, for export to Python, NumPy and SQL: text with ``x`` for the
        argument (and ``c`` for the knot), numbers, ``+ - * / **``, ``pi``, ``where(x > c, a, b)``
        and exp, log, sin, cos, tanh, atan, asinh, erf, sqrt, abs, max.
    latex
        LaTeX with ``#1`` in place of the argument (and ``#2`` of the knot).
    parity
        ``"even"`` if :math:`g(-x) = g(x)`, ``"odd"`` if :math:`g(-x) = -g(x)`.
    domain
        Where :math:`g` is defined; outside it the value is NaN.
    idempotent
        Whether :math:`g(g(x)) = g(x)`; then a repeated application is dropped.
    quantile
        For a knot at a training quantile: the probability. The functions are then
        called as ``function(x, knot)``, the knot being stored in the feature.
    free_knot
        Whether the knot is chosen for each feature, as in ``hinge(x, 3.2)``. The functions are
        called as ``function(x, knot)`` here, too, but the knot belongs to the feature's identity.
    knot
        For a knot fixed beforehand: its value, for information.
    kinks
        Points without a derivative (jumps, corners, poles), for information.
    base
        For a transform of the standardised argument, ``sin[z]``: the one that it applies to
        :math:`(x - c)/s`, with :math:`c` and :math:`s` the mean and standard deviation in
        training; see `standardized`.

    Attributes
    ----------
    affine
        Whether :math:`g` is affine; found numerically.
    extent
        Largest minus smallest value, infinite if :math:`g` is unbounded; found numerically.

    Notes
    -----
    Construction evaluates the function at a few numbers, to fail early and clearly.
    """

    name: str
    function: Callable[..., Any]
    derivative: Callable[..., Any] = None  # type: ignore[assignment]  # set below
    sympy: Callable[..., Any] | None = None
    _: KW_ONLY
    expression: str | None = None
    latex: str | None = None
    parity: Literal["even", "odd"] | None = None
    domain: Interval = REALS
    idempotent: bool = False
    quantile: float | None = None
    free_knot: bool = False
    knot: float | None = None
    kinks: tuple[float, ...] = ()
    base: "Transform | None" = None
    affine: bool = field(init=False, repr=False)
    extent: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and _NAME.fullmatch(self.name)):
            msg = (
                f"A transform's name must be an identifier such as 'cube'; got name={self.name!r}. "
                "It is printed as name(x), and read back."
            )
            raise InvalidSettingError(msg)
        if self.parity not in (None, "even", "odd"):
            msg = f"parity must be None, 'even' or 'odd'; got parity={self.parity!r}."
            raise InvalidSettingError(msg)
        if self.quantile is not None and not 0.0 < self.quantile < 1.0:
            msg = f"quantile must lie strictly between 0 and 1; got quantile={self.quantile!r}."
            raise InvalidSettingError(msg)
        if self.quantile is not None and not self.name.endswith("]"):
            msg = (
                f"A transform at a training quantile shows it in its name, as in {self.name}"
                f"[q{self.quantile}]; got name={self.name!r}. The fitted knot is printed there."
            )
            raise InvalidSettingError(msg)
        given: object = self.derivative
        if given is None:
            object.__setattr__(self, "derivative", partial(_central_difference, self.function))
        _check(self)
        object.__setattr__(self, "affine", _is_affine(self))
        object.__setattr__(self, "extent", _extent(self))

    def __call__(self, values: FloatArray, knot: float | None = None) -> Column:
        """Apply the transform without warnings; undefined values are NaN or infinite."""
        with np.errstate(all="ignore"):
            return self.apply(np.asarray(values, dtype=np.float64), knot)

    def apply(self, column: Column, knot: float | None = None) -> Column:
        """Apply the transform as `__call__` does, inside the caller's ``np.errstate``."""
        result = self.function(column) if knot is None else self.function(column, knot)
        result = np.asarray(result, dtype=np.float64)
        if self.domain is not REALS:
            result = np.where(self.domain.contains(column), result, np.nan)
        return result

    @property
    def takes_knot(self) -> bool:
        """Whether the functions have the knot as their second argument."""
        return self.quantile is not None or self.free_knot

    @property
    def bounded(self) -> bool:
        """Whether the values stay between two limits, however large the argument."""
        return isfinite(self.extent)

    def standardized(self) -> "Transform":
        """Return the same function of the standardised argument, ``sin[z]`` for ``sin``.

        Its features do not depend on the units of the argument: they are written
        ``sin((x - 3.1)/2.4)`` and have the complexity of ``sin(x)``.
        """
        if self.name.endswith("]") or self.free_knot:
            msg = f"{self.name} already has a parameter, so its argument cannot be standardised."
            raise InvalidSettingError(msg)
        return replace(self, name=f"{self.name}[z]", base=self, idempotent=False)

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, Transform) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<Transform {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a built-in by its name, another by its functions."""
        from dbrm.features.sets import find_builtin

        if find_builtin(self.name) is self:
            return find_builtin, (self.name,)
        if self.base is not None:
            return Transform.standardized, (self.base,)
        options = (self.expression, self.latex, self.parity, self.domain, self.idempotent)
        rest = (self.quantile, self.knot, self.kinks, self.free_knot)
        derivative = None if _is_numerical(self.derivative) else self.derivative
        return _restore, (self.name, self.function, derivative, self.sympy, *options, *rest)


def _restore(
    name: str, function: Callable[..., Any], derivative: Any, sympy: Any, *options: Any
) -> Transform:
    names = ("expression", "latex", "parity", "domain", "idempotent", "quantile", "knot", "kinks")
    settings = dict(zip((*names, "free_knot"), options, strict=False))
    # Unpickling makes a new interval, but `apply` looks for the one named REALS.
    if settings["domain"] == REALS:
        settings["domain"] = REALS
    return Transform(name, function, derivative, sympy, **settings)


def _is_numerical(derivative: Callable[..., Any]) -> bool:
    return isinstance(derivative, partial) and derivative.func is _central_difference


def _central_difference(function: Callable[..., Any], x: FloatArray, *knot: float) -> FloatArray:
    step = _STEP * np.maximum(1.0, np.abs(x))
    right, left = x + step, x - step
    difference = np.asarray(function(right, *knot), float) - np.asarray(
        function(left, *knot), float
    )
    return np.asarray(difference / (right - left))


def _check(transform: Transform) -> None:
    """Evaluate the functions at a few numbers and compare with the declared properties."""
    x = transform.domain.probes()
    knot = (0.3,) if transform.takes_knot else ()
    with np.errstate(all="ignore"):
        g = partial(_probe, transform.name, "function", transform.function, knot)
        values = g(x)
        if not _close(g(x[::-1]), values[::-1]) or not _close(g(x[:3]), values[:3]):
            _refuse(transform.name, "must treat each value by itself, independently of the others")
        if transform.parity == "even" and not _close(g(-x), values):
            _refuse(transform.name, "was declared even, but g(-x) differs from g(x)")
        if transform.parity == "odd" and not _close(g(-x), -values):
            _refuse(transform.name, "was declared odd, but g(-x) differs from -g(x)")
        if transform.idempotent and not _close(g(values), values):
            _refuse(transform.name, "was declared idempotent, but g(g(x)) differs from g(x)")
        _probe(transform.name, "derivative", transform.derivative, knot, x)


def _probe(
    name: str, role: str, function: Callable[..., Any], knot: tuple[float, ...], x: FloatArray
) -> FloatArray:
    given = np.array(x)
    try:
        values = np.asarray(function(given, *knot))
        if not np.iscomplexobj(values):
            values = values.astype(np.float64)
    except Exception as error:
        msg = (
            f"The {role} of transform {name!r} failed on an array of {x.size} numbers: "
            f"{type(error).__name__}: {error}. It must map a NumPy array to an array of the same "
            "shape: use NumPy functions (np.sin, np.maximum), or np.vectorize a scalar function."
        )
        raise InvalidSettingError(msg) from error
    if values.shape != x.shape or np.iscomplexobj(values):
        got = "complex numbers" if np.iscomplexobj(values) else f"shape {values.shape}"
        _refuse(name, f"must return real numbers of the same shape {x.shape}; got {got}", role)
    if not np.array_equal(given, x):
        _refuse(name, "must not change its argument in place", role)
    return values


def _is_affine(transform: Transform) -> bool:
    if transform.takes_knot:
        return False
    x = np.array([-2.5, -1.0, 0.0, 0.5, 1.0, 3.0])
    y = transform(x)
    with np.errstate(all="ignore"):
        line = y[2] + (y[4] - y[2]) * x
    return bool(np.all(np.isfinite(y)) and np.allclose(y, line, rtol=1e-12, atol=1e-12))


def _extent(transform: Transform) -> float:
    """Compare values at ordinary arguments with those at enormous and at tiny ones."""
    near = np.concatenate([-_NEAR[::-1], [0.0], _NEAR])
    far = np.concatenate([-_FAR, _FAR])
    knot = 0.3 if transform.takes_knot else None
    values, extreme = (transform(x[transform.domain.contains(x)], knot) for x in (near, far))
    if not (np.all(np.isfinite(values)) and np.all(np.isfinite(extreme)) and values.size):
        return inf
    # Even a logarithm has grown by more than this.
    if np.max(np.abs(extreme), initial=0.0) > 4.0 * np.max(np.abs(values)):
        return inf
    both = np.concatenate([values, extreme])
    return float(np.max(both) - np.min(both))


def _close(left: FloatArray, right: FloatArray) -> bool:
    return bool(np.allclose(left, right, rtol=1e-9, atol=1e-12, equal_nan=True))


def _refuse(name: str, reason: str, role: str = "function") -> None:
    msg = f"The {role} of transform {name!r} {reason}."
    raise InvalidSettingError(msg)
