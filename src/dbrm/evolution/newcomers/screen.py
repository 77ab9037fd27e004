r"""How much many columns at once would gain beside a model, or in place of one of its features.

To second order around the model (`dbrm.evidence.ScoreTest`) the log likelihood is that of a
weighted linear regression. With :math:`Q` an orthonormal basis of the model's weighted columns
and :math:`r` the weighted residual, a column :math:`x` lowers the residual sum of squares by

.. math:: \frac{(r^T x)^2}{\|x\|^2 - \|Q^T x\|^2} .

Without some of its features, what the others leave of them having the orthonormal basis :math:`U`
and contributing :math:`U b` to the predictor, the residual is :math:`r + U b` and :math:`x` lowers
it by

.. math:: \frac{(r^T x + b^T U^T x)^2}{\|x\|^2 - \|Q^T x\|^2 + \|U^T x\|^2} .

As :math:`U` lies in the span of :math:`Q`, one matrix product serves all of these.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Matrix
from dbrm.evidence import ScoreTest
from dbrm.evolution.newcomers.targets import Target
from dbrm.evolution.problem import Problem
from dbrm.features import Feature

__all__ = ["Candidates", "Screen", "Screener"]

# Share of a column's length outside the span of the model below which it counts as inside.
_IN_SPAN = 1e-6
# Length below which a column, scaled to one, depends on those before it.
_DEPENDENT = 1e-7
# Pairs of features that a candidate may replace.
_MOST_PAIRS = 4
# Columns weighed at once: they stay in the processor's cache.
_AT_ONCE = 64


@final
class Screen:
    """Expected gain in log posterior of candidate columns beside one model.

    Parameters
    ----------
    features, columns
        The features of the model and their columns, on all rows of the problem's table.
    score_test
        Of the model.
    rows
        The rows on which candidates are compared, evenly thinned out if there are many.
    """

    def __init__(
        self,
        problem: Problem,
        features: Sequence[Feature],
        columns: Matrix,
        score_test: ScoreTest,
        rows: IntArray,
    ) -> None:
        self.change = score_test.change
        scale = problem.table.n_rows / rows.size
        weights = score_test.information
        information = np.ones(rows.size) if weights is None else weights[rows]
        self.root = np.sqrt(scale * information)
        self.weighted = bool(np.any(self.root != 1.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            residual = scale * score_test.residual[rows] / self.root
        self.residual = np.where(self.root > 0.0, residual, 0.0)
        design = np.column_stack([np.ones(rows.size), problem.always_columns[rows], columns[rows]])
        n_fixed = design.shape[1] - len(features)
        self.basis, inverse, kept = _decompose(design * self.root[:, None], n_fixed)
        self.residual -= self.basis @ (self.basis.T @ self.residual)
        self.n_fixed = n_fixed - 1
        self.columns = np.delete(design, 0, axis=1) * self.root[:, None]
        self.features = [features[j] for j in kept]
        predictor = self.basis.T @ (score_test.predictor[rows] * self.root)
        prior = problem.model_prior
        log_prior = [prior.feature_log_prior(feature) for feature in self.features]
        sizes = prior.size_log_prior(np.arange(len(features) + 2))
        self.places = []
        for left_out in _left_out(self.features):
            directions, _ = np.linalg.qr(inverse[list(left_out)].T)
            size = len(features) + 1 - len(left_out)
            offset = float(sizes[size] - sizes[-2]) - sum(log_prior[j] for j in left_out)
            if size > problem.max_model_size:
                offset = -np.inf
            self.places.append(Place(left_out, directions, directions.T @ predictor, offset))
        self.total = max(score_test.total, float(np.finfo(float).tiny))
        # The best of many candidates on few rows looks better than it is.
        self.luck = 0.0 if rows.size == problem.table.n_rows else 2.0 * scale

    def target(self, place: int) -> Target:
        """The residual of the model without the features of a place."""
        chosen = self.places[place]
        added = self.basis @ (chosen.directions @ chosen.coefficients)
        columns = np.delete(self.columns, [self.n_fixed + j for j in chosen.left_out], axis=1)
        return Target.of(self.root * (self.residual + added), columns, self.root**2)

    def weigh(self, columns: Matrix, log_prior: FloatArray) -> "Candidates":
        """Candidates with these columns (one per row of the matrix, which is used up)."""
        return Candidates(self, columns, log_prior)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """The model without some of its features: what a candidate may be added to.

    `directions` is the basis :math:`U` in coordinates of the model's basis, `coefficients` is
    :math:`b`; `offset` the change of the log prior when these features leave and another comes,
    without the prior of that one.
    """

    left_out: tuple[int, ...]
    directions: Matrix
    coefficients: FloatArray
    offset: float


def _left_out(features: Sequence[Feature]) -> list[tuple[int, ...]]:
    """Nothing, each feature, and pairs of features that share a covariate, a few of them."""
    used = [set(feature.covariates) for feature in features]
    pairs = [(i, j) for i, j in combinations(range(len(features)), 2) if used[i] & used[j]]
    # Those that share most of their covariates may say together what one feature says.
    pairs.sort(key=lambda pair: len(used[pair[0]] ^ used[pair[1]]))
    return [(), *((j,) for j in range(len(features))), *pairs[:_MOST_PAIRS]]


@final
class Screener:
    """Makes the screens of one chain; that of the same model as before is not made again."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._names: tuple[str, ...] | None = None
        self._memory = np.empty((0, 0))
        self.current: Screen

    def look_at(
        self, features: Sequence[Feature], columns: Matrix, inclusion: FloatArray
    ) -> Screen:
        """The screen of a population's median probability model (Barbieri and Berger 2004)."""
        problem = self._problem
        inside = np.flatnonzero(inclusion > 0.5)[: problem.max_model_size]
        model = [features[j] for j in inside]
        names = tuple(feature.text for feature in model)
        if self._names != names:
            chosen = columns[:, inside]
            score_test = problem.engine.score_test(chosen)
            self.current = Screen(problem, model, chosen, score_test, problem.screening_rows)
            self._names = names
        return self.current

    def workspace(self, count: int) -> Matrix:
        """Memory for columns of so many candidates, the same for every batch."""
        if len(self._memory) < count:
            self._memory = np.empty((count, self._problem.screening_rows.size))
        return self._memory[:count]


@final
class Candidates:
    """Columns of candidate features, weighed beside the model of a screen."""

    def __init__(self, screen: Screen, columns: Matrix, log_prior: FloatArray) -> None:
        self._screen = screen
        self._columns = columns
        self._log_prior = log_prior
        n = len(columns)
        inside = np.empty((n, screen.basis.shape[1]))
        norms = np.empty(n)
        self._along = np.empty(n)
        with np.errstate(all="ignore"):
            for start in range(0, n, _AT_ONCE):
                here = slice(start, start + _AT_ONCE)
                block = columns[here]
                block -= block.mean(axis=1, keepdims=True)
                if screen.weighted:
                    block *= screen.root
                inside[here] = block @ screen.basis
                norms[here] = np.einsum("mn,mn->m", block, block)
                self._along[here] = block @ screen.residual
            self._left = norms - np.einsum("mk,mk->m", inside, inside)
            self._usable = np.isfinite(norms) & (self._left > _IN_SPAN * norms) & (norms > 0.0)
            self._beside = [inside @ place.directions for place in screen.places]
        columns[~self._usable] = 0.0
        self._total = screen.total
        self._added: list[Column] = []

    def gains(self) -> FloatArray:
        """Expected gain of each, beside the model or in place of one of its features."""
        screen, total = self._screen, self._total
        luck = screen.luck * np.log(len(self._columns))
        best = np.full(len(self._columns), -np.inf)
        with np.errstate(all="ignore"):
            for place, beside in zip(screen.places, self._beside, strict=True):
                length = self._left + np.einsum("ma,ma->m", beside, beside)
                explained = (self._along + beside @ place.coefficients) ** 2 / length
                explained = np.maximum(explained - luck, 0.0)
                lost = float(place.coefficients @ place.coefficients)
                left = _positive(1.0 + (lost - explained) / total)
                change = screen.change(left, 1 - len(place.left_out))
                np.maximum(best, change + place.offset, out=best)
        return np.where(self._usable, best + self._log_prior, -np.inf)

    def remove(self, position: int) -> None:
        """Take a candidate out."""
        self._usable[position] = False

    def add_to_model(self, position: int) -> None:
        """Let a candidate be part of the model that the others are weighed beside."""
        screen, column = self._screen, self._columns[position]
        rest = column - screen.basis @ (screen.basis.T @ column)
        for direction in self._added:
            rest -= direction * float(direction @ rest)
        length = float(np.linalg.norm(rest))
        self.remove(position)
        if not length > 0.0:
            return
        rest /= length
        score = float(rest @ screen.residual)
        along = self._columns @ rest
        with np.errstate(all="ignore"):
            self._usable &= self._left - along**2 > _IN_SPAN * self._left
            self._left -= along**2
            self._along -= score * along
        self._total = max(self._total - score**2, 1e-12 * self._total)
        self._added.append(rest)


def _decompose(design: Matrix, n_fixed: int) -> tuple[Matrix, Matrix, IntArray]:
    """Basis of the design; directions of the columns after the fixed ones; which of these are kept.

    A row of directions is what the other columns leave of a column, in coordinates of the basis,
    up to its length. Thinned out, columns may depend on others before them; they are not kept.
    """
    lengths = np.linalg.norm(design, axis=0)
    design = design / np.where(lengths > 0.0, lengths, 1.0)
    basis, triangle = np.linalg.qr(design)
    # Of more columns than rows the last ones depend on the others.
    kept = np.zeros(lengths.size, dtype=np.bool_)
    kept[: len(triangle)] = np.abs(np.diag(triangle)) > _DEPENDENT
    if not kept.all():
        basis, triangle = np.linalg.qr(design[:, kept])
    free = int(kept[:n_fixed].sum())
    return basis, np.linalg.inv(triangle)[free:], np.flatnonzero(kept[n_fixed:])


def _positive(left: FloatArray) -> FloatArray:
    return np.maximum(left, 1e-12)
