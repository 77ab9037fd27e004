"""Check a coefficient prior: does its author's arithmetic hold together?

`check_prior` looks at a prior from outside, through the tables that engines use and
through plain numerical integration that shares no code with them. Built-in priors pass
the same checks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import final

import numpy as np

from dbrm._kernels.enumeration import score_one
from dbrm._kernels.piecewise import glm_score_one
from dbrm._typing import FloatArray
from dbrm.errors import InvalidSettingError
from dbrm.evidence.coefficient_priors import (
    CoefficientPrior,
    GaussianShape,
    MixingDensity,
    MixturePrior,
    RadialPrior,
)

__all__ = ["PriorReport", "check_prior"]

SIZES = np.array([0, 1, 2, 5, 12])
FLOOR = 1e-12
FRACTIONS = np.concatenate([np.geomspace(FLOOR, 0.5, 40), 1.0 - np.geomspace(0.5, 1e-9, 40), [1.0]])
WALDS = np.concatenate([[0.0], np.geomspace(1e-3, 1e6, 40)])
# Nodes of the independent integration: x = sinh(w) reaches the longest tails.
STEP = 0.002
_W = np.arange(-9.5, 9.5, STEP)


@final
@dataclass(frozen=True, slots=True)
class PriorReport:
    """What was checked and found right."""

    prior: CoefficientPrior
    passed: tuple[str, ...]


def check_prior(
    prior: CoefficientPrior, *, n: float = 60.0, scale_free: bool = True
) -> PriorReport:
    """Check a coefficient prior for the mistakes that authors make.

    Parameters
    ----------
    n
        Number of observations to pretend; at least 20.
    scale_free
        Whether the comparison of Gaussian models must not depend on the unit of the
        response. Only a prior with a known variance may say ``False``.

    Raises
    ------
    AssertionError
        At the first check that fails, saying which and how; later ones rest on it.
    """
    passed: list[str] = []
    for title, check in _checks(prior, n, scale_free=scale_free):
        complaint = check()
        if complaint:
            msg = f"{prior!r} fails the check {title!r}: {complaint}."
            raise AssertionError(msg)
        passed.append(title)
    return PriorReport(prior, tuple(passed))


Check = tuple[str, Callable[[], str]]


def _checks(prior: CoefficientPrior, n: float, *, scale_free: bool) -> Iterator[Check]:
    yield "has a name and a hash", lambda: _identity(prior)
    if isinstance(prior, RadialPrior):
        yield "derivatives are those of the density", lambda: _radial_derivatives(prior)
        yield "density integrates to one", lambda: _radial_mass(prior)
        return
    yield "values are finite or -inf", lambda: _finite(prior, n)
    yield "better fits score higher", lambda: _monotone(prior, n)
    yield "unit of the response", lambda: _unit(prior, n, scale_free=scale_free)
    yield "compiled score equals its plain twin", lambda: _twin(prior, n)
    yield "posterior summary is possible", lambda: _summaries(prior, n)
    yield "GLM score moves with the likelihood", lambda: _glm(prior, n)
    if isinstance(prior, MixturePrior):
        yield "mixing density integrates to one", lambda: _mixing_mass(prior, n)
        yield "tables equal direct integration", lambda: _integrals(prior, n)


def _identity(prior: CoefficientPrior) -> str:
    if not isinstance(getattr(prior, "name", None), str):
        return "the attribute `name` must be a string"
    try:
        hash(prior)
    except TypeError:
        return "instances must be hashable; make the class a frozen dataclass"
    return ""


def _scores(prior: CoefficientPrior, n: float, total: float = 3.0) -> FloatArray:
    """Scores, sizes by fractions, through the table."""
    table = prior.score_table(SIZES, GaussianShape(n, total, FLOOR))
    return np.array([[table.value(f, row) for f in FRACTIONS] for row in range(SIZES.size)])


def _finite(prior: CoefficientPrior, n: float) -> str:
    scores = _scores(prior, n)
    wrong = np.isnan(scores) | (scores == inf)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        where = f"size {SIZES[row]}, residual fraction {FRACTIONS[column]:.3g}"
        return f"got {scores[row, column]} at {where}"
    if not np.isfinite(scores[0, -1]):
        return "the model without columns has no evidence"
    return ""


def _monotone(prior: CoefficientPrior, n: float) -> str:
    scores = _scores(prior, n)
    for size, row in zip(SIZES[1:], scores[1:], strict=True):
        rise = np.diff(row[np.isfinite(row)])
        slack = 1e-10 * np.maximum(1.0, np.abs(row[np.isfinite(row)][1:]))
        if np.any(rise > slack):
            worst = int(np.argmax(rise - slack))
            return (
                f"at size {size} the score rises by {rise[worst]:.3g} when the residual "
                f"fraction grows from {FRACTIONS[worst]:.3g} to {FRACTIONS[worst + 1]:.3g}"
            )
    return ""


def _unit(prior: CoefficientPrior, n: float, *, scale_free: bool) -> str:
    one, other = (_scores(prior, n, total) for total in (3.0, 3e6))
    with np.errstate(invalid="ignore"):
        change = (other - other[0, -1]) - (one - one[0, -1])
    largest = float(np.nanmax(np.abs(change)))
    if scale_free and largest > 1e-8 * n:
        return f"Bayes factors change by {largest:.3g} when the response changes its unit"
    if not scale_free and largest <= 1e-8 * n:
        return "declared to depend on the unit of the response, but does not"
    return ""


def _twin(prior: CoefficientPrior, n: float) -> str:
    table = prior.score_table(SIZES, GaussianShape(n, 3.0, FLOOR))
    for row in np.flatnonzero(np.isfinite(table.constant)).tolist():
        for fraction in FRACTIONS:
            plain = table.value(fraction, row)
            compiled = score_one(fraction, row, *table.arguments)
            if not abs(plain - compiled) <= 1e-12 * max(1.0, abs(plain)):
                return f"{compiled!r} instead of {plain!r} at size {SIZES[row]}, f={fraction:.3g}"
    return ""


def _summaries(prior: CoefficientPrior, n: float) -> str:
    shape = GaussianShape(n, 3.0, FLOOR)
    for size in SIZES:
        for fraction in (1e-6, 0.3, 0.9, 1.0):
            s = prior.summary(int(size), fraction, shape)
            if not (0.0 <= s.shrinkage <= 1.0 and 0.0 < s.variance < inf):
                return f"{s} at size {size}, residual fraction {fraction}"
            if not s.degrees_of_freedom > 0:
                return f"degrees of freedom {s.degrees_of_freedom} at size {size}"
    return ""


def _glm(prior: CoefficientPrior, n: float) -> str:
    try:
        table = prior.glm_table(SIZES, n)
    except InvalidSettingError:
        return ""
    for row in np.flatnonzero(np.isfinite(table.constant)).tolist():
        for wald in WALDS:
            low, high = (table.value(level, 2.0, wald, row) for level in (-50.0, -49.0))
            where = f"size {SIZES[row]}, W={wald:.3g}"
            if not abs(high - low - 1.0) < 1e-9:
                return f"one nat of likelihood moves the score by {high - low!r} at {where}"
            compiled = glm_score_one(-50.0, 2.0, wald, row, *table.arguments)
            if not abs(compiled - low) < 1e-10:
                return f"compiled {compiled!r}, plain {low!r} at {where}"
    return ""


def _log_integral(
    mixing: MixingDensity, size: int, log_likelihood: Callable[[FloatArray], FloatArray]
) -> tuple[float, float]:
    r"""Log of :math:`\int u^{p/2}L(u)\pi(u)du` and the mean of u, by a dense plain sum."""
    x = np.sinh(_W)
    log_t, log_complement = -np.logaddexp(0.0, -x), -np.logaddexp(0.0, x)
    u = np.exp(log_t) / mixing.v
    logs = mixing.log_density(log_t, log_complement) + log_t + log_complement
    logs += np.log(np.cosh(_W) * STEP / mixing.v) + log_likelihood(u)
    logs += 0.5 * size * (log_t - np.log(mixing.v))
    total = float(np.logaddexp.reduce(logs))
    return total, float(np.exp(logs - total) @ u)


def _mixing_mass(prior: MixturePrior, n: float) -> str:
    for size in SIZES[1:].tolist():
        mixing = prior.mixing(size, n)
        if mixing is not None and mixing.proper:
            mass = np.exp(_log_integral(mixing, 0, np.zeros_like)[0])
            if not abs(mass - 1.0) < 1e-9:
                return f"its mass is {mass!r} for size {size}"
    return ""


def _integrals(prior: MixturePrior, n: float) -> str:
    shape = GaussianShape(n, 3.0, FLOOR)
    table, glm = prior.score_table(SIZES, shape), prior.glm_table(SIZES, n)
    for row, size in enumerate(SIZES.tolist()[1:], start=1):
        mixing = prior.mixing(size, n)
        if mixing is None:
            continue
        for f in (1e-6, 0.3, 0.9):
            likelihood = partial(_gaussian_likelihood, n, f)
            log_factor, mean = _log_integral(mixing, size, likelihood)
            got = table.value(f, row) - table.value(1.0, 0)
            if not abs(got - log_factor) < 1e-9 * max(1.0, abs(log_factor)):
                return f"log Bayes factor {got!r}, not {log_factor!r}, at size {size}, f={f}"
            shrinkage = prior.summary(size, f, shape).shrinkage
            if not abs(shrinkage - (1.0 - mean)) < 1e-9:
                return f"shrinkage {shrinkage!r}, not {1.0 - mean!r}, at size {size}, f={f}"
        for wald in (0.0, 3.0, 400.0):
            log_factor, _ = _log_integral(mixing, size, partial(np.multiply, -0.5 * wald))
            got = glm.value(0.0, 0.0, wald, row) - glm.value(0.0, 0.0, 0.0, 0)
            if not abs(got - log_factor) < 1e-9 * max(1.0, abs(log_factor)):
                return f"GLM log factor {got!r}, not {log_factor!r}, at size {size}, W={wald}"
    return ""


def _gaussian_likelihood(n: float, fraction: float, u: FloatArray) -> FloatArray:
    return np.asarray(-0.5 * (n - 1) * np.log(fraction + (1 - fraction) * u), dtype=np.float64)


def _radial_derivatives(prior: RadialPrior) -> str:
    for size in SIZES[1:].tolist():
        for square in (1e-4, 0.3, 7.0):
            h = 1e-3 * square
            ahead, here, behind = (prior.radial(q, size) for q in (square + h, square, square - h))
            first = (ahead.value - behind.value) / (2 * h)
            second = (ahead.first - behind.first) / (2 * h)
            if not abs(first - here.first) <= 1e-3 * abs(here.first):
                return f"first derivative {here.first!r}, not {first!r}, at q={square}, size {size}"
            if not abs(second - here.second) <= 1e-3 * abs(here.second) + 1e-12:
                return f"second derivative {here.second!r}, not {second!r}, at q={square}"
    return ""


def _radial_mass(prior: RadialPrior) -> str:
    # In polar coordinates: two half lines, a circle.
    log_radius = np.arange(-40.0, 60.0, 0.01)
    for size, surface in ((1, 2.0), (2, 2 * np.pi)):
        logs = [prior.radial(float(np.exp(2 * r)), size).value + size * r for r in log_radius]
        mass = surface * 0.01 * float(np.exp(logs).sum())
        if not abs(mass - 1.0) < 1e-8:
            return f"the density of {size} slope(s) has mass {mass!r}"
    return ""
