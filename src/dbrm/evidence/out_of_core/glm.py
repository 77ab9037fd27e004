r"""Generalised linear models of rows in blocks: the quadratic expansion, and streamed Newton.

The likelihood is expanded as for rows in memory (`dbrm.evidence.glm_expansion`): the fit of all
columns of a population takes two or three passes over the rows, and every model follows from its
score and information without another one. Errors of a model :math:`\Delta` nats behind are of order
:math:`\Delta^{3/2} / \sqrt n`. Models that are worth an exact evaluation start from the expansion
and share their passes.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, final

import numpy as np

from dbrm._typing import FloatArray, IntArray, Mask, Masks, Matrix, StatusArray
from dbrm.data import AbstractRows, Block, read_into_memory
from dbrm.data.out_of_core.batches import BLOCK_ROWS
from dbrm.evidence.base import AbstractExpandable, CountCallback, ModelFit
from dbrm.evidence.design import independent_columns
from dbrm.evidence.device import DeviceRows
from dbrm.evidence.families import CompiledFamily
from dbrm.evidence.gaussian import GaussianPopulation
from dbrm.evidence.glm import GlmEngine
from dbrm.evidence.glm_expansion import RIDGE, Expansion
from dbrm.evidence.glm_prior import glm_prior
from dbrm.evidence.least_squares import DEPENDENCE_TOLERANCE
from dbrm.evidence.links import Link
from dbrm.evidence.out_of_core.base import AbstractColumns, AbstractOutOfCoreEngine, Joined, add_up
from dbrm.evidence.out_of_core.newton import CountRows, Newton, Passes, information_unit
from dbrm.evidence.score import GlmTable
from dbrm.status import Status

__all__ = ["OutOfCoreGlmEngine", "OutOfCoreGlmPopulation"]

# Gain that another step must promise: of a fit around which the likelihood is expanded, of one
# whose log evidence is compared with others, and of one that is reported.
_NEAR, _COMPARED, _REPORTED = 0.3, 1e-3, 1e-6
# Numbers of a population that are held in memory while its models are compared, rather than
# computed in every pass.
_MOST_HELD = 20_000_000
# The same on a device, numbers of all rows that are read into memory for it, and rows of a block
# there.
_MOST_ON_DEVICE = 1_000_000_000
_MOST_READ = 500_000_000
_DEVICE_ROWS = 1 << 18
# Passes after which the likelihood is expanded where the fit is.
_MOST_PASSES = 12


@final
@dataclass(frozen=True, eq=False)
class OutOfCoreGlmEngine(AbstractOutOfCoreEngine):
    """Laplace log evidence from rows in blocks, for families without a dispersion.

    Parameters
    ----------
    rows
        The rows with their response.
    sample
        Some of the rows, from which columns get their location and scale.
    sample_engine
        The same likelihood on these rows alone: fits start from it.
    always
        Columns that every model contains besides the intercept.
    platform
        Of JAX, on which models are evaluated; ``None`` for compiled code on the CPU.
    """

    rows: AbstractRows
    sample: Block
    sample_engine: GlmEngine
    always: AbstractColumns
    platform: str | None = None

    def __post_init__(self) -> None:
        # A pass that also finds responses outside the family's domain, before the search.
        self._constants  # noqa: B018
        # Before chains ask for it, each in its own thread.
        self._device_rows  # noqa: B018

    @property
    def _family(self) -> CompiledFamily:
        family = self.sample_engine.family
        assert isinstance(family, CompiledFamily)
        return family

    @cached_property
    def _constants(self) -> FloatArray:
        return np.asarray(add_up(self.rows.map(CountRows(self._family), ())))

    @property
    def log_constant(self) -> float:
        """Terms of the log likelihood that never change."""
        return float(self._constants[1])

    def prices(self, sizes: IntArray) -> GlmTable:
        """What models of these sizes have beside their maximised log likelihood."""
        n = float(self._constants[0])
        return glm_prior(self.sample_engine.prior, sizes, n, dispersed=False).table

    @cached_property
    def null(self) -> Newton:
        """The fit of the columns that every model contains."""
        passes, start = self._start(self.always.take(np.zeros(0, dtype=np.int64)))
        model = Newton(np.arange(start.size), start, tolerance=_REPORTED)
        passes.fit([model])
        return model

    def prepare(self, columns: AbstractColumns) -> "OutOfCoreGlmPopulation":
        passes, start = self._start(columns)
        if passes.on_device is None and self._can_hold(start.size, _MOST_HELD):
            passes = passes.hold()
        return self._population(passes, start)

    def _can_hold(self, n_columns: int, most: int) -> bool:
        return n_columns * self.n_rows <= most and not self.rows.is_remote

    def _population(self, passes: Passes, start: FloatArray) -> "OutOfCoreGlmPopulation":
        """Fit all columns, from where a fit of the sample is or, if that misleads, a constant."""
        null = np.zeros(start.size)
        null[: self.null.members.size] = self.null.coefficients
        while True:
            full = Newton(
                np.arange(start.size),
                np.where(np.isfinite([1.0, *passes.scale]), start, 0.0),
                tolerance=_NEAR,
                ridge=RIDGE,
                behind=(null, self.null.value),
            )
            bad = passes.fit([full], _MOST_PASSES)
            if not bad.any():
                return OutOfCoreGlmPopulation(self, passes, full)
            # Not finite in some row that is not in the sample: left out altogether.
            passes = replace(passes, scale=np.where(bad, inf, passes.scale))

    def _start(self, columns: AbstractColumns) -> tuple[Passes, FloatArray]:
        """Columns standardised by the sample, and the coefficients of its fit."""
        both = Joined(self.always, columns)
        made = both.make(self.sample)
        matrix = np.column_stack(made) if made else np.empty((self.sample.n_rows, 0))
        location, scale = matrix.mean(axis=0), matrix.std(axis=0)
        scale[~(scale > 0)] = 1.0
        raw = self.sample_engine.project(matrix)
        start = np.concatenate([[raw[0] + location @ raw[1:]], scale * raw[1:]])
        link = self.sample_engine.link
        assert isinstance(link, Link)
        assert link.code is not None
        passes = Passes(self._rows_at_hand, self._family.code, link.code, both, location, scale)
        if self._device_rows is not None and self._can_hold(start.size, _MOST_ON_DEVICE):
            passes = passes.hold_on(self._device_rows)
        return passes, start

    @cached_property
    def _rows_at_hand(self) -> AbstractRows:
        """The rows, read into memory for a device, which asks for few columns many times."""
        if self.platform is None or self.rows.is_remote:
            return self.rows
        fits = self.n_rows * (len(self.rows.names) + 4) <= _MOST_READ
        return read_into_memory(self.rows, _DEVICE_ROWS) if fits else self.rows

    @cached_property
    def _device_rows(self) -> DeviceRows | None:
        """The rows on a device, if there is one."""
        link = self.sample_engine.link
        if self.platform is None:
            return None
        assert isinstance(link, Link)
        assert link.code is not None
        held = self._rows_at_hand is not self.rows
        block_rows = _DEVICE_ROWS if held else BLOCK_ROWS
        return DeviceRows(self.platform, self._family.code, link.code, self.n_rows, block_rows)

    def _fit_together(self, columns: AbstractColumns, masks: Masks) -> list[ModelFit]:
        return self._population(*self._start(columns)).fit(masks)


@final
@dataclass(frozen=True, eq=False)
class OutOfCoreGlmPopulation(AbstractExpandable):
    """Columns over all rows: exact evaluations in passes, all models by the expansion.

    Loops that ask for one mask after the other get the expansion at the fit of all columns.
    """

    engine: OutOfCoreGlmEngine
    passes: Passes
    full: Newton
    expansion_limit = 18
    enumeration_limit = GaussianPopulation.enumeration_limit

    @property
    def _n_fixed(self) -> int:
        return self.engine.always.size + 1

    @property
    def size(self) -> int:
        return int(self.full.members.size) - self._n_fixed

    @cached_property
    def _gram(self) -> Matrix:
        """Information of all columns, each in units of its own."""
        unit = information_unit(self.full.information)
        return np.asarray(self.full.information / np.outer(unit, unit))

    @cached_property
    def _fixed(self) -> IntArray:
        """Fixed columns that are linearly independent."""
        return self._independent(np.arange(self._n_fixed))

    def _independent(self, wanted: IntArray) -> IntArray:
        inside = self._gram[np.ix_(wanted, wanted)]
        return wanted[independent_columns(inside, DEPENDENCE_TOLERANCE, wanted.size)]

    @cached_property
    def _expansion(self) -> Expansion:
        return self._expand(self.full.coefficients, self.full)

    def _expand(self, coefficients: FloatArray, at: Newton) -> Expansion:
        """The expansion from the sums over all rows at these coefficients."""
        right = at.information @ coefficients + at.score
        # The sum of squared residuals cancels; about one a row keeps all sums positive.
        left = float(self.engine.n_rows)
        sizes = np.arange(self._fixed.size - 1, self._fixed.size + self.size)
        return Expansion(
            at.information,
            right,
            float(coefficients @ (right + at.score)) + left,
            self._n_fixed,
            self.engine.prices(sizes).arguments,
            constant=at.value + self.engine.log_constant + 0.5 * left,
        )

    @cached_property
    def _gaussian(self) -> GaussianPopulation:
        return self._expansion.to_gaussian()

    @property
    def context(self) -> Any:
        return self._gaussian.context

    def log_evidence_of_all(
        self, max_size: int, report: CountCallback | None = None
    ) -> tuple[FloatArray, StatusArray]:
        return self._gaussian.log_evidence_of_all(max_size, report)

    def approximate_all(self, centre: Mask, max_size: int) -> FloatArray:
        if centre.all():
            return self._expansion.approximate_all(max_size)
        model = self._begin(self._members(centre), _NEAR)
        self.passes.fit([model])
        beta = np.zeros(self.full.members.size)
        beta[model.members] = model.coefficients
        there = Newton(self.full.members, beta, tolerance=inf)
        self.passes.fit([there])
        return self._expand(beta, there).approximate_all(max_size)

    def log_evidence(self, masks: Masks) -> tuple[FloatArray, StatusArray]:
        models = [self._begin(self._members(mask), _COMPARED) for mask in masks]
        self.passes.fit(models)
        pairs = [self._score(model, mask) for model, mask in zip(models, masks, strict=True)]
        values = np.array([value for value, _ in pairs], dtype=np.float64)
        return values, np.array([status for _, status in pairs], dtype=np.uint8)

    def fit(self, masks: Masks) -> list[ModelFit]:
        """Fit models with care."""
        models = [self._begin(self._members(mask), _REPORTED) for mask in masks]
        self.passes.fit(models)
        return [self._report(model, mask) for model, mask in zip(models, masks, strict=True)]

    def _members(self, mask: Mask) -> IntArray:
        """The columns of a mask that are linearly independent."""
        free = self._n_fixed + np.flatnonzero(mask)
        return self._independent(np.concatenate([self._fixed, free]))

    def _begin(self, members: IntArray, tolerance: float) -> Newton:
        """A model at its maximum under the expansion; the null model at its own."""
        if members.size == self._fixed.size and self._fixed.size == self._n_fixed:
            return self.engine.null
        inside = self._expansion.gram[np.ix_(members, members)]
        start = np.asarray(np.linalg.solve(inside, self._expansion.cross[members]))
        return Newton(members, start, tolerance=tolerance)

    def _score(self, model: Newton, mask: Mask) -> tuple[float, Status]:
        size = model.members.size - 1
        if size < self._fixed.size - 1 + int(mask.sum()):
            return -inf, Status.RANK_DEFICIENT
        price = float(self.engine.prices(np.array([size])).constant[0])
        value = model.value + model.gain + self.engine.log_constant + price
        return value, Status.OK if model.done else Status.NOT_CONVERGED

    def _report(self, model: Newton, mask: Mask) -> ModelFit:
        """The fit in terms of the raw columns; zero, with variance zero, for dependent ones."""
        size = self.full.members.size
        scaled, wide = np.zeros(size), np.zeros((size, size))
        scaled[model.members] = model.coefficients + model.step
        inverse = np.linalg.pinv(model.information, hermitian=True)
        wide[np.ix_(model.members, model.members)] = inverse
        location, scale = self.passes.location, self.passes.scale
        jacobian = np.diag(np.concatenate([[1.0], 1.0 / scale]))
        jacobian[0, 1:] = -location / scale
        wanted = np.concatenate([np.arange(self._n_fixed), self._n_fixed + np.flatnonzero(mask)])
        value, status = self._score(model, mask)
        return ModelFit(
            log_evidence=value,
            log_likelihood=model.value + model.gain + self.engine.log_constant,
            coefficients=(jacobian @ scaled)[wanted],
            covariance=(jacobian @ wide @ jacobian.T)[np.ix_(wanted, wanted)],
            dispersion=1.0,
            degrees_of_freedom=inf,
            status=status,
        )
