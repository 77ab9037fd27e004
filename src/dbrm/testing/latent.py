"""Check a latent effect: do precision, determinant, hyperprior and bridge fit together?

Everything is computed from outside, with dense matrices and integrals. Built-in effects pass
the same checks.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import final

import numpy as np

from dbrm._typing import FloatArray, Matrix
from dbrm.evidence.latent.base import Latent

__all__ = ["LatentReport", "check_latent"]

# Positions to try: irregular, of any sign, in order.
POSITIONS = np.array([-2.0, -1.3, 0.0, 0.4, 1.9, 2.0, 3.5, 5.1, 5.6])
NEW = np.array([-3.1, -1.0, 1.0, 2.6, 7.4])
STEPS = (-0.8, 0.0, 0.9)


@final
@dataclass(frozen=True, slots=True)
class LatentReport:
    """What was checked and found right."""

    effect: Latent
    passed: tuple[str, ...]


def check_latent(effect: Latent, *, consistent: bool = True) -> LatentReport:
    """Check a latent effect for the mistakes that authors make.

    Parameters
    ----------
    consistent
        Whether the process does not change when positions are added, so that its values at
        new positions follow from the precision over all of them. Processes that only look
        at the order of positions say ``False``.

    Raises
    ------
    AssertionError
        At the first check that fails, saying which and how; later ones rest on it.
    """
    passed = []
    for name, run in _checks(effect, consistent=consistent):
        complaint = run()
        if complaint:
            msg = f"{effect.name}: {name}: {complaint}"
            raise AssertionError(msg)
        passed.append(name)
    return LatentReport(effect, tuple(passed))


def _checks(effect: Latent, *, consistent: bool) -> Iterator[tuple[str, Callable[[], str]]]:
    yield "declarations", lambda: _declarations(effect)
    yield "precision is a band", lambda: _each(effect, _band)
    yield "precision is positive but for the null space", lambda: _each(effect, _positive)
    yield "log determinant", lambda: _each(effect, _determinant)
    yield "hyperprior integrates to one", lambda: _normalised(effect)
    if effect.kind == "ordered" and consistent:
        yield "bridge", lambda: _each(effect, _bridge)


def _declarations(effect: Latent) -> str:
    if len(effect.start) != len(effect.hyperparameters):
        return "start must have one value for each hyperparameter"
    if effect.nullity not in (0, 1, 2) or effect.bandwidth < 0:
        return "nullity must be 0, 1 or 2 and bandwidth not negative"
    if not isinstance(hash(effect), int) or effect != effect:
        return "effects must be frozen dataclasses, equal to themselves"
    return ""


def _each(effect: Latent, check: Callable[[Latent, FloatArray], str]) -> str:
    """Try hyperparameters around the start, the first complaint counts."""
    start = np.array(effect.start, dtype=np.float64)
    for steps in product(STEPS, repeat=start.size):
        complaint = check(effect, start + np.array(steps))
        if complaint:
            return f"at psi = {start + np.array(steps)}: {complaint}"
    return ""


def _dense(effect: Latent, psi: FloatArray, positions: FloatArray) -> Matrix:
    band = effect.precision(psi, positions)
    full = np.diag(band[:, 0])
    for d in range(1, band.shape[1]):
        full = full + np.diag(band[d:, d], -d) + np.diag(band[d:, d], d)
    return np.asarray(full)


def _band(effect: Latent, psi: FloatArray) -> str:
    band = effect.precision(psi, POSITIONS)
    wanted = (POSITIONS.size, effect.bandwidth + 1)
    if band.shape != wanted:
        return f"its shape is {band.shape}, not (nodes, bandwidth + 1) = {wanted}"
    return "" if np.all(np.isfinite(band)) else "it has entries that are no numbers"


def _positive(effect: Latent, psi: FloatArray) -> str:
    matrix = _dense(effect, psi, POSITIONS)
    values = np.linalg.eigvalsh(matrix)
    tolerance = 1e-9 * values[-1]
    if np.any(np.abs(values[: effect.nullity]) > tolerance):
        return f"it says nullity {effect.nullity}, but the smallest eigenvalues are {values[:3]}"
    if values[effect.nullity] <= tolerance:
        return f"eigenvalue number {effect.nullity} is {values[effect.nullity]:.3g}"
    line = np.vander(POSITIONS, effect.nullity, increasing=True)
    if line.size and np.max(np.abs(matrix @ line)) > tolerance * np.max(np.abs(line)):
        return "constants (and straight lines, for nullity 2) are not in its null space"
    return ""


def _determinant(effect: Latent, psi: FloatArray) -> str:
    values = np.linalg.eigvalsh(_dense(effect, psi, POSITIONS))[effect.nullity :]
    expected, found = float(np.log(values).sum()), effect.log_determinant(psi, POSITIONS)
    if abs(found - expected) > 1e-8 * max(1.0, abs(expected)):
        return f"it is {found!r}; the eigenvalues of the precision say {expected!r}"
    return ""


def _normalised(effect: Latent) -> str:
    """Trapezoids over a wide grid; smooth densities are integrated to many digits."""
    step = 0.1 if len(effect.start) == 1 else 0.4
    axis = np.arange(-60.0, 60.0, step)
    total = 0.0
    if len(effect.start) > 2:
        return ""
    for psi in product(axis, repeat=len(effect.start)):
        total += np.exp(effect.log_hyperprior(np.array(psi)))
    total *= step ** len(effect.start)
    return "" if abs(total - 1.0) < 1e-3 else f"its integral is {total:.6f}"


def _bridge(effect: Latent, psi: FloatArray) -> str:
    """Conditional law of new positions, from the precision over all positions."""
    union = np.sort(np.concatenate([POSITIONS, NEW]))
    old, new = np.isin(union, POSITIONS), np.isin(union, NEW)
    matrix = _dense(effect, psi, union)
    covariance = np.linalg.inv(matrix[np.ix_(new, new)])
    weights = -covariance @ matrix[np.ix_(new, old)]
    bridge = effect.bridge(psi, POSITIONS, NEW)
    found = np.zeros_like(weights)
    for column in range(bridge.sources.shape[1]):
        np.add.at(
            found, (np.arange(NEW.size), bridge.sources[:, column]), bridge.weights[:, column]
        )
    if not np.allclose(found, weights, atol=1e-8):
        return "weights of the known positions differ from what the precision says"
    if not np.allclose(bridge.variance, np.diag(covariance), rtol=1e-7):
        return f"variances are {bridge.variance}, the precision says {np.diag(covariance)}"
    return ""
