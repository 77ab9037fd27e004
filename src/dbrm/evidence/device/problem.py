"""One population as the device is told of it, and the scores of maxima found there."""

from dataclasses import dataclass
from functools import cached_property
from math import log, pi
from typing import Any, final

import numpy as np

from dbrm._kernels.glm import NORMAL, TABLE
from dbrm._kernels.glm_device import dependent_many, score_many
from dbrm._kernels.glm_rows import GAMMA, GAUSSIAN, NEGATIVE_BINOMIAL
from dbrm._typing import FloatArray, IntArray, Mask, Masks, Matrix, StatusArray
from dbrm.evidence.device.platform import load_program, padded_rows, padded_width
from dbrm.evidence.glm_population import GlmPopulation
from dbrm.status import Status

__all__ = ["BATCHES", "DeviceProblem", "Maxima"]

# Models handled together, and most numbers of one array of models by rows.
BATCHES = (64, 1_024, 16_384, 65_536)
_MOST_NUMBERS = 1 << 27
# Largest move of a linear predictor still to be made where the likelihood alone counts, where the
# information at the maximum does, and without quadratic convergence.
_NEAR, _STRICT, _LINEAR = 0.05, 1e-6, 1e-9
_LARGEST_PENALTY = 1e100
# Models that take more are left to the compiled path. Of separated ones the likelihood approaches
# its supremum by a factor of e in every step.
_MOST_ITERATIONS = 60
_HALF_LOG_TWO_PI = 0.5 * log(2 * pi)


@final
@dataclass(frozen=True, eq=False)
class DeviceProblem:
    """What the programs need to know of a population.

    Parameters
    ----------
    base
        The population on the CPU.
    platform
        Of JAX.
    """

    base: GlmPopulation
    platform: str

    @cached_property
    def device(self) -> Any:
        return load_program().find_devices(self.platform)[0]

    @cached_property
    def likelihood(self) -> Any:
        rows = self.base.problem.rows
        return load_program().Likelihood(int(rows.family), int(rows.link), bool(rows.quadratic))

    @property
    def n_fixed(self) -> int:
        """Number of columns that every model has; those that are settled are the last of them."""
        return int(self.base.problem.rows.n_fixed) + self.base.n_settled

    @cached_property
    def width(self) -> int:
        """Number of columns on the device; those beyond the population's are zero."""
        return padded_width(len(self.base.design.flat))

    @cached_property
    def batches(self) -> tuple[int, ...]:
        # A model has as many numbers as rows, or as the square of its columns.
        numbers = max(self.base.design.n_live, self.width**2)
        most = _MOST_NUMBERS // min(numbers, _MOST_NUMBERS // BATCHES[1])
        return tuple(batch for batch in BATCHES if batch <= most)

    @cached_property
    def rows(self) -> Any:
        design, n = self.base.design, self.base.design.n_live
        columns = np.zeros((self.width, n))
        columns[: len(design.flat)] = design.flat[:, :n]
        block = min(padded_rows(n), _MOST_NUMBERS // self.batches[-1])
        rest = (values[:n] for values in (design.mean, design.total, design.offset))
        return load_program().place_rows(self.device, columns, *rest, block=block)

    @cached_property
    def penalty(self) -> FloatArray:
        """Prior precisions of the columns under a normal prior, else zeros."""
        problem, penalty = self.base.problem, np.zeros(self.width)
        if self.is_normal:
            unit = problem.scale[1:]
            with np.errstate(over="ignore", divide="ignore"):
                wanted = problem.prior_rate / unit / unit
            penalty[1 : unit.size + 1] = np.minimum(wanted, _LARGEST_PENALTY)
        return penalty

    @cached_property
    def half_log_penalty(self) -> FloatArray:
        return np.asarray(0.5 * np.log(np.where(self.penalty > 0, self.penalty, 1.0)))

    @property
    def is_scaled(self) -> bool:
        """Whether the dispersion weighs the likelihood against the prior."""
        problem = self.base.problem
        return problem.prior != TABLE and problem.rows.family in (GAMMA, GAUSSIAN)

    @property
    def alternates(self) -> bool:
        """Whether coefficients and an unknown dispersion depend on each other."""
        rows = self.base.problem.rows
        felt = self.is_scaled or rows.family == NEGATIVE_BINOMIAL
        return felt and bool(np.isnan(rows.shape))

    @property
    def is_normal(self) -> bool:
        return bool(self.base.problem.prior == NORMAL)

    @property
    def is_strict(self) -> bool:
        """Whether more than the likelihood is needed of the maximum."""
        return bool(self.base.problem.strict)

    @cached_property
    def near(self) -> float:
        if self.likelihood.quadratic:
            return _STRICT if self.is_strict or self.alternates else _NEAR
        return _LINEAR if self.is_strict or self.alternates else _NEAR

    @cached_property
    def is_independent(self) -> bool:
        """Whether all columns together are linearly independent, and so all models."""
        if self.is_normal:
            return True
        return not bool(self.dependent(np.ones((1, self.base.size), dtype=np.bool_))[0])

    def dependent(self, masks: Masks) -> Mask:
        """Which models have linearly dependent columns."""
        masks = np.pad(masks, ((0, 0), (self.base.n_settled, 0)), constant_values=True)
        return np.asarray(dependent_many(self.base.opaque, masks))

    @cached_property
    def limits(self) -> FloatArray:
        """Most iterations, nearness, value of a perfect fit, observations of a profiled fit."""
        problem = self.base.problem
        constants = problem.rows.constants
        profiled = problem.rows.family in (GAMMA, GAUSSIAN) and not self.is_scaled
        n = constants.n if profiled else 0.0
        most = min(problem.max_iterations, _MOST_ITERATIONS)
        return np.array([most, self.near, constants.saturated, n])

    @cached_property
    def starts(self) -> tuple[Any, ...]:
        """The null model, and the information and score of its expansion and of the second."""
        start, k = self.base.problem.start, len(self.base.design.flat)
        null, gradient, right = np.zeros((3, self.width))
        hessian, second = np.zeros((2, self.width, self.width))
        null[: start.beta.size] = start.beta
        gradient[:k], right[:k] = start.gradient, start.second_right
        hessian[:k, :k], second[:k, :k] = start.hessian, start.second_hessian
        return null, start.numbers[0], hessian, gradient, start.numbers[2] > 0, second, right

    def cut(self, rows: IntArray) -> list[IntArray]:
        """Rows in batches, large ones first."""
        cut = []
        for batch in reversed(self.batches):
            while rows.size >= batch or (rows.size and batch == self.batches[0]):
                cut.append(rows[:batch])
                rows = rows[batch:]
        return cut

    def widen(self, masks: Masks) -> Matrix:
        """All columns of models, as numbers, with null models up to the size of a batch."""
        size = next(batch for batch in self.batches if batch >= len(masks))
        wide = np.zeros((size, self.width))
        wide[:, : self.n_fixed] = 1.0
        wide[: len(masks), self.n_fixed : self.n_fixed + self.base.size] = masks
        return wide

    def score(
        self, found: "Maxima", sizes: IntArray, half_log_penalty: FloatArray
    ) -> tuple[FloatArray, StatusArray]:
        """Log evidence and status of maxima with these numbers of columns of the masks."""
        zeros = np.zeros(sizes.size)
        total, wald, lost = (
            zeros if part is None else part for part in (found.total, found.wald, found.lost)
        )
        fixed = self.half_log_penalty[: self.n_fixed].sum()
        normal = fixed + half_log_penalty - lost + _HALF_LOG_TWO_PI
        value, shape = found.value, found.shape
        sizes = sizes + self.base.n_settled
        scores, statuses = score_many(self.base.opaque, sizes, value, shape, total, wald, normal)
        statuses[found.separated & (statuses == Status.OK)] = Status.SEPARATED
        return scores, statuses


@final
@dataclass(frozen=True, slots=True, eq=False)
class Maxima:
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
