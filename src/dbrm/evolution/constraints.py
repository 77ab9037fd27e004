r"""Constraints on fitted models: signs of coefficients, and effects that only rise or fall.

A model is excluded, as if its prior were zero, if a fitted coefficient has the wrong sign, or if
its fitted linear predictor :math:`\sum_j \hat\beta_j F_j(x)` falls somewhere in a covariate in
which it must not. The latter is tried on a grid over the training range of the covariate, beside
the other covariates of some training rows. Averages of what only rises only rise, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self, final

import numpy as np

from dbrm._typing import FloatArray, IntArray, Mask, Masks, Matrix, StatusArray
from dbrm.data import Table
from dbrm.evidence import AbstractEngine, AbstractPrepared, GaussianEngine
from dbrm.evidence.gaussian import GaussianPopulation
from dbrm.evidence.glm_population import AbstractGlmPopulation
from dbrm.features import Feature, evaluate
from dbrm.status import Status

__all__ = ["ConstrainedPopulation", "Constraints", "Terms"]

# Values of the covariate that are tried, and training rows beside them.
_GRID, _ROWS = 25, 100
# Steps smaller than this share of what the terms contribute to them are rounding.
_ROUNDING = 1e-9
# Numbers held at a time while models are checked.
_AT_ONCE = 4_000_000


@final
@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """What the constraints say about some features.

    Parameters
    ----------
    signs
        1 or -1 for the sign that a coefficient must have, 0 for any.
    steps
        By how much each feature (columns) changes from one value of a constrained covariate to the
        next (rows), in the direction in which models must not fall.
    """

    signs: IntArray
    steps: Matrix

    @property
    def concerned(self) -> Mask:
        """Which features matter."""
        return np.asarray((self.signs != 0) | np.any(self.steps != 0.0, axis=0))


@final
@dataclass(frozen=True, eq=False)
class Constraints:
    """What fitted models must obey.

    Parameters
    ----------
    table
        The training rows.
    monotone
        Groups of columns that increase with one covariate, such as itself and its logarithm, with 1
        where models must not fall in it and -1 where they must not rise.
    signs
        Keys of features, with the sign of their coefficients.
    """

    table: Table
    monotone: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    signs: Mapping[int, int] = field(default_factory=dict)

    @cached_property
    def _grids(self) -> list[tuple[tuple[str, ...], int, Table]]:
        """For each covariate the rows on which features are compared, and how many a curve has."""
        n_rows = self.table.n_rows
        beside = np.linspace(0, n_rows - 1, min(n_rows, _ROWS)).astype(np.int64)
        found = []
        for columns, direction in self.monotone.items():
            own = [self.table.names.index(name) for name in columns]
            # All of these columns increase with the covariate, and so does the sum of their ranks.
            ranks = [np.unique(self.table.values[:, j], return_inverse=True)[1] for j in own]
            _, rows = np.unique(np.sum(ranks, axis=0), return_index=True)
            if rows.size > _GRID:
                rows = rows[np.round(np.linspace(0, rows.size - 1, _GRID)).astype(np.int64)]
            rows = rows[::direction]
            values = np.repeat(self.table.values[beside], rows.size, axis=0)
            for j in own:
                values[:, j] = np.tile(self.table.values[rows, j], beside.size)
            found.append((columns, rows.size, Table(self.table.names, values)))
        return found

    def terms(self, features: Sequence[Feature], columns: Matrix) -> Terms:
        """What is asked of some features.

        `columns` are theirs, or those of features equal to them up to an affine map.
        """
        signs = np.array([self.signs.get(feature.key, 0) for feature in features], dtype=np.int64)
        steps = [np.zeros((0, len(features)))]
        for names, length, grid in self._grids:
            part = np.zeros((grid.n_rows // length * (length - 1), len(features)))
            for j, feature in enumerate(features):
                if set(names) & set(feature.covariates):
                    curves = evaluate([feature], grid)[0][:, 0].reshape(-1, length)
                    part[:, j] = np.diff(curves, axis=1).ravel()
            steps.append(part)
        found = Terms(signs, np.vstack(steps))
        for j in np.flatnonzero(found.concerned).tolist():
            own = evaluate([features[j]], self.table)[0][:, 0]
            centred = columns[:, j] - columns[:, j].mean()
            slope = float((own - own.mean()) @ centred) / float(centred @ centred)
            found.steps[:, j] /= slope
            found.signs[j] *= int(np.sign(slope))
        return found


@final
@dataclass(frozen=True, eq=False)
class ConstrainedPopulation(AbstractPrepared):
    """A population in which models that do not obey have no evidence.

    Parameters
    ----------
    always, free
        What is asked of the always-in features, and of those of the population.
    """

    base: AbstractPrepared
    engine: AbstractEngine
    columns: Matrix
    always: Terms
    free: Terms

    @property
    def enumeration_limit(self) -> int:  # type: ignore[override]
        return 15 if isinstance(self.base, GaussianPopulation) else 8

    @property
    def size(self) -> int:
        return self.base.size

    def evaluate(self, mask: Mask) -> tuple[float, Status]:
        """Log evidence and status of one mask; the uncompiled search calls this."""
        values, statuses = self.log_evidence(mask[None])
        return float(values[0]), Status(int(statuses[0]))

    def log_evidence(self, masks: Masks) -> tuple[FloatArray, StatusArray]:
        values, statuses = self.base.log_evidence(masks)
        values, statuses = values.copy(), statuses.copy()
        concerned = masks[:, : self.free.signs.size][:, self.free.concerned].any(axis=1)
        concerned |= bool(self.always.concerned.any())
        doubtful = np.flatnonzero(np.isfinite(values) & concerned)
        width = max(len(self.free.steps) + masks.shape[1] ** 2, 1)
        chunk = max(_AT_ONCE // width, 1)
        for start in range(0, doubtful.size, chunk):
            rows = doubtful[start : start + chunk]
            wrong = rows[~self._obey(masks[rows])]
            values[wrong], statuses[wrong] = -np.inf, Status.CONSTRAINED
        return values, statuses

    @property
    def context(self) -> Self:
        return self

    def _obey(self, masks: Masks) -> Mask:
        """Whether the fitted coefficients of models do what they must."""
        always, free = self._coefficients(masks)
        wrong = np.any(self.always.signs * always < 0, axis=1)
        wrong |= np.any(self.free.signs * free < 0, axis=1)
        if len(self.free.steps):
            rises = always @ self.always.steps.T + free @ self.free.steps.T
            size = np.abs(always) @ np.max(np.abs(self.always.steps), axis=0, initial=0.0)
            size = size + np.abs(free) @ np.max(np.abs(self.free.steps), axis=0, initial=0.0)
            wrong |= ~np.all(rises >= -_ROUNDING * size[:, None], axis=1)
        return np.asarray(~wrong)

    def _coefficients(self, masks: Masks) -> tuple[Matrix, Matrix]:
        """Coefficients of always-in and free columns, zero where a column is not in the model."""
        n_always, n_free = self.always.signs.size, self.free.signs.size
        always, free = np.zeros((len(masks), n_always)), np.zeros((len(masks), n_free))
        if isinstance(self.base, GaussianPopulation) and not self.always.concerned.any():
            self._solve(self.base, masks, free)
            return always, free
        if isinstance(self.base, AbstractGlmPopulation):
            scale = self.base.design.scale[1:]
            solved = self.base.solve_many(masks, firth=True)
            fits = [solution.coefficients[1:] for solution in solved]
        else:
            scale = np.ones(n_always + n_free)
            fits = [fit.coefficients[1:] for fit in self.engine.fit_many(self.columns, masks)]
        for row, (mask, slopes) in enumerate(zip(masks, fits, strict=True)):
            own = np.flatnonzero(mask[:n_free])
            always[row] = slopes[:n_always] / scale[:n_always]
            free[row, own] = slopes[n_always : n_always + own.size] / scale[n_always + own]
        return always, free

    def _solve(self, population: GaussianPopulation, masks: Masks, free: Matrix) -> None:
        """Write coefficients from the Gram matrix, the models of one size at a time."""
        sizes = masks.sum(axis=1)
        for size in np.unique(sizes[sizes > 0]).tolist():
            rows = np.flatnonzero(sizes == size)
            members = np.nonzero(masks[rows])[1].reshape(-1, size)
            gram = population.gram[members[:, :, None], members[:, None, :]]
            slopes = np.linalg.solve(gram, population.cross[members][:, :, None])[:, :, 0]
            free[rows[:, None], members] = slopes / self._lengths[members]

    @cached_property
    def _lengths(self) -> FloatArray:
        """Lengths of the columns, freed of intercept and always-in ones, in weighted rows."""
        engine = self.engine
        assert isinstance(engine, GaussianEngine)
        root = np.ones(engine.n_rows) if engine.weights is None else np.sqrt(engine.weights)
        fixed = (
            [root[:, None]]
            if engine.always is None
            else [root[:, None], root[:, None] * engine.always]
        )
        basis, _ = np.linalg.qr(np.hstack(fixed))
        block = root[:, None] * self.columns
        return np.asarray(np.linalg.norm(block - basis @ (basis.T @ block), axis=0))
