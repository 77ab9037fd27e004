"""Populations of generalised linear models on a graphics processor.

The rows are copied to the device once per population; models are maximised there in batches
(`dbrm.evidence.device.program`) and scored here, by the functions of the compiled path, which
evaluates the models that do not converge there.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard, final

import numpy as np

from dbrm._kernels.bits import unpack_index
from dbrm._kernels.glm import NORMAL_LOG_GAMMA
from dbrm._kernels.glm_problem import GlmContext
from dbrm._typing import FloatArray, Mask, Masks, Matrix, StatusArray
from dbrm.evidence.base import AbstractExpandable, CountCallback
from dbrm.evidence.design import Design
from dbrm.evidence.device.halving import can_halve, evaluate_all
from dbrm.evidence.device.newton import evaluate_models
from dbrm.evidence.device.problem import BATCHES, DeviceProblem
from dbrm.evidence.glm_population import AbstractGlmPopulation, GlmPopulation, Solution
from dbrm.status import Status

__all__ = ["DevicePopulation", "can_use_device"]

# Largest population of which all models are evaluated, and most models times rows: some half a
# second of an H200. Models that are not reached by leaving out columns take ten times as long;
# those that approach a supremum, sixty steps.
_LARGEST, _MOST_WORK, _SLOWER, _SLOWEST = 20, 4e9, 10.0, 60.0
# Models times rows below which a batch is evaluated by the compiled path.
_LEAST_WORK = 2e5


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
    chunk = BATCHES[-1]

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
        if self.size > _LARGEST:
            return self.base.enumeration_limit
        factor = 1.0 if self._halves else _SLOWEST if self._is_separated else _SLOWER
        n_columns = max(self.size + self.base.n_settled, _LARGEST)
        work = self.design.n_live * factor * (n_columns / _LARGEST) ** 2
        return max(min(_LARGEST, int(np.log2(_MOST_WORK / work))), self.base.enumeration_limit)

    @property
    def expansion_limit(self) -> int:  # type: ignore[override]
        """Of the base, unless all models can be evaluated."""
        return 0 if self.size <= self.enumeration_limit else self.base.expansion_limit

    def approximate_all(self, centre: Mask, max_size: int) -> FloatArray:
        return self.base.approximate_all(centre, max_size)

    def solve_many(self, masks: Masks, *, firth: bool) -> list[Solution]:
        return self.base.solve_many(masks, firth=firth)

    @cached_property
    def _problem(self) -> DeviceProblem:
        return DeviceProblem(self.base, self.platform)

    @cached_property
    def _halves(self) -> bool:
        """Whether all models can be evaluated by leaving out columns of the one with all."""
        return can_halve(self._problem) and not self._is_separated

    @cached_property
    def _is_separated(self) -> bool:
        """Whether all columns together separate the classes."""
        every = np.ones((1, self.size), dtype=np.bool_)
        return bool(self.base.log_evidence(every)[1][0] == Status.SEPARATED)

    def log_evidence(self, masks: Masks) -> tuple[FloatArray, StatusArray]:
        if len(masks) * self.design.n_live < _LEAST_WORK:
            return self.base.log_evidence(masks)
        return evaluate_models(self._problem, masks)

    def log_evidence_of_all(
        self, max_size: int, report: CountCallback | None = None
    ) -> tuple[FloatArray, StatusArray]:
        if not self._halves or (1 << self.size) * self.design.n_live < _LEAST_WORK:
            return super().log_evidence_of_all(max_size, report)
        values, statuses, converged = evaluate_all(self._problem, report)
        sizes = np.bitwise_count(np.arange(1 << self.size, dtype=np.uint32))
        rest = np.flatnonzero(~converged & (sizes <= max_size))
        values[rest], statuses[rest] = self.log_evidence(unpack_index(rest, self.size))
        values[sizes > max_size], statuses[sizes > max_size] = -np.inf, Status.OK
        return values, statuses
