r"""Generalised linear models of rows in blocks: the quadratic expansion, and streamed Newton.

Near its maximum a log likelihood is a quadratic. With all columns of a population fitted,
:math:`\hat b`, one pass gives score :math:`g` and information :math:`H`, and every model
follows without another look at the rows (approximate Laplace, Rossell et al. 2021):

.. math:: \hat\ell(M) \approx \max_{b \in M} \{\ell(\hat b) + g'(b - \hat b)
        - \tfrac12 (b - \hat b)' H (b - \hat b)\} .

Expanded at the null model this is tens of nats off for strong signals; at the fitted
population the error of a model :math:`\Delta` nats below it is of order
:math:`\Delta^{3/2} / \sqrt n`, which with very many rows is nothing for all models that
have any mass. What is reported is computed by Newton's method over all rows.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import final

import numpy as np

from dbrm._typing import FloatArray, IntArray, Mask, Masks, Matrix
from dbrm.data import AbstractRows, Block
from dbrm.evidence.base import ModelFit
from dbrm.evidence.design import independent_columns
from dbrm.evidence.families import CompiledFamily
from dbrm.evidence.gaussian import DEPENDENCE_TOLERANCE, SMALLEST_FRACTION, GaussianPopulation
from dbrm.evidence.glm import GlmEngine
from dbrm.evidence.glm_prior import glm_prior
from dbrm.evidence.links import Link
from dbrm.evidence.out_of_core.base import AbstractColumns, AbstractOutOfCoreEngine, Joined, add_up
from dbrm.evidence.out_of_core.newton import (
    CountRows,
    Newton,
    RowLikelihood,
    Step,
    information_unit,
    newton_step,
)
from dbrm.evidence.score import ScoreTable, closed_form_table
from dbrm.status import Status

__all__ = ["OutOfCoreGlmEngine"]

# A population is expanded where it is once another step is expected to gain fewer nats.
_NEAR = 0.1
_MOST_STEPS, _MOST_NEAR_STEPS, _MOST_ATTEMPTS = 25, 12, 8
# Information that a column must keep at the fit, of what it has beside a constant predictor.
_LEAST_CURVATURE = 1e-3
# Mean square of a column, one in the sample, above which the sample does not represent it.
_STRANGE = 2.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Expansion:
    """Quadratic expansion of the log likelihood in standardised columns, intercept first."""

    columns: AbstractColumns
    location: FloatArray
    scale: FloatArray
    coefficients: FloatArray
    value: float
    score: FloatArray
    information: Matrix

    @property
    def right(self) -> FloatArray:
        """Right-hand side of the normal equations."""
        return np.asarray(self.information @ self.coefficients + self.score)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _ExpansionPoint:
    """Where to expand: coefficients of standardised columns, and those of a constant predictor."""

    columns: AbstractColumns
    location: FloatArray
    scale: FloatArray
    coefficients: FloatArray
    null: FloatArray

    def without(self, coefficients: FloatArray, lost: Mask) -> "_ExpansionPoint":
        """Without some columns: an infinite scale makes them zero."""
        kept = np.where(np.concatenate([[False], lost]), 0.0, coefficients)
        return replace(self, scale=np.where(lost, inf, self.scale), coefficients=kept)

    def at(self, coefficients: FloatArray, sums: Matrix) -> _Expansion:
        """The expansion from the sums over all rows."""
        value = float(sums[-1, -1])
        return _Expansion(
            self.columns,
            self.location,
            self.scale,
            coefficients,
            value if value == value else -inf,
            sums[:-1, -1],
            sums[:-1, :-1],
        )


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
    """

    rows: AbstractRows
    sample: Block
    sample_engine: GlmEngine
    always: AbstractColumns

    def __post_init__(self) -> None:
        # A pass that also finds responses outside the family's domain, before the search.
        self._constants  # noqa: B018

    @cached_property
    def _likelihood(self) -> RowLikelihood:
        link = self.sample_engine.link
        assert isinstance(link, Link)
        assert link.code is not None
        return RowLikelihood(self._family.code, link.code)

    @property
    def _family(self) -> CompiledFamily:
        family = self.sample_engine.family
        assert isinstance(family, CompiledFamily)
        return family

    @cached_property
    def _constants(self) -> FloatArray:
        return np.asarray(add_up(self.rows.map(CountRows(self._family), ())))

    def prepare(self, columns: AbstractColumns) -> GaussianPopulation:
        found = self._expand(columns)
        # Each column in units of its own information.
        unit = information_unit(found.information)
        gram = found.information / np.outer(unit, unit)
        cross = found.right / unit
        n_fixed = self.always.size + 1
        fixed = independent_columns(gram[:n_fixed, :n_fixed], DEPENDENCE_TOLERANCE, n_fixed)
        solved = np.linalg.solve(
            gram[np.ix_(fixed, fixed)], np.column_stack([gram[fixed], cross[fixed]])
        )
        base = found.value - 0.5 * float((found.score + found.right) @ found.coefficients)
        base += 0.5 * float(cross[fixed] @ solved[:, -1])
        cross = cross - gram[:, fixed] @ solved[:, -1]
        gram = gram - gram[:, fixed] @ solved[:, :-1]
        left = np.maximum(np.diag(gram), 0.0)
        unit = np.where(left <= DEPENDENCE_TOLERANCE, inf, np.sqrt(np.maximum(left, 1e-300)))
        gram, cross = gram / np.outer(unit, unit), cross / unit
        gram, cross = gram[n_fixed:, n_fixed:], cross[n_fixed:]
        kept = independent_columns(gram, DEPENDENCE_TOLERANCE, columns.size)
        explained = float(cross[kept] @ np.linalg.solve(gram[np.ix_(kept, kept)], cross[kept]))
        # A residual fraction between one half and one, in which the likelihood is linear.
        most = 2.0 * explained if explained > 0 else 1.0
        return GaussianPopulation(
            gram=np.ascontiguousarray(gram),
            cross=cross / np.sqrt(most),
            left=1.0,
            floor=SMALLEST_FRACTION,
            table=self._table(fixed.size - 1, columns.size, base, most),
        )

    def _table(self, n_always: int, most_free: int, base: float, most: float) -> ScoreTable:
        """Log evidence as a linear function of the residual fraction."""
        constant = self._price(np.arange(n_always, n_always + most_free + 1))
        constant = constant + base + float(self._constants[1]) + 0.5 * most
        return closed_form_table(constant, np.zeros(constant.size), linear=-0.5 * most)

    def _price(self, sizes: IntArray) -> FloatArray:
        """What models of these sizes have beside their maximised log likelihood."""
        n = float(self._constants[0])
        prior = glm_prior(self.sample_engine.prior, sizes, n, dispersed=False)
        return np.asarray(prior.table.constant)

    def _expand(self, columns: AbstractColumns, *, every: bool = False) -> _Expansion:
        """Fit all columns together, as nearly as the expansion needs it.

        Columns with which there is no quadratic to speak of are left out, unless `every` one is
        wanted: the fit does not settle, or it has all but certain responses wherever they vary
        (few rows carry them, or they separate the response), and there is no curvature left.
        """
        place = self._start(columns)
        for _ in range(_MOST_ATTEMPTS):
            found, lost = self._maximise(place)
            if every or not lost.any():
                break
            place = place.without(found.coefficients, lost)
        return found

    def _start(self, columns: AbstractColumns) -> "_ExpansionPoint":
        """The fit of the sample, in columns standardised by the sample; and that of a constant."""
        both = Joined(self.always, columns)
        made = both.make(self.sample)
        matrix = np.column_stack(made) if made else np.empty((self.sample.n_rows, 0))
        location, scale = matrix.mean(axis=0), matrix.std(axis=0)
        scale[~(scale > 0)] = 1.0
        raw = self.sample_engine.project(matrix)
        null = np.zeros(raw.size)
        null[0] = self.sample_engine.project(matrix[:, :0])[0]
        beta = np.concatenate([[raw[0] + location @ raw[1:]], scale * raw[1:]])
        return _ExpansionPoint(both, location, scale, beta, null)

    def _maximise(self, place: "_ExpansionPoint") -> tuple[_Expansion, Mask]:
        """Newton's method for all columns, and those that the expansion cannot have.

        The first pass also looks at a constant predictor: a better start, where the sample
        misleads, and the information that columns usually have.
        """
        trials = [place.coefficients, place.null]
        members = np.arange(place.null.size)
        usual: FloatArray | None = None
        best: _Expansion | None = None
        step, gain = place.null, inf
        lengths: tuple[float, ...] = (1.0,)
        for _ in range(_MOST_NEAR_STEPS):
            chosen = (members,) * len(trials)
            work = Step(
                self._likelihood, place.columns, place.location, place.scale, chosen, tuple(trials)
            )
            bad, *sums = add_up(self.rows.map(work, place.columns.needs))
            unsound = (bad[1:] > 0) & np.isfinite(place.scale)
            if unsound.any():
                # Not finite in some row that is not in the sample: left out altogether.
                place = place.without(place.coefficients, unsound)
                trials, best, usual = [place.coefficients, place.null], None, None
                continue
            if usual is None:
                usual = np.diag(sums[-1])[:-1]
            found = [place.at(beta, part) for beta, part in zip(trials, sums, strict=True)]
            top = max(found, key=lambda one: one.value)
            if best is None or top.value > best.value:
                best = top
                step, gain = newton_step(best.information, best.score)
                lengths = (1.0,) if len(lengths) == 1 else (1.0, 0.25, 0.06)
            else:
                # A step that led down is tried again, shorter, at some lengths in one pass.
                lengths = tuple(lengths[-1] * share for share in (0.25, 0.06, 0.015))
            if gain < _NEAR:
                break
            trials = [best.coefficients + length * step for length in lengths]
        assert best is not None
        assert usual is not None
        left = np.diag(best.information)[1:]
        finite = np.isfinite(place.scale)
        lost = finite & (left < _LEAST_CURVATURE * usual[1:])
        if not gain < _NEAR and lost.size:
            # First those that the sample misjudged: their mean square should be one.
            strange = np.where(finite, usual[1:] / usual[0], 0.0)
            moving = np.abs(step[1:]) * np.sqrt(left)
            lost[np.argmax(strange if np.max(strange) > _STRANGE else moving)] = True
        return best, np.asarray(lost)

    def _fit_together(self, columns: AbstractColumns, masks: Masks) -> list[ModelFit]:
        found = self._expand(columns, every=True)
        fixed = np.arange(self.always.size + 1)
        wanted = [np.concatenate([fixed, fixed.size + np.flatnonzero(mask)]) for mask in masks]
        unit = information_unit(found.information)
        gram = found.information / np.outer(unit, unit)
        models = []
        for chosen in wanted:
            inside = gram[np.ix_(chosen, chosen)]
            kept = chosen[independent_columns(inside, DEPENDENCE_TOLERANCE, chosen.size)]
            start = np.linalg.solve(found.information[np.ix_(kept, kept)], found.right[kept])
            models.append(Newton(kept, start))
        for _ in range(_MOST_STEPS):
            active = [model for model in models if not model.done]
            if not active:
                break
            work = Step(
                self._likelihood,
                found.columns,
                found.location,
                found.scale,
                tuple(model.members for model in active),
                tuple(model.coefficients for model in active),
            )
            _, *sums = add_up(self.rows.map(work, found.columns.needs))
            for model, part in zip(active, sums, strict=True):
                model.take(part)
        return [
            self._report(found, chosen, model) for chosen, model in zip(wanted, models, strict=True)
        ]

    def _report(self, found: _Expansion, wanted: IntArray, model: "Newton") -> ModelFit:
        """The fit in terms of the raw columns; zero, with variance zero, for dependent ones."""
        size = found.scale.size + 1
        scaled, wide = np.zeros(size), np.zeros((size, size))
        scaled[model.members] = model.best
        inverse = np.linalg.pinv(model.information, hermitian=True)
        wide[np.ix_(model.members, model.members)] = inverse
        jacobian = np.diag(np.concatenate([[1.0], 1.0 / found.scale]))
        jacobian[0, 1:] = -found.location / found.scale
        complete = model.members.size == wanted.size
        log_likelihood = model.value + float(self._constants[1])
        price = float(self._price(np.array([wanted.size - 1]))[0])
        status = Status.OK if model.done else Status.NOT_CONVERGED
        return ModelFit(
            log_evidence=log_likelihood + price if complete else -inf,
            log_likelihood=log_likelihood,
            coefficients=(jacobian @ scaled)[wanted],
            covariance=(jacobian @ wide @ jacobian.T)[np.ix_(wanted, wanted)],
            dispersion=1.0,
            degrees_of_freedom=inf,
            status=status if complete else Status.RANK_DEFICIENT,
        )
