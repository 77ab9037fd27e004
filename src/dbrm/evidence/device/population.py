"""Populations of generalised linear models on a graphics processor.

The rows are copied to the device once per population; models are maximised there in batches
(`dbrm.evidence.device.program`) and scored here, by the functions of the compiled path. Models
that need damping, such as those of separated classes, are evaluated by the compiled path.
"""

from dataclasses import dataclass
from functools import cached_property
from math import log, pi
from typing import Any, TypeGuard, final

import numpy as np

from dbrm._kernels.bits import unpack_index
from dbrm._kernels.glm import NORMAL, NORMAL_LOG_GAMMA, TABLE
from dbrm._kernels.glm_device import dependent_many, profile_many, score_many
from dbrm._kernels.glm_problem import GlmContext
from dbrm._kernels.glm_rows import GAMMA, GAUSSIAN, NEGATIVE_BINOMIAL
from dbrm._typing import FloatArray, IntArray, Mask, Masks, Matrix, StatusArray
from dbrm.evidence.base import AbstractExpandable, CountCallback
from dbrm.evidence.design import Design
from dbrm.evidence.device.platform import load_program, padded_rows, padded_width
from dbrm.evidence.glm_population import AbstractGlmPopulation, GlmPopulation, Solution
from dbrm.status import Status

__all__ = ["DevicePopulation", "can_use_device"]

# Largest population of which all models are evaluated, and most models times rows: some half a
# second of an H200. Models that are not reached by leaving out columns take ten times as long.
_LARGEST, _MOST_WORK, _SLOWER = 20, 4e9, 10.0
# Models times rows below which a batch is evaluated by the compiled path.
_LEAST_WORK = 2e5
# Models handled together, and most numbers of one array of models by rows.
_BATCHES = (64, 1_024, 16_384, 65_536)
_MOST_NUMBERS = 1 << 27
# Largest error of a log likelihood, and largest move still to be made where the likelihood
# alone counts, where the information at the maximum does, and without quadratic convergence.
_ACCURATE = 1e-9
_NEAR, _STRICT, _LINEAR = 0.05, 1e-6, 1e-9
_LARGEST_PENALTY = 1e100
# Models that take more need damping. Of separated ones the likelihood approaches its supremum
# by a factor of e in every step.
_MOST_ITERATIONS = 60
# Largest change of the logarithm of a shape that has converged.
_SAME_SHAPE = 1e-8
_HALF_LOG_TWO_PI = 0.5 * log(2 * pi)


def can_use_device(population: AbstractGlmPopulation) -> TypeGuard[GlmPopulation]:
    """Whether there is a program for the models of this population.

    There is none for families and links written in Python, for undamped scoring and for an
    unknown prior precision.
    """
    if not isinstance(population, GlmPopulation):
        return False
    return population.full is not None and population.problem.prior != NORMAL_LOG_GAMMA


@final
@dataclass(frozen=True, eq=False)
class DevicePopulation(AbstractGlmPopulation, AbstractExpandable):
    """A population whose models are maximised on a device.

    Parameters
    ----------
    base
        The same population on the CPU.
    platform
        Of JAX: ``"gpu"``, or ``"cpu"`` for the same program without a graphics processor.
    """

    base: GlmPopulation
    platform: str
    chunk = _BATCHES[-1]

    @property
    def design(self) -> Design:  # type: ignore[override]
        return self.base.design

    @property
    def size(self) -> int:
        return self.base.size

    @property
    def unit_gram(self) -> Matrix:
        return self.base.unit_gram

    @property
    def context(self) -> GlmContext:
        return self.base.context

    @property
    def enumeration_limit(self) -> int:  # type: ignore[override]
        work = self.design.n_live * (1.0 if self._halves else _SLOWER)
        return max(min(_LARGEST, int(np.log2(_MOST_WORK / work))), self.base.enumeration_limit)

    @property
    def expansion_limit(self) -> int:  # type: ignore[override]
        """Of the base, unless all models can be evaluated."""
        return 0 if self.size <= self.enumeration_limit else self.base.expansion_limit

    def approximate_all(self, centre: Mask, max_size: int) -> FloatArray:
        return self.base.approximate_all(centre, max_size)

    def solve_many(self, masks: Masks, *, firth: bool) -> list[Solution]:
        return self.base.solve_many(masks, firth=firth)

    # What the device is told.

    @cached_property
    def _device(self) -> Any:
        return load_program().find_devices(self.platform)[0]

    @cached_property
    def _likelihood(self) -> Any:
        rows = self.base.problem.rows
        return load_program().Likelihood(int(rows.family), int(rows.link), bool(rows.quadratic))

    @property
    def _n_fixed(self) -> int:
        return int(self.base.problem.rows.n_fixed)

    @cached_property
    def _width(self) -> int:
        """Number of columns on the device; those beyond the population's are zero."""
        return padded_width(len(self.design.flat))

    @cached_property
    def _batches(self) -> tuple[int, ...]:
        most = _MOST_NUMBERS // min(self.design.n_live, _MOST_NUMBERS // _BATCHES[1])
        return tuple(batch for batch in _BATCHES if batch <= most)

    @cached_property
    def _rows(self) -> Any:
        design, n = self.design, self.design.n_live
        columns = np.zeros((self._width, n))
        columns[: len(design.flat)] = design.flat[:, :n]
        block = min(padded_rows(n), _MOST_NUMBERS // self._batches[-1])
        rest = (values[:n] for values in (design.mean, design.total, design.offset))
        return load_program().place_rows(self._device, columns, *rest, block=block)

    @cached_property
    def _penalty(self) -> FloatArray:
        """Prior precisions of the columns under a normal prior, else zeros."""
        problem, penalty = self.base.problem, np.zeros(self._width)
        if self._is_normal:
            unit = problem.scale[1:]
            with np.errstate(over="ignore", divide="ignore"):
                wanted = problem.prior_rate / unit / unit
            penalty[1 : unit.size + 1] = np.minimum(wanted, _LARGEST_PENALTY)
        return penalty

    @cached_property
    def _half_log_penalty(self) -> FloatArray:
        return np.asarray(0.5 * np.log(np.where(self._penalty > 0, self._penalty, 1.0)))

    @property
    def _is_scaled(self) -> bool:
        """Whether the dispersion weighs the likelihood against the prior."""
        problem = self.base.problem
        return problem.prior != TABLE and problem.rows.family in (GAMMA, GAUSSIAN)

    @property
    def _alternates(self) -> bool:
        """Whether coefficients and an unknown dispersion depend on each other."""
        rows = self.base.problem.rows
        felt = self._is_scaled or rows.family == NEGATIVE_BINOMIAL
        return felt and bool(np.isnan(rows.shape))

    @property
    def _is_normal(self) -> bool:
        return bool(self.base.problem.prior == NORMAL)

    @property
    def _is_strict(self) -> bool:
        """Whether more than the likelihood is needed of the maximum."""
        return bool(self.base.problem.strict)

    @cached_property
    def _near(self) -> float:
        if self._likelihood.quadratic:
            return _STRICT if self._is_strict or self._alternates else _NEAR
        return _LINEAR if self._is_strict or self._alternates else _NEAR

    @cached_property
    def _is_independent(self) -> bool:
        """Whether all columns together are linearly independent, and so all models."""
        if self._is_normal:
            return True
        every = np.ones((1, self.size), dtype=np.bool_)
        return not bool(dependent_many(self.base.opaque, every)[0])

    @cached_property
    def _halves(self) -> bool:
        """Whether all models are evaluated by leaving out columns, one after the other."""
        simple = self._likelihood.quadratic and not self._is_scaled and not self._alternates
        return simple and self._is_independent and self.base.problem.start.numbers[2] > 0.0

    # Any models.

    def log_evidence(self, masks: Masks) -> tuple[FloatArray, StatusArray]:
        if len(masks) * self.design.n_live < _LEAST_WORK:
            return self.base.log_evidence(masks)
        values = np.full(len(masks), -np.inf)
        statuses = np.full(len(masks), Status.RANK_DEFICIENT, dtype=np.uint8)
        masks = np.array(masks, dtype=np.bool_, order="C")
        possible = np.arange(len(masks))
        if not self._is_independent:
            undefined = np.asarray(self.base.problem.table[0])[masks.sum(axis=1)] == -np.inf
            statuses[undefined] = Status.UNDEFINED
            possible = np.flatnonzero(~undefined & ~dependent_many(self.base.opaque, masks))
        for rows in self._cut(possible):
            found = self._maximise(self._widen(masks[rows]), rows.size)
            half = masks[rows] @ self._half_log_penalty[self._n_fixed :][: self.size]
            values[rows], statuses[rows] = self._score(found, masks[rows].sum(axis=1), half)
            failed = rows[~found.converged]
            if failed.size:
                values[failed], statuses[failed] = self.base.log_evidence(masks[failed])
        return values, statuses

    def _cut(self, rows: IntArray) -> list[IntArray]:
        """Rows in batches, large ones first."""
        cut = []
        for batch in reversed(self._batches):
            while rows.size >= batch or (rows.size and batch == self._batches[0]):
                cut.append(rows[:batch])
                rows = rows[batch:]
        return cut

    def _widen(self, masks: Masks) -> Matrix:
        """All columns of models, as numbers, with null models up to the size of a batch."""
        size = next(batch for batch in self._batches if batch >= len(masks))
        wide = np.zeros((size, self._width))
        wide[:, : self._n_fixed] = 1.0
        wide[: len(masks), self._n_fixed : self._n_fixed + self.size] = masks
        return wide

    def _maximise(self, mask: Matrix, n_models: int) -> "_Maxima":
        """Newton's method, in turn with the dispersion where the two depend on each other."""
        on, problem = load_program(), self.base.problem
        rows, likelihood, penalty = self._rows, self._likelihood, self._penalty * mask
        shape = np.full(len(mask), float(problem.start.numbers[1]))
        scale = self._scale(shape)
        start = on.start_at(likelihood, rows, mask, penalty, self._starts, shape, scale)
        for _ in range(problem.max_iterations if self._alternates else 1):
            beta, values, done, separated = on.newton(
                likelihood, rows, mask, penalty, start, shape, scale, self._limits
            )
            before, shape = shape, self._profile(beta, values, shape)
            scale = self._scale(shape)
            if np.all(np.abs(np.log(shape / before))[on.to_host(done)] < _SAME_SHAPE):
                break
            start = (beta, np.full(len(mask), -np.inf))
        looked: tuple[Any, ...] = (values,)
        if self._is_strict or self._alternates:
            looked = on.finish(
                likelihood, rows, mask, penalty, beta, shape, scale, determined=self._is_normal
            )
        found = on.to_host((done, separated, *looked))
        done, separated, value, *looks = (part[:n_models] for part in found)
        if looks:
            # Coefficients that are infinite are Firth's where a prior looks at them.
            separated = np.zeros_like(separated)
        return _Maxima(done | separated, separated, value, shape[:n_models], *looks)

    def _scale(self, shape: FloatArray) -> FloatArray:
        """Factor of the likelihood beside the prior."""
        return shape if self._is_scaled else np.ones(shape.size)

    def _profile(self, beta: Any, values: Any, shape: FloatArray) -> FloatArray:
        """The dispersion that maximises the likelihood of each model, as its shape."""
        on, rows = load_program(), self.base.problem.rows
        if rows.family != NEGATIVE_BINOMIAL or not self._alternates:
            return np.asarray(profile_many(self.base.opaque, on.to_host(values)))
        table = rows.constants.squares, rows.constants.values, rows.constants.counts
        found = on.negative_binomial_shape(self._likelihood, self._rows, beta, shape, *table)
        return np.asarray(on.to_host(found))

    @cached_property
    def _limits(self) -> FloatArray:
        """Most iterations, nearness, value of a perfect fit, observations of a profiled fit."""
        problem = self.base.problem
        constants = problem.rows.constants
        profiled = problem.rows.family in (GAMMA, GAUSSIAN) and not self._is_scaled
        n = constants.n if profiled else 0.0
        most = min(problem.max_iterations, _MOST_ITERATIONS)
        return np.array([most, self._near, constants.saturated, n])

    @cached_property
    def _starts(self) -> tuple[Any, ...]:
        """The null model, and the information and score of its expansion and of the second."""
        start, k = self.base.problem.start, len(self.design.flat)
        null, gradient, right = np.zeros((3, self._width))
        hessian, second = np.zeros((2, self._width, self._width))
        null[: self._n_fixed] = start.beta
        gradient[:k], right[:k] = start.gradient, start.second_right
        hessian[:k, :k], second[:k, :k] = start.hessian, start.second_hessian
        return null, start.numbers[0], hessian, gradient, start.numbers[2] > 0, second, right

    def _score(
        self, found: "_Maxima", sizes: IntArray, half_log_penalty: FloatArray
    ) -> tuple[FloatArray, StatusArray]:
        """Log evidence and status of maxima of these numbers of free columns."""
        zeros = np.zeros(sizes.size)
        total, wald, lost = (
            zeros if part is None else part for part in (found.total, found.wald, found.lost)
        )
        fixed = self._half_log_penalty[: self._n_fixed].sum()
        normal = fixed + half_log_penalty - lost + _HALF_LOG_TWO_PI
        value, shape = found.value, found.shape
        scores, statuses = score_many(self.base.opaque, sizes, value, shape, total, wald, normal)
        statuses[found.separated & (statuses == Status.OK)] = Status.SEPARATED
        return scores, statuses

    # All models.

    def log_evidence_of_all(
        self, max_size: int, report: CountCallback | None = None
    ) -> tuple[FloatArray, StatusArray]:
        n_models = 1 << self.size
        if not self._halves or n_models * self.design.n_live < _LEAST_WORK:
            return super().log_evidence_of_all(max_size, report)
        codes, found = self._halve(report)
        sizes = np.array([self.size])
        half = self._half_log_penalty[self._n_fixed :].sum(keepdims=True)
        for column in self._order:
            sizes = np.concatenate([sizes, sizes - 1])
            half = np.concatenate([half, half - self._half_log_penalty[self._n_fixed + column]])
        values, statuses = np.empty(n_models), np.empty(n_models, dtype=np.uint8)
        values[codes], statuses[codes] = self._score(found, sizes, half)
        rest = codes[~found.converged & (sizes <= max_size)]
        values[rest], statuses[rest] = self.log_evidence(unpack_index(rest, self.size))
        large = codes[sizes > max_size]
        values[large], statuses[large] = -np.inf, Status.OK
        return values, statuses

    @cached_property
    def _expanded(self) -> tuple[FloatArray, Matrix]:
        """Coefficients and inverse information of the expansion at the fit of all columns."""
        start = self.base.problem.start
        penalty = self._penalty[: len(self.design.flat)]
        inverse = np.linalg.inv(start.second_hessian + np.diag(penalty))
        return inverse @ start.second_right, inverse

    @cached_property
    def _order(self) -> list[int]:
        """Free columns in the order in which they leave, those that matter most first.

        Then nearly all models lack a column that hardly mattered to the model they start from.
        """
        beta, inverse = self._expanded
        wald = (beta**2 / np.diag(inverse))[self._n_fixed :]
        return [int(column) for column in np.argsort(-wald, kind="stable")]

    def _halve(self, report: CountCallback | None) -> tuple[IntArray, "_Maxima"]:
        """Maxima of all subsets, and their codes; all columns together come first."""
        on, size, start = load_program(), self.size, self.base.problem.start
        n_states = max(1 << max(size - 1, 0), 2 * self._batches[0])
        states = on.place_states(self._device, n_states, self._width, *self._expanded)
        codes = np.array([(1 << size) - 1])
        parts = []
        for step, column in enumerate(self._order):
            n_before, codes = codes.size, np.concatenate([codes, codes ^ (1 << column)])
            batch = max(b for b in self._batches if b <= max(n_before, self._batches[0]))
            for place in range(0, n_before, batch):
                # The last models have no smaller ones: they replace those they come from.
                target = n_before + place if step < size - 1 else place
                places = np.array([place, target, self._n_fixed + column])
                *states, beta, numbers = on.halve(
                    self._likelihood,
                    batch,
                    self._rows,
                    self._penalty,
                    *states,
                    float(start.numbers[1]),
                    places,
                )
                models = codes[n_before + place : n_before + min(place + batch, n_before)]
                parts.append((models.size, *numbers, *self._look(models, beta)))
            if report is not None:
                report(codes.size, 1 << size)
        # The model with all columns, where the expansion was made, is evaluated as any other.
        return codes, self._gather([(1, [-np.inf], [np.inf], [np.inf], *([0.0],) * 4), *parts])

    def _look(self, models: IntArray, beta: Any) -> tuple[Any, ...]:
        """What the prior looks at beside the likelihood, of models just maximised."""
        if not self._is_strict:
            return ()
        mask = self._widen(unpack_index(models, self.size))
        shape = np.full(len(mask), float(self.base.problem.start.numbers[1]))
        found: tuple[Any, ...] = load_program().finish(
            *(self._likelihood, self._rows, mask, self._penalty * mask, beta),
            *(shape, np.ones(len(mask))),
            determined=self._is_normal,
        )
        return found

    def _gather(self, parts: list[tuple[Any, ...]]) -> "_Maxima":
        """The maxima of batches in one, from the device."""
        host = load_program().to_host([part[1:] for part in parts])
        value, error, move, *looked = (
            np.concatenate(
                [np.asarray(batch)[: part[0]] for batch, part in zip(column, parts, strict=True)]
            )
            for column in zip(*host, strict=False)
        )
        value, *looks = looked or [value]
        converged = (error < _ACCURATE) & (move <= self._near)
        shape = profile_many(self.base.opaque, value)
        return _Maxima(converged, np.zeros_like(converged), value, shape, *looks)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Maxima:
    """Maxima of models as the device returns them; of separated ones the supremum.

    `total` and `wald` are total weight and Wald statistic, `lost` what a normal prior takes off
    the likelihood; they are there where the prior looks at more than the likelihood.
    """

    converged: Mask
    separated: Mask
    value: FloatArray
    shape: FloatArray
    total: FloatArray | None = None
    wald: FloatArray | None = None
    lost: FloatArray | None = None
