r"""How much many columns at once would gain beside a model, or in place of one of its features.

To second order around the model (`dbrm.evidence.ScoreTest`) the log likelihood is that of a
weighted linear regression. With :math:`Q` an orthonormal basis of the model's weighted columns
and :math:`r` the weighted residual, a column :math:`x` lowers the residual sum of squares by

.. math:: \frac{(r^T x)^2}{\|x\|^2 - \|Q^T x\|^2} .

Without feature :math:`j`, whose direction beside the others is the unit vector :math:`u_j` with
coefficient :math:`b_j`, the residual is :math:`r + b_j u_j` and :math:`x` lowers it by

.. math:: \frac{(r^T x + b_j u_j^T x)^2}{\|x\|^2 - \|Q^T x\|^2 + (u_j^T x)^2} .

As :math:`u_j` lies in the span of :math:`Q`, one matrix product serves all of these.
"""

from collections.abc import Sequence
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, IntArray, Matrix
from dbrm.evidence import ScoreTest
from dbrm.evolution.problem import Problem
from dbrm.features import Feature

__all__ = ["Candidates", "Screen", "Screener"]

# Share of a column's length outside the span of the model below which it counts as inside.
_IN_SPAN = 1e-6
# Length below which a column, scaled to one, depends on those before it.
_DEPENDENT = 1e-7
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
        self.rows = rows
        scale = problem.table.n_rows / rows.size
        weights = score_test.information
        information = np.ones(rows.size) if weights is None else weights[rows]
        self.root = np.sqrt(scale * information)
        with np.errstate(divide="ignore", invalid="ignore"):
            residual = scale * score_test.residual[rows] / self.root
        self.residual = np.where(self.root > 0.0, residual, 0.0)
        design = np.column_stack([np.ones(rows.size), problem.always_columns[rows], columns[rows]])
        n_fixed = design.shape[1] - len(features)
        self.basis, self.directions, self.coefficients, kept = _decompose(
            design * self.root[:, None], score_test.predictor[rows] * self.root, n_fixed
        )
        self.residual -= self.basis @ (self.basis.T @ self.residual)
        self.columns = design[:, n_fixed:][:, kept]
        prior = problem.model_prior
        self.features = [features[j] for j in kept]
        self.own_prior = [prior.feature_log_prior(feature) for feature in self.features]
        sizes = np.array([len(features), len(features) + 1])
        self.next_size = float(np.diff(prior.size_log_prior(sizes))[0])
        if len(features) + 1 > problem.max_model_size:
            self.next_size = -np.inf
        self.total = max(score_test.total, float(np.finfo(float).tiny))
        # The best of many candidates on few rows looks better than it is.
        self.luck = 0.0 if rows.size == problem.table.n_rows else 2.0 * scale

    def target(self, place: int) -> tuple[Column, Matrix]:
        """Residual of the model without its feature at a place, -1 for none, and its span.

        Unweighted: the score residual, centred and orthogonal to centred orthonormal columns.
        """
        keep = np.ones(self.columns.shape[1], dtype=np.bool_)
        residual = self.residual
        if place >= 0:
            keep[place] = False
            added = self.basis @ self.directions[:, place]
            residual = residual + self.coefficients[place] * added
        columns = self.columns[:, keep]
        span, _ = np.linalg.qr(columns - columns.mean(axis=0))
        residual = self.root * residual
        residual = residual - residual.mean()
        return residual - span @ (span.T @ residual), span

    def weigh(self, columns: Matrix, log_prior: FloatArray) -> "Candidates":
        """Candidates with these columns (one per row of the matrix, which is used up)."""
        return Candidates(self, columns, log_prior)


@final
class Screener:
    """Makes the screens of one chain; that of the same model as before is not made again."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._last: tuple[tuple[str, ...], Screen] | None = None

    def screen(self, features: Sequence[Feature], columns: Matrix, inclusion: FloatArray) -> Screen:
        """The screen of a population's median probability model (Barbieri and Berger 2004)."""
        problem = self._problem
        inside = np.flatnonzero(inclusion > 0.5)[: problem.max_model_size]
        model = [features[j] for j in inside]
        names = tuple(feature.text for feature in model)
        if self._last is None or self._last[0] != names:
            chosen = columns[:, inside]
            score_test = problem.engine.score_test(chosen)
            screen = Screen(problem, model, chosen, score_test, problem.screening_rows)
            self._last = names, screen
        return self._last[1]


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
                block *= screen.root
                inside[here] = block @ screen.basis
                norms[here] = np.einsum("mn,mn->m", block, block)
                self._along[here] = block @ screen.residual
            self._left = norms - np.einsum("mk,mk->m", inside, inside)
            self._usable = np.isfinite(norms) & (self._left > _IN_SPAN * norms) & (norms > 0.0)
            self._beside = inside @ screen.directions
        columns[~self._usable] = 0.0
        self._total = screen.total
        self._added: list[Column] = []

    def gains(self) -> FloatArray:
        """Expected gain of each, beside the model or in place of one of its features."""
        screen, total = self._screen, self._total
        luck = screen.luck * np.log(len(self._columns))
        with np.errstate(all="ignore"):
            explained = np.maximum(self._along**2 / self._left - luck, 0.0)
            best = screen.change(_positive(1.0 - explained / total), 1) + screen.next_size
            for j, coefficient in enumerate(screen.coefficients):
                beside = self._beside[:, j]
                explained = (self._along + coefficient * beside) ** 2 / (self._left + beside**2)
                explained = np.maximum(explained - luck, 0.0)
                left = _positive(1.0 + (coefficient**2 - explained) / total)
                np.maximum(best, screen.change(left, 0) - screen.own_prior[j], out=best)
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


def _decompose(
    design: Matrix, predictor: Column, n_fixed: int
) -> tuple[Matrix, Matrix, FloatArray, IntArray]:
    """Basis of the design; direction and coefficient of the columns after the fixed ones.

    A direction is what the other columns leave of a column, in coordinates of the basis. Thinned
    out, columns may depend on others before them; they have neither, and the last result tells
    which columns after the fixed ones are kept.
    """
    lengths = np.linalg.norm(design, axis=0)
    design = design / np.where(lengths > 0.0, lengths, 1.0)
    basis, triangle = np.linalg.qr(design)
    kept = np.abs(np.diag(triangle)) > _DEPENDENT
    if not kept.all():
        basis, triangle = np.linalg.qr(design[:, kept])
    free = int(kept[:n_fixed].sum())
    inverse = np.linalg.inv(triangle)
    coefficients = (inverse @ (basis.T @ predictor))[free:]
    spread = np.linalg.norm(inverse[free:], axis=1)
    directions = (inverse[free:] / spread[:, None]).T
    return basis, directions, coefficients / spread, np.flatnonzero(kept[n_fixed:])


def _positive(left: FloatArray) -> FloatArray:
    return np.maximum(left, 1e-12)
