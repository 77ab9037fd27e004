"""Check a family or a link: do its density, derivatives, moments and quantiles fit together?

Everything is computed from outside: sums and integrals of the density, finite
differences, and random responses with a fixed seed (one false alarm in a million).
Built-in families and links pass the same checks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.special
import scipy.stats

from dbrm._typing import Column, FloatArray
from dbrm.errors import InvalidDataError
from dbrm.evidence.families.base import Family
from dbrm.evidence.links import Link, find_link

__all__ = ["FamilyReport", "LinkReport", "check_family", "check_link"]

# Probability that a check of random responses fails for a right family.
ALARM = 1e-6
Check = tuple[str, Callable[[], str]]


@final
@dataclass(frozen=True, slots=True)
class FamilyReport:
    """What was checked and found right."""

    family: Family
    passed: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class LinkReport:
    """What was checked and found right."""

    link: Link
    passed: tuple[str, ...]


def check_family(family: Family, *, dispersion: float = 0.4) -> FamilyReport:
    """Check a family for the mistakes that authors make.

    Parameters
    ----------
    dispersion
        A dispersion to try, for families that estimate one.

    Raises
    ------
    AssertionError
        At the first check that fails, saying which and how; later ones rest on it.
    """
    phi = dispersion if family.estimates_dispersion else family.given_dispersion or 1.0
    return FamilyReport(family, _run(family, _family_checks(family, phi)))


def check_link(link: Link) -> LinkReport:
    """Check a link: inverse functions, two derivatives, behaviour far out.

    Raises
    ------
    AssertionError
        At the first check that fails, saying which and how.
    """
    return LinkReport(link, _run(link, _link_checks(link)))


def _run(subject: object, checks: Iterator[Check]) -> tuple[str, ...]:
    passed: list[str] = []
    for title, check in checks:
        complaint = check()
        if complaint:
            msg = f"{subject!r} fails the check {title!r}: {complaint}."
            raise AssertionError(msg)
        passed.append(title)
    return tuple(passed)


def _family_checks(family: Family, phi: float) -> Iterator[Check]:
    means = _means(family)
    yield "has a name and a default link", lambda: _identity(family)
    yield "density sums to one", lambda: _moment(family, means, phi, 0)
    yield "mean of the density", lambda: _moment(family, means, phi, 1)
    yield "variance of the density", lambda: _moment(family, means, phi, 2)
    yield "score is the derivative in the mean", lambda: _score(family, means, phi)
    yield "information is the expected curvature", lambda: _information(family, means, phi)
    yield "cdf adds up the density", lambda: _cumulative(family, means, phi)
    yield "quantile inverts the cdf", lambda: _quantiles(family, means, phi)
    yield "responses follow the cdf", lambda: _draws(family, means, phi)
    yield "own responses are accepted", lambda: _accepts(family, means, phi)
    yield "other responses are refused", lambda: _refuses(family)
    if family.dispersion_divides_information:
        yield "dispersion divides the information", lambda: _divides(family, means, phi)
    if family.estimates_dispersion:
        yield "dispersion has maximum likelihood", lambda: _dispersion(family, means, phi)


def _means(family: Family) -> FloatArray:
    low, high = family.mean_interval
    if np.isfinite(low) and np.isfinite(high):
        return low + (high - low) * np.array([0.05, 0.3, 0.5, 0.9])
    if np.isfinite(low):
        return low + np.array([0.2, 1.0, 3.5, 12.0])
    return np.array([-3.0, 0.0, 0.7, 5.0])


def _trials(family: Family) -> float:
    return 7.0 if family.has_trials else 1.0


def _options(family: Family, size: int) -> Column | None:
    return np.full(size, _trials(family)) if family.has_trials else None


def _identity(family: Family) -> str:
    for attribute in ("name", "default_link"):
        if not isinstance(getattr(family, attribute, None), str):
            return f"the attribute `{attribute}` must be a string"
    find_link(family.default_link)
    return ""


def _support(family: Family, mean: float, phi: float) -> tuple[Column, Column]:
    """Responses that carry all but 1e-12 of the probability, and weights to sum over them.

    Continuous responses: the trapezoidal rule in a variable that spreads both tails.
    """
    if family.discrete:
        top = _trials(family) if family.has_trials else 60.0 + 60.0 * mean * (1 + phi * mean)
        y = np.arange(np.floor(top) + 1.0)
        return y, np.ones_like(y)
    u = np.linspace(-6.0, 6.0, 20001)
    step = u[1] - u[0]
    low, high = family.support
    if np.isfinite(low):
        x, slope = 2 * np.sinh(u / 1.5), 2 * np.cosh(u / 1.5) / 1.5 * step
        if np.isfinite(high):
            share = scipy.special.expit(x)
            return low + (high - low) * share, (high - low) * share * (1 - share) * slope
        return low + np.exp(x) * (mean - low), np.exp(x) * (mean - low) * slope
    spread = np.sqrt(float(family.variance(np.array([mean]), phi)[0]))
    return mean + spread * np.sinh(3 * u), spread * 3 * np.cosh(3 * u) * step


def _density(family: Family, y: Column, mean: float, phi: float) -> FloatArray:
    return family.log_density(y, np.full(y.size, mean), phi, _options(family, y.size))


def _mass(family: Family, mean: float, phi: float) -> tuple[Column, Column]:
    """Responses and their probabilities, zero where the density is no number."""
    y, weight = _support(family, mean, phi)
    with np.errstate(all="ignore"):
        mass = np.where(weight > 0, np.exp(_density(family, y, mean, phi)) * weight, 0.0)
    return y, np.where(np.isfinite(mass), mass, 0.0)


def _moment(family: Family, means: FloatArray, phi: float, order: int) -> str:
    for mean in means:
        y, mass = _mass(family, float(mean), phi)
        centre = float(mean) * _trials(family)
        got = [
            mass.sum(),
            mass @ np.where(mass > 0, y, 0),
            mass @ np.where(mass > 0, (y - centre) ** 2, 0),
        ]
        variance = float(family.variance(np.array([mean]), phi)[0]) * _trials(family)
        expected = [1.0, centre, variance]
        if abs(got[order] - expected[order]) > 1e-6 * (1 + abs(expected[order])):
            return f"got {got[order]:.8g}, expected {expected[order]:.8g} at mean {mean:.3g}"
    return ""


def _some(family: Family, mean: float, phi: float) -> Column:
    """A few typical responses of one mean."""
    levels = np.linspace(0.05, 0.95, 7)
    return np.unique(family.quantile(levels, np.full(7, mean), phi, _options(family, 7)))


def _score(family: Family, means: FloatArray, phi: float) -> str:
    for mean in means:
        y, step = _some(family, float(mean), phi), 1e-5
        up, down = (_density(family, y, float(mean) + s, phi) for s in (step, -step))
        expected = (up - down) / (2 * step)
        got = family.score(y, np.full(y.size, mean), phi, _options(family, y.size))
        if not np.allclose(got, expected, rtol=1e-5, atol=1e-5):
            worst = int(np.argmax(np.abs(got - expected)))
            return (
                f"score is {got[worst]:.6g} at y={y[worst]:.4g}, mean {mean:.3g}; "
                f"d log density / d mean is {expected[worst]:.6g}"
            )
    return ""


def _information(family: Family, means: FloatArray, phi: float) -> str:
    for mean in means:
        (y, mass), step = _mass(family, float(mean), phi), 1e-4 * min(1.0, abs(float(mean)) + 1e-2)
        y, mass = y[mass > 0], mass[mass > 0]
        options = _options(family, y.size)
        up, down = (
            family.score(y, np.full(y.size, mean + move), phi, options) for move in (step, -step)
        )
        expected = float(mass @ (down - up)) / (2 * step)
        got = float(family.information(np.array([mean]), phi, _options(family, 1))[0])
        if not abs(got - expected) <= 1e-5 * (1 + abs(expected)):
            return (
                f"information is {got:.8g} at mean {mean:.3g}; "
                f"the mean of -d score / d mean is {expected:.8g}"
            )
    return ""


def _divides(family: Family, means: FloatArray, phi: float) -> str:
    once, twice = (family.information(means, phi * factor) for factor in (1.0, 2.0))
    return _close(2.0 * twice, once, 1e-9)


def _cumulative(family: Family, means: FloatArray, phi: float) -> str:
    for mean in means:
        y = _some(family, float(mean), phi)
        grid, mass = _mass(family, float(mean), phi)
        half = 0.0 if family.discrete else 0.5
        expected = np.array(
            [mass[grid < v].sum() + (mass[grid == v].sum() * (1 - half)) for v in y]
        )
        got = family.cdf(y, np.full(y.size, mean), phi, _options(family, y.size))
        tolerance = 1e-8 if family.discrete else 2e-3
        if np.max(np.abs(got - expected)) > tolerance:
            return f"cdf is {got} at {y}, the density adds up to {expected}, mean {mean:.3g}"
    return ""


def _quantiles(family: Family, means: FloatArray, phi: float) -> str:
    levels = np.linspace(0.01, 0.99, 25)
    for mean in means:
        options = _options(family, 25)
        full = np.full(25, mean)
        y = family.quantile(levels, full, phi, options)
        if np.any(family.cdf(y, full, phi, options) < levels - 1e-9):
            return f"the cdf at a quantile stays below its level at mean {mean:.3g}"
        gap = 1.0 if family.discrete else 1e-6 * (1 + np.abs(y))
        if np.any(family.cdf(y - gap, full, phi, options) >= levels):
            return f"a smaller response already reaches the level at mean {mean:.3g}"
    return ""


def _draws(family: Family, means: FloatArray, phi: float) -> str:
    rng = np.random.default_rng(20180606)
    for mean in means:
        full, options = np.full(4000, mean), _options(family, 4000)
        y = family.rvs(rng, full, phi, options)
        upper = family.cdf(y, full, phi, options)
        if family.discrete:
            # Randomised to a uniform variable between the two sides of each jump.
            lower = upper - np.exp(family.log_density(y, full, phi, options))
            upper = lower + (upper - lower) * rng.random(4000)
        p = float(scipy.stats.kstest(upper, "uniform").pvalue)
        if p < ALARM / len(means):
            return f"4000 responses do not follow the cdf at mean {mean:.3g} (p = {p:.2g})"
    return ""


def _accepts(family: Family, means: FloatArray, phi: float) -> str:
    rng = np.random.default_rng(7)
    y = np.concatenate([family.rvs(rng, np.full(50, m), phi, _options(family, 50)) for m in means])
    try:
        family.check_response(y, _options(family, y.size))
    except InvalidDataError as error:
        return f"check_response refuses them: {error}"
    return ""


def _refuses(family: Family) -> str:
    low, high = family.support
    wrong = [np.nan, np.inf, -np.inf, low - 1.0, high * _trials(family) + 1.0]
    for y in wrong + [0.5] * family.discrete:
        try:
            family.check_response(np.array([y]), _options(family, 1))
        except InvalidDataError:
            continue
        return f"check_response accepts y={y:g}"
    return ""


def _dispersion(family: Family, means: FloatArray, phi: float) -> str:
    rng = np.random.default_rng(11)
    mean = np.repeat(means, 100)
    y, weights = family.rvs(rng, mean, phi), rng.integers(1, 4, mean.size).astype(np.float64)
    best = family.estimate_dispersion(y, mean, weights)
    values = [weights @ family.log_density(y, mean, best * f) for f in (1.0, 0.99, 1.01)]
    if not values[0] >= max(values[1:]):
        return f"a dispersion one per cent off {best:.6g} has a larger likelihood"
    return ""


def _link_checks(link: Link) -> Iterator[Check]:
    means = _link_means(link)
    eta = link.eta(means)
    yield "mean inverts eta", lambda: _close(link.mean(eta), means, 1e-9)
    yield "strictly monotone", lambda: _monotone(eta)
    yield (
        "slope is the derivative",
        lambda: _close(link.slope(eta), _difference(link.mean, eta), 1e-5),
    )
    yield (
        "curvature is the second derivative",
        lambda: _close(link.curvature(eta), _difference(link.slope, eta), 1e-5),
    )
    yield "far out", lambda: _far(link)


def _link_means(link: Link) -> FloatArray:
    low, high = link.mean_interval
    if np.isfinite(low) and np.isfinite(high):
        return low + (high - low) * np.linspace(0.01, 0.99, 41)
    if np.isfinite(low):
        return low + np.geomspace(0.01, 100.0, 41)
    return np.linspace(-20.0, 20.0, 41)


def _difference(function: Callable[[FloatArray], FloatArray], eta: FloatArray) -> FloatArray:
    step = 1e-5 * (1 + np.abs(eta)) * np.minimum(1.0, np.abs(eta) + 1e-2)
    return np.asarray((function(eta + step) - function(eta - step)) / (2 * step))


def _close(got: FloatArray, expected: FloatArray, tolerance: float) -> str:
    wrong = ~np.isclose(got, expected, rtol=tolerance, atol=tolerance * 1e-2)
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        return f"got {got[i]:.10g}, expected {expected[i]:.10g}"
    return ""


def _monotone(eta: FloatArray) -> str:
    steps = np.diff(eta)
    return "" if np.all(steps > 0) or np.all(steps < 0) else "eta is not monotone in the mean"


def _far(link: Link) -> str:
    """No warning and nothing outside the closed interval, however large eta is."""
    low, high = link.mean_interval
    with np.errstate(all="raise", under="ignore"):
        try:
            mean = link.mean(np.array([-1e6, -800.0, -40.0, 40.0, 800.0, 1e6]))
        except FloatingPointError as error:
            return f"mean(eta) warns: {error}"
    inside = np.isnan(mean) | ((mean >= low) & (mean <= high))
    return "" if inside.all() else f"mean(eta) leaves {link.mean_interval}: {mean}"
