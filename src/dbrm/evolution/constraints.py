r"""Constraints on coefficients: signs, and effects that only increase or decrease.

A model is excluded, as if its prior were zero, if a fitted coefficient has the wrong sign. The
sign of a feature's coefficient is given, or follows from a covariate in which models must be
monotone: of :math:`\beta F(x)` with :math:`F` increasing in :math:`x`, :math:`\beta` must be
positive, and a feature that neither increases nor decreases is in no model. Every term is then
monotone by itself, and so are their sum and averages over models. That is sufficient for a monotone
mean, not necessary.

Whether a feature increases is tried on a grid over the training range of the covariate, beside the
other covariates of some training rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, final

import numpy as np

from dbrm._typing import FloatArray, IntArray, Mask, Masks, Matrix, StatusArray
from dbrm.data import Table
from dbrm.evidence import AbstractEngine, AbstractPrepared
from dbrm.evidence.gaussian import GaussianPopulation
from dbrm.evidence.glm_population import AbstractGlmPopulation
from dbrm.features import Feature, evaluate
from dbrm.status import Status

__all__ = ["ConstrainedPopulation", "Constraints"]

# Values of the covariate that are tried, and training rows beside them.
_GRID, _ROWS = 25, 100
# Differences smaller than this share of the range of a feature are rounding.
_ROUNDING = 1e-9
# Models that are fitted at a time.
_AT_ONCE = 2_048


@final
@dataclass(frozen=True, eq=False)
class Constraints:
    """Signs that coefficients must have.

    Parameters
    ----------
    table
        The training rows.
    monotone
        Covariates, with 1 where the mean must not decrease and -1 where it must not increase.
    signs
        Keys of features, with the sign of their coefficients.
    """

    table: Table
    monotone: Mapping[str, int] = field(default_factory=dict)
    signs: Mapping[int, int] = field(default_factory=dict)
    _known: dict[int, int | None] = field(default_factory=dict, repr=False)

    def sign(self, feature: Feature) -> int | None:
        """Sign of a feature's coefficient: 1 or -1, 0 if there is none, ``None`` if any will do."""
        if feature.key not in self._known:
            wanted = {self.signs[feature.key]} if feature.key in self.signs else set()
            for name in self.monotone.keys() & set(feature.covariates):
                direction = self._direction(feature, name)
                if direction is None:
                    wanted |= {1, -1}
                elif direction:
                    wanted.add(direction * self.monotone[name])
            self._known[feature.key] = None if not wanted else sum(wanted)
        return self._known[feature.key]

    def _direction(self, feature: Feature, name: str) -> int | None:
        """1 if a feature only increases in a covariate, -1 if it only decreases, 0 if neither."""
        own = self.table.column(name)
        values = np.unique(own)
        if values.size > _GRID:
            values = values[np.round(np.linspace(0, values.size - 1, _GRID)).astype(np.int64)]
        n_rows = self.table.n_rows
        rows = np.linspace(0, n_rows - 1, min(n_rows, _ROWS)).astype(np.int64)
        beside = np.repeat(self.table.values[rows], values.size, axis=0)
        beside[:, self.table.names.index(name)] = np.tile(values, rows.size)
        found, statuses = evaluate([feature], Table(self.table.names, beside))
        if statuses[0] not in (Status.OK, Status.CONSTANT):
            return None
        curves = found[:, 0].reshape(rows.size, values.size)
        steps, rounding = np.diff(curves, axis=1), _ROUNDING * max(float(np.ptp(curves)), 1e-300)
        rises, falls = bool((steps > rounding).any()), bool((steps < -rounding).any())
        return None if rises and falls else int(rises) - int(falls)

    def of(self, features: Sequence[Feature], columns: Matrix) -> IntArray:
        """Signs of the coefficients of some features: 0 for none, 2 for any.

        `columns` are theirs, or those of features equal to them up to an affine map.
        """
        found = [self.sign(feature) for feature in features]
        signs = np.array([2 if sign is None else sign for sign in found], dtype=np.int64)
        for j in np.flatnonzero(np.abs(signs) == 1).tolist():
            own = evaluate([features[j]], self.table)[0][:, 0]
            if (own - own.mean()) @ (columns[:, j] - columns[:, j].mean()) < 0:
                signs[j] = -signs[j]
        return signs


@final
@dataclass(frozen=True, eq=False)
class ConstrainedPopulation(AbstractPrepared):
    """A population in which models with a coefficient of the wrong sign have no evidence.

    Parameters
    ----------
    always, signs
        Signs of the coefficients of always-in features, and of those of the population.
    """

    base: AbstractPrepared
    engine: AbstractEngine
    columns: Matrix
    always: IntArray
    signs: IntArray

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
        return self._constrain(masks, values.copy(), statuses.copy())

    @property
    def context(self) -> Self:
        return self

    def _constrain(
        self, masks: Masks, values: FloatArray, statuses: StatusArray
    ) -> tuple[FloatArray, StatusArray]:
        features = masks[:, : self.signs.size]
        impossible: Mask = np.asarray(features[:, self.signs == 0].any(axis=1))
        concerned = features[:, np.abs(self.signs) == 1].any(axis=1)
        concerned |= bool((np.abs(self.always) == 1).any())
        doubtful = np.flatnonzero(np.isfinite(values) & concerned & ~impossible)
        for start in range(0, doubtful.size, _AT_ONCE):
            rows = doubtful[start : start + _AT_ONCE]
            impossible[rows] = ~self._obey(masks[rows])
        impossible &= np.isfinite(values)
        values[impossible], statuses[impossible] = -np.inf, Status.CONSTRAINED
        return values, statuses

    def _obey(self, masks: Masks) -> Mask:
        """Whether the fitted coefficients of models have the signs they must have."""
        if isinstance(self.base, GaussianPopulation) and not (np.abs(self.always) == 1).any():
            return self._obey_from_gram(self.base, masks)
        if isinstance(self.base, AbstractGlmPopulation):
            solved = self.base.solve_many(masks, firth=True)
            fits = [solution.coefficients for solution in solved]
        else:
            fits = [fit.coefficients for fit in self.engine.fit_many(self.columns, masks)]
        obeys = np.ones(len(masks), dtype=np.bool_)
        for row, (mask, coefficients) in enumerate(zip(masks, fits, strict=True)):
            signs = np.concatenate([self.always, self.signs[mask[: self.signs.size]]])
            slopes = coefficients[1 : 1 + signs.size]
            obeys[row] = not np.any((np.abs(signs) == 1) & (signs * slopes < 0))
        return obeys

    def _obey_from_gram(self, population: GaussianPopulation, masks: Masks) -> Mask:
        """From the Gram matrix, the models of one size at a time."""
        obeys, sizes = np.ones(len(masks), dtype=np.bool_), masks.sum(axis=1)
        for size in np.unique(sizes[sizes > 0]).tolist():
            rows = np.flatnonzero(sizes == size)
            members = np.nonzero(masks[rows])[1].reshape(-1, size)
            gram = population.gram[members[:, :, None], members[:, None, :]]
            slopes = np.linalg.solve(gram, population.cross[members][:, :, None])[:, :, 0]
            signs = self.signs[members]
            obeys[rows] = ~np.any((np.abs(signs) == 1) & (signs * slopes < 0), axis=1)
        return obeys
