r"""Generalised linear models of tall data: the quadratic expansion, and streamed Newton.

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

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import final

import numpy as np

from dbrm._kernels.glm_rows import linearise
from dbrm._typing import Column, FloatArray, IntArray, Masks, Matrix
from dbrm.data import AbstractRows, Block
from dbrm.evidence.base import ModelFit
from dbrm.evidence.design import independent_columns
from dbrm.evidence.families import CompiledFamily
from dbrm.evidence.gaussian import DEPENDENCE_TOLERANCE, SMALLEST_FRACTION, GaussianPopulation
from dbrm.evidence.glm import GlmEngine
from dbrm.evidence.glm_prior import glm_prior
from dbrm.evidence.links import Link
from dbrm.evidence.score import ScoreTable, closed_form_table
from dbrm.evidence.tall import (
    AbstractColumns,
    AbstractTallEngine,
    Joined,
    add_up,
    standardised,
)
from dbrm.status import Status

__all__ = ["TallGlmEngine"]

# Nats that another step promises: below the first a population is expanded where it stands,
# below the second a model has converged (what is left is extrapolated).
_NEAR, _AT_MAXIMUM = 0.1, 1e-6
_MOST_STEPS, _MOST_NEAR_STEPS = 25, 12


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Law:
    """Family and link as the kernels know them."""

    family: int
    link: int

    def linearise(self, block: Block, eta: Column) -> tuple[float, Column, Column]:
        """Moving log likelihood, score and information by row."""
        y, extras = block.extras["response"], block.extras
        trials = extras.get("trials")
        total = extras.get("weights", np.ones(y.size))
        mean = np.array(y, dtype=np.float64)
        if trials is not None:
            total = total * trials
            mean /= np.maximum(trials, 1.0)
        if "offset" in extras:
            eta = eta + extras["offset"]
        if "exposure" in extras:
            eta = eta + np.log(extras["exposure"])
        score, weight = np.empty_like(eta), np.empty_like(eta)
        total = np.array(total, dtype=np.float64)
        value = linearise(self.family, self.link, 1.0, mean, total, eta, score, weight)
        return float(value), score, weight


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """Log likelihood, score and information of several models at their coefficients."""

    law: _Law
    columns: AbstractColumns
    location: FloatArray
    scale: FloatArray
    members: tuple[IntArray, ...]
    coefficients: tuple[FloatArray, ...]

    def __call__(self, block: Block) -> tuple[Matrix, ...]:
        """For each model its information, bordered by the score, with the value in the corner.

        Before them, which columns are not finite; they count as zero.
        """
        made = self.columns.make(block)
        rows = standardised(block.n_rows, made, self.location, self.scale)
        sound = np.isfinite(rows).all(axis=0)
        rows[:, ~sound] = 0.0
        out: list[Matrix] = [np.asarray(~sound, dtype=np.float64)]
        for chosen, beta in zip(self.members, self.coefficients, strict=True):
            inside = rows if chosen.size == rows.shape[1] else rows[:, chosen]
            with np.errstate(all="ignore"):
                value, score, weight = self.law.linearise(block, inside @ beta)
                sums = np.empty((chosen.size + 1, chosen.size + 1))
                sums[:-1, -1] = sums[-1, :-1] = inside.T @ score
                sums[-1, -1] = value
                inside = inside * np.sqrt(weight)[:, None]
                sums[:-1, :-1] = inside.T @ inside
            out.append(sums)
        return tuple(out)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Constants:
    """Number of observations, and terms of the log likelihood that never change."""

    family: CompiledFamily

    def __call__(self, block: Block) -> FloatArray:
        y, extras = block.extras["response"], block.extras
        self.family.check_response(y, extras.get("trials"))
        ones = np.ones(y.size)
        weights, trials = extras.get("weights", ones), extras.get("trials", ones)
        found = self.family.constants(y, weights, trials, y / np.maximum(trials, 1.0))
        return np.array([found.n, found.rest, float(weights.sum())])


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
@dataclass(frozen=True, eq=False)
class TallGlmEngine(AbstractTallEngine):
    """Laplace log evidence from rows in blocks, for families without a dispersion.

    Parameters
    ----------
    rows
        The rows with their response.
    sample
        Some of the rows, from which columns get their location and scale.
    sample_engine
        The same law on these rows alone: fits start from it.
    always
        Columns that every model contains besides the intercept.
    """

    rows: AbstractRows
    sample: Block
    sample_engine: GlmEngine
    always: AbstractColumns

    def __post_init__(self) -> None:
        # A pass that also finds responses outside the family's domain, before the search.
        assert self._constants[0] > 0

    @cached_property
    def _law(self) -> _Law:
        link = self.sample_engine.link
        assert isinstance(link, Link)
        assert link.code is not None
        return _Law(self._family.code, link.code)

    @property
    def _family(self) -> CompiledFamily:
        family = self.sample_engine.family
        assert isinstance(family, CompiledFamily)
        return family

    @cached_property
    def _constants(self) -> FloatArray:
        return np.asarray(add_up(self.rows.each(_Constants(self._family), ())))

    def prepare(self, columns: AbstractColumns) -> GaussianPopulation:
        found = self._expand(columns)
        # Each column in units of its own information.
        unit = _unit(found.information)
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
        n = float(self._constants[2])
        prior = glm_prior(self.sample_engine.prior, sizes, n, dispersed=False)
        return np.asarray(prior.table.constant)

    def _expand(self, columns: AbstractColumns) -> _Expansion:
        """Fit all columns together, as nearly as the expansion needs it."""
        both = Joined(self.always, columns)
        made = both.make(self.sample)
        matrix = np.column_stack(made) if made else np.empty((self.sample.n_rows, 0))
        location, scale = matrix.mean(axis=0), matrix.std(axis=0)
        scale[~(scale > 0)] = 1.0
        raw = self.sample_engine.project(matrix)
        beta = np.concatenate([[raw[0] + location @ raw[1:]], scale * raw[1:]])
        every = np.arange(beta.size)
        best: _Expansion | None = None
        for _ in range(_MOST_NEAR_STEPS):
            work = _Step(self._law, both, location, scale, (every,), (beta,))
            bad, sums = add_up(self.rows.each(work, both.needs))
            unsound = (bad[1:] > 0) & np.isfinite(scale)
            if unsound.any():
                # Not finite in some row that is not in the sample: left out altogether.
                scale, beta = np.where(unsound, inf, scale), beta.copy()
                beta[1:][unsound] = 0.0
                continue
            here = _Expansion(
                both, location, scale, beta, float(sums[-1, -1]), sums[:-1, -1], sums[:-1, :-1]
            )
            if best is not None and not here.value >= best.value:
                beta = 0.5 * (beta + best.coefficients)
                continue
            best = here
            step, promise = _newton_step(here.information, here.score)
            if promise < _NEAR:
                break
            beta = beta + step
        assert best is not None
        return best

    def _fit_together(self, columns: AbstractColumns, masks: Masks) -> list[ModelFit]:
        found = self._expand(columns)
        fixed = np.arange(self.always.size + 1)
        wanted = [np.concatenate([fixed, fixed.size + np.flatnonzero(mask)]) for mask in masks]
        unit = _unit(found.information)
        gram = found.information / np.outer(unit, unit)
        models = []
        for chosen in wanted:
            inside = gram[np.ix_(chosen, chosen)]
            kept = chosen[independent_columns(inside, DEPENDENCE_TOLERANCE, chosen.size)]
            start = np.linalg.solve(found.information[np.ix_(kept, kept)], found.right[kept])
            models.append(_Newton(kept, start))
        for _ in range(_MOST_STEPS):
            active = [model for model in models if not model.done]
            if not active:
                break
            work = _Step(
                self._law,
                found.columns,
                found.location,
                found.scale,
                tuple(model.members for model in active),
                tuple(model.coefficients for model in active),
            )
            _, *sums = add_up(self.rows.each(work, found.columns.needs))
            for model, part in zip(active, sums, strict=True):
                model.take(part)
        return [
            self._report(found, chosen, model) for chosen, model in zip(wanted, models, strict=True)
        ]

    def _report(self, found: _Expansion, wanted: IntArray, model: "_Newton") -> ModelFit:
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


@final
class _Newton:
    """Newton's method for one model; it halves steps that lead down."""

    def __init__(self, members: IntArray, start: FloatArray) -> None:
        self.members = members
        self.coefficients = start
        self.best = start
        self.value = -inf
        self.information: Matrix = np.eye(members.size)
        self.done = False

    def take(self, sums: Matrix) -> None:
        """Go on with the sums over all rows at the coefficients asked for."""
        value = float(sums[-1, -1])
        if not value >= self.value - 1e-9 * abs(value):
            self.coefficients = 0.5 * (self.coefficients + self.best)
            return
        self.information = sums[:-1, :-1]
        step, promise = _newton_step(self.information, sums[:-1, -1])
        self.best, self.value = self.coefficients, value
        if promise < _AT_MAXIMUM:
            self.best, self.value, self.done = self.coefficients + step, value + promise, True
        else:
            self.coefficients = self.coefficients + step


def _unit(information: Matrix) -> FloatArray:
    """Square roots of the diagonal; infinite for columns without information."""
    diagonal = np.diag(information)
    return np.where(diagonal > 0, np.sqrt(np.maximum(diagonal, 0.0)), inf)


def _newton_step(information: Matrix, score: FloatArray) -> tuple[FloatArray, float]:
    """The step in independent columns, and the log likelihood that it promises."""
    unit = _unit(information)
    gram = information / np.outer(unit, unit)
    kept = independent_columns(gram, DEPENDENCE_TOLERANCE, score.size)
    step = np.zeros(score.size)
    step[kept] = np.linalg.solve(information[np.ix_(kept, kept)], score[kept])
    return step, 0.5 * float(score @ step)
