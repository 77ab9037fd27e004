"""The same models with any `Family` and `Link` written in Python.

Slower than the compiled population, with the same stopping rule and the same scores; for
built-in families it is the twin against which the kernels are tested. It uses nothing of
a family but `linearise` and `estimate_dispersion`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import exp, lgamma, log, pi
from typing import Any, Self, final

import numpy as np
import scipy.linalg

from dbrm._kernels.glm import NORMAL, NORMAL_LOG_GAMMA, TABLE
from dbrm._typing import Column, FloatArray, Mask, Masks, Matrix, StatusArray
from dbrm.evidence.base import AbstractExpandable
from dbrm.evidence.design import Design
from dbrm.evidence.families.base import Family
from dbrm.evidence.glm_expansion import RIDGE, Expansion, columns_to_expand
from dbrm.evidence.glm_population import (
    DEPENDENCE_TOLERANCE,
    AbstractGlmPopulation,
    Solution,
    compact,
)
from dbrm.evidence.glm_prior import GlmPrior
from dbrm.evidence.links import Link
from dbrm.status import Status

__all__ = ["PythonPopulation"]

# A linear predictor that still moves this much while the likelihood stands still.
_RUNAWAY = 0.05
# What is left of the log likelihood, and of the linear predictor, at the maximum.
_REMAINDER, _STILL = 1e-11, 1e-8
# A maximum that rounding hides from the line search.
_NEAR = 1e-6
# Step of numerical derivatives, which decide about the direction; longest step in the log
# dispersion.
_SMALL, _LARGEST_TURN = 1e-4, 2.0


@final
@dataclass(slots=True, eq=False)
class _State:
    """Coefficients of one model, and value, score and information there."""

    beta: FloatArray
    eta: Column
    dispersion: float
    value: float
    score: Column
    weight: Column


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Move:
    """A step of the coefficients, the linear predictor and the log dispersion."""

    direction: FloatArray
    step: Column
    turn: float
    decrement: float
    jump: float


@final
@dataclass(frozen=True, eq=False)
class PythonPopulation(AbstractGlmPopulation, AbstractExpandable):
    """Standardised columns and the null model of one response; plain NumPy.

    ``inner_eta`` is a linear predictor inside the domain, near that of the mean response.
    """

    design: Design
    family: Family
    link: Link
    prior: GlmPrior
    n_fixed: int
    response: Column
    weights: Column
    trials: Column
    inner_eta: float
    max_iterations: int
    expansion_limit = 18

    @property
    def size(self) -> int:
        return int(self.design.flat.shape[0]) - self.n_fixed

    @cached_property
    def _columns(self) -> Matrix:
        return self.design.flat[:, : self.design.n_live]

    @cached_property
    def unit_gram(self) -> Matrix:
        return self.design.unit_gram()

    @property
    def context(self) -> Self:
        return self

    def log_evidence(self, masks: Masks) -> tuple[FloatArray, StatusArray]:
        pairs = [self.evaluate(mask) for mask in masks]
        values = np.array([value for value, _ in pairs], dtype=np.float64)
        return values, np.array([status for _, status in pairs], dtype=np.uint8)

    def evaluate(self, mask: Mask) -> tuple[float, Status]:
        """Log evidence and status of one mask."""
        members = self._members(mask)
        row = members.size - self.n_fixed
        if self.prior.kind == TABLE and self.prior.table.constant[row] == -np.inf:
            return -np.inf, Status.UNDEFINED
        if self.prior.kind == NORMAL_LOG_GAMMA:
            return self._integrate(members)
        if self.prior.kind == TABLE and not self._independent(members):
            return -np.inf, Status.RANK_DEFICIENT
        state, status = self._fit(members, self._penalty(members, self.prior.rate))
        if self.prior.kind == NORMAL:
            return self._score_normal(state, members, self.prior.rate), status
        information, wald = self._wald(state, members) if self.prior.strict else (0.0, 0.0)
        score = self.prior.table.value(state.value, information, wald, row)
        return score + self.prior.dispersion, status

    def approximate_all(self, centre: Mask, max_size: int) -> FloatArray:
        n_fixed, n = self.n_fixed, self.design.n_live
        members = columns_to_expand(self.unit_gram, self._members(centre), n)
        every = self._members(np.ones(centre.size, dtype=np.bool_))
        penalty = None
        if self.prior.kind == TABLE:
            ridge = np.where(members < n_fixed, 0.0, RIDGE)
        else:
            penalty = self._penalty(every, self._typical_precision)[n_fixed:]
            ridge = self._penalty(members, self._typical_precision)
        state, _ = self._fit(members, ridge)
        right = state.weight * (state.eta - self.design.offset[:n]) + state.score
        return Expansion(
            (self._columns * state.weight) @ self._columns.T,
            self._columns @ right,
            float(np.sum(right**2 / state.weight)),
            n_fixed,
            compact(self.prior.table.arguments),
            penalty=penalty,
        ).approximate_all(max_size)

    def solve_many(self, masks: Masks, *, firth: bool) -> list[Solution]:  # noqa: ARG002
        """Maximum of each model; Firth's correction is for compiled families only."""
        return [self._solve(mask) for mask in masks]

    def _solve(self, mask: Mask) -> Solution:
        members = self._members(mask)
        penalty = self._penalty(members, self._typical_precision)
        state, _ = self._fit(members, penalty)
        return Solution(
            state.value,
            state.dispersion,
            state.beta,
            np.asarray(np.linalg.pinv(self._information(state, members, penalty), hermitian=True)),
        )

    @property
    def _typical_precision(self) -> float:
        if self.prior.kind == NORMAL_LOG_GAMMA:
            return self.prior.shape / self.prior.rate
        return self.prior.rate

    @property
    def _units(self) -> FloatArray:
        return self.prior.units(self.design.scale)

    def _members(self, mask: Mask) -> Any:
        return np.concatenate([np.arange(self.n_fixed), self.n_fixed + np.flatnonzero(mask)])

    def _independent(self, members: Any) -> bool:
        sub = self.unit_gram[np.ix_(members, members)].copy()
        if np.any(np.diag(sub) < 0.5):
            return False
        for j in range(len(sub)):
            if not sub[j, j] > DEPENDENCE_TOLERANCE:
                return False
            sub[j + 1 :, j + 1 :] -= np.outer(sub[j + 1 :, j], sub[j, j + 1 :]) / sub[j, j]
        return True

    def _penalty(self, members: Any, precision: float) -> FloatArray:
        with np.errstate(over="ignore"):
            penalty = np.minimum(precision / self._units[members] ** 2, 1e100)
        penalty[0] = 0.0
        return np.asarray(penalty)

    def _at(self, beta: FloatArray, eta: Column, dispersion: float) -> _State:
        """Value, score and expected information at a linear predictor."""
        density, score, information = self.family.linearise(
            self.link, eta, self.response, dispersion, self.trials
        )
        value = float(self.weights @ density)
        value = value if value < np.inf else -np.inf
        weights = self.weights
        return _State(beta, eta, dispersion, value, weights * score, weights * information)

    @cached_property
    def _null(self) -> _State:
        members = np.arange(self.n_fixed)
        offset = self.design.offset[: self.design.n_live]
        beta = np.zeros(self.n_fixed)
        beta[0] = self.inner_eta - float(np.average(offset, weights=self.weights * self.trials))
        start = self._at(beta, offset + beta[0], self.family.given_dispersion or 1.0)
        return self._maximise(start, members, self._penalty(members, self._typical_precision))[0]

    def _fit(self, members: Any, penalty: FloatArray) -> tuple[_State, Status]:
        null = self._null
        beta = np.zeros(members.size)
        beta[: self.n_fixed] = null.beta
        return self._maximise(self._at(beta, null.eta, null.dispersion), members, penalty)

    def _maximise(self, state: _State, members: Any, penalty: FloatArray) -> tuple[_State, Status]:
        """Maximise over coefficients and log dispersion together."""
        columns = self._columns[members]
        for _ in range(self.max_iterations):
            move = self._direction(state, columns, penalty)
            if move.decrement < _REMAINDER and move.jump > _RUNAWAY:
                state.value += 0.5 * move.decrement
                return state, Status.SEPARATED
            if move.decrement < _REMAINDER and move.jump < _STILL:
                return state, Status.OK
            new = self._advance(state, move, penalty)
            if new is None:
                near = move.decrement < _NEAR
                return state, Status.OK if near else Status.NOT_CONVERGED
            state = new
        return state, Status.NOT_CONVERGED

    def _direction(self, state: _State, columns: Matrix, penalty: FloatArray) -> _Move:
        """Newton's direction, with the observed information if that is positive definite."""
        gradient = columns @ state.score - penalty * state.beta
        solve = self._solver(state, columns, penalty)
        direction, turn = solve(gradient), 0.0
        decrement = float(gradient @ direction)
        if self.family.estimates_dispersion:
            slope, bend, cross = self._in_dispersion(state)
            pull = columns @ cross
            answer = solve(pull)
            left = -bend - float(pull @ answer)
            if left > 0.0:
                turn = (slope + float(pull @ direction)) / left
                turn = min(max(turn, -_LARGEST_TURN), _LARGEST_TURN)
                direction = direction + turn * answer
            else:
                turn = float(np.sign(slope))
            decrement = float(gradient @ direction) + slope * turn
        step = direction @ columns
        return _Move(direction, step, turn, decrement, float(np.max(np.abs(step), initial=0.0)))

    def _solver(
        self, state: _State, columns: Matrix, penalty: FloatArray
    ) -> Callable[[FloatArray], FloatArray]:
        """Solve equations with the information about the coefficients."""
        ahead, _ = self.family.derivatives(
            self.link, state.eta + _SMALL, self.response, state.dispersion, self.trials
        )
        observed = (state.score - self.weights * ahead) / _SMALL
        for weight in (observed, state.weight):
            information = (columns * weight) @ columns.T + np.diag(penalty)
            factor, failed = scipy.linalg.lapack.dpotrf(information, lower=1)
            if failed == 0 and np.isfinite(factor).all():
                return lambda right, f=factor: np.asarray(  # type: ignore[misc]
                    scipy.linalg.lapack.dpotrs(f, right, lower=1)[0]
                )
        return lambda right: np.asarray(scipy.linalg.lstsq(information, right)[0])

    def _in_dispersion(self, state: _State) -> tuple[float, float, Column]:
        """Two derivatives in the log dispersion, and that of the score; by differences."""
        beta, eta = state.beta, state.eta
        above = self._at(beta, eta, state.dispersion * exp(_SMALL))
        below = self._at(beta, eta, state.dispersion * exp(-_SMALL))
        slope = (above.value - below.value) / (2.0 * _SMALL)
        bend = (above.value - 2.0 * state.value + below.value) / _SMALL**2
        return slope, bend, (above.score - below.score) / (2.0 * _SMALL)

    def _advance(self, state: _State, move: _Move, penalty: FloatArray) -> _State | None:
        before = state.value - 0.5 * float(penalty @ state.beta**2)
        fraction = 1.0
        for _ in range(40):
            beta = state.beta + fraction * move.direction
            dispersion = state.dispersion * exp(fraction * move.turn)
            new = self._at(beta, state.eta + fraction * move.step, dispersion)
            if new.value - 0.5 * float(penalty @ beta**2) >= before - 1e-13 * (1 + abs(before)):
                return new
            fraction *= 0.5
        return None

    def _information(self, state: _State, members: Any, penalty: FloatArray) -> Matrix:
        columns = self._columns[members]
        return np.asarray((columns * state.weight) @ columns.T + np.diag(penalty))

    def _wald(self, state: _State, members: Any) -> tuple[float, float]:
        information = self._information(state, members, np.zeros(members.size))
        slopes = state.beta[1:]
        cross = float(information[0, 1:] @ slopes)
        wald = float(slopes @ information[1:, 1:] @ slopes) - cross**2 / information[0, 0]
        return log(information[0, 0]), max(wald, 0.0)

    def _score_normal(self, state: _State, members: Any, precision: float) -> float:
        penalty = self._penalty(members, precision)
        determinant = float(np.linalg.slogdet(self._information(state, members, penalty))[1])
        half = 0.5 * (members.size - 1) * log(precision) - float(
            np.sum(np.log(self._units[members[1:]]))
        )
        value = state.value - 0.5 * float(penalty @ state.beta**2) + half
        return float(value + 0.5 * log(2 * pi) - 0.5 * determinant + self.prior.dispersion)

    def _integrate(self, members: Any) -> tuple[float, Status]:
        """Trapezoidal rule over the log precision, from tight to loose priors."""
        shape, rate = self.prior.shape, self.prior.rate
        top, step = log(max(shape, 1.0) / rate) + 5.0, 0.25
        state, status = self._fit(members, self._penalty(members, float(np.exp(top))))
        if members.size == 1:
            return self._score_normal(state, members, 1.0), status
        terms: list[float] = []
        for node in range(600):
            psi = top - step * node
            precision = float(np.exp(psi))
            penalty = self._penalty(members, precision)
            state, status = self._maximise(state, members, penalty)
            term = self._score_normal(state, members, precision) - lgamma(shape)
            terms.append(term + shape * (log(rate) + psi) - rate * precision)
            loose = np.max(penalty / np.diag(self._information(state, members, penalty))) < 1e-3
            if loose and terms[-1] < max(terms) - 40.0:
                break
        return float(np.logaddexp.reduce(terms)) + log(step), status
