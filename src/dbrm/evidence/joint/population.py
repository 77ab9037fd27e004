r"""A population of columns with everything that models of a joint likelihood share.

The search looks at all subsets by one quadratic expansion at the maximum of all columns,

.. math:: \ell(\theta) \approx \hat\ell - \tfrac12 (\theta - \hat\theta)' I (\theta - \hat\theta),

in which the information :math:`I` is the Gram matrix of every submodel; Newton's method starts at
the maximum of the expansion.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

import numpy as np

from dbrm._kernels.block_enumeration import explained_by_all_blocks
from dbrm._kernels.enumeration import prior_of_all
from dbrm._kernels.joint import combine_columns, weighted_products
from dbrm._kernels.piecewise import glm_score_of_all
from dbrm._typing import Column, FloatArray, IntArray, Mask, Masks, Matrix, StatusArray
from dbrm.evidence.base import AbstractExpandable
from dbrm.evidence.design import independent_columns
from dbrm.evidence.glm_expansion import GRAM_RIDGE, RIDGE, Expansion, columns_to_expand
from dbrm.evidence.joint.likelihood import JointLikelihood
from dbrm.evidence.joint.newton import Maximum, maximise
from dbrm.evidence.joint.prior import JointPrior
from dbrm.status import Status

__all__ = ["DEPENDENCE_TOLERANCE", "JointPopulation"]

# A column keeps less than this share of its length beside the others: it is one of them.
DEPENDENCE_TOLERANCE = 1e-9


@final
@dataclass(frozen=True, eq=False)
class JointPopulation(AbstractExpandable):
    """Standardised columns, those of every model first, and one likelihood.

    Parameters
    ----------
    columns
        Columns with mean zero and standard deviation one, by rows of the data; constant ones are
        zero.
    location, scale
        Means and standard deviations that they had.
    unit_gram
        Cross products of the columns scaled to unit length; zero for constant columns.
    n_always
        Number of the leading columns that every model contains.
    """

    likelihood: JointLikelihood
    prior: JointPrior
    columns: Matrix
    location: FloatArray
    scale: FloatArray
    unit_gram: Matrix
    offset: Column
    n_always: int
    enumeration_limit = 6

    @property
    def expansion_limit(self) -> int:  # type: ignore[override]
        return 18 if self.likelihood.n_predictors == 1 else 16

    @property
    def max_fits(self) -> int:  # type: ignore[override]
        return self.likelihood.affordable_fits

    @property
    def size(self) -> int:
        return len(self.columns) - self.n_always

    @property
    def context(self) -> Self:
        return self

    def log_evidence(self, masks: Masks) -> tuple[FloatArray, StatusArray]:
        pairs = [self.evaluate(mask) for mask in masks]
        values = np.array([value for value, _ in pairs], dtype=np.float64)
        return values, np.array([status for _, status in pairs], dtype=np.uint8)

    def evaluate(self, mask: Mask) -> tuple[float, Status]:
        """Log evidence and status of one mask; the uncompiled search calls this."""
        members = self.members(mask)
        row = members.size - self.n_always
        if not self.prior.is_defined(row):
            return -np.inf, Status.UNDEFINED
        if not self.prior.is_normal and not self.is_independent(members):
            return -np.inf, Status.RANK_DEFICIENT
        penalty = self._penalty(members)
        maximum = self.maximum(members)
        value = self.prior.log_evidence(maximum, penalty, row)
        return (value, maximum.status) if np.isfinite(value) else (-np.inf, Status.UNDEFINED)

    def penalised(self, members: IntArray) -> tuple[Maximum, Matrix]:
        """The maximum for predictions, and the matrix of its penalty.

        Where the likelihood has no maximum, coefficients of several predictors have a normal
        prior with the information of one observation, those of a single one a ridge.
        """
        a = self._n_ancillary
        penalty = np.diag(self._penalty(members))
        found = self.maximum(members)
        if found.status is not Status.SEPARATED:
            return found, penalty
        columns = np.ascontiguousarray(self.columns[members])
        if self.likelihood.n_predictors > 1 and not self.prior.is_normal:
            penalty[a:, a:] = self.likelihood.unit_information(columns)
        else:
            np.fill_diagonal(penalty[a:, a:], np.maximum(np.diag(penalty)[a:], RIDGE))
        start = np.concatenate([self._null.parameters, np.zeros(len(penalty) - a)])
        return maximise(self.likelihood, columns, self.offset, start, penalty), penalty

    def maximum(self, members: IntArray) -> Maximum:
        """The maximum of the model with these columns, under the prior's penalty if it has one."""
        penalty = self._penalty(members)
        columns = np.ascontiguousarray(self.columns[members])
        start = self._start(members, penalty)
        found = maximise(self.likelihood, columns, self.offset, start, penalty)
        if found.status is Status.OK or not members.size:
            return found
        # From a place that does not depend on the other columns.
        plain = np.concatenate([self._null.parameters, np.zeros(start.size - self._n_ancillary)])
        again = maximise(self.likelihood, columns, self.offset, plain, penalty)
        return again if again.log_likelihood >= found.log_likelihood else found

    def members(self, mask: Mask) -> IntArray:
        """Positions of the columns of a model."""
        return np.concatenate([np.arange(self.n_always), self.n_always + np.flatnonzero(mask)])

    def is_independent(self, members: IntArray) -> bool:
        """Whether no column is a combination of others."""
        gram = self.unit_gram[np.ix_(members, members)]
        most = self.likelihood.n_rows
        return independent_columns(gram, DEPENDENCE_TOLERANCE, most).size == members.size

    @property
    def _n_ancillary(self) -> int:
        return len(self.likelihood.shift)

    def _penalty(self, members: IntArray) -> FloatArray:
        return self.prior.penalty(np.repeat(self.scale[members], self.likelihood.n_predictors))

    @cached_property
    def _null(self) -> Maximum:
        """The maximum without columns."""
        nothing = np.zeros((0, self.likelihood.n_rows))
        start = self.likelihood.start()
        return maximise(self.likelihood, nothing, self.offset, start, np.zeros(start.size))

    @cached_property
    def _full(self) -> tuple[Matrix, FloatArray, float]:
        """Information, its product with the maximum, and log likelihood, all columns together."""
        return self._expand(np.ones(self.size, dtype=np.bool_))

    def _expand(self, mask: Mask) -> tuple[Matrix, FloatArray, float]:
        members = self.members(mask)
        members = columns_to_expand(self.unit_gram, members, self.likelihood.n_rows)
        a, m = self._n_ancillary, self.likelihood.n_predictors
        penalty = self._penalty(members)
        if not self.prior.is_normal:
            # Gives a likelihood without a maximum one.
            penalty[a:] = RIDGE
        start = np.concatenate([self._null.parameters, np.zeros(members.size * m)])
        columns = np.ascontiguousarray(self.columns[members])
        found = maximise(self.likelihood, columns, self.offset, start, penalty)
        information = found.point.information(self.columns)
        slopes = weighted_products(self.columns, np.ones(self.offset.size), found.point.score)
        score = np.concatenate([found.point.ancillary_score, slopes.ravel()])
        parameters = np.zeros(score.size)
        parameters[self._places(members)] = found.parameters
        # The expansion is around its own maximum, which the penalty has moved.
        right = information @ parameters + score
        return information, right, found.log_likelihood

    def _places(self, members: IntArray) -> IntArray:
        """Where the parameters of some columns stand among those of all."""
        a, m = self._n_ancillary, self.likelihood.n_predictors
        own = a + (members[:, None] * m + np.arange(m)).ravel()
        return np.concatenate([np.arange(a), own]).astype(np.int64)

    def _start(self, members: IntArray, penalty: FloatArray) -> FloatArray:
        """The maximum of the expansion, or the null model where that is no better."""
        null = np.concatenate([self._null.parameters, np.zeros(penalty.size - self._n_ancillary)])
        if not self.size or members.size == self.n_always:
            return null
        information, right, _ = self._full
        places = self._places(members)
        gram = information[np.ix_(places, places)] + np.diag(penalty)
        try:
            guess: FloatArray = np.asarray(np.linalg.solve(gram, right[places]), dtype=np.float64)
        except np.linalg.LinAlgError:
            return null
        if not np.isfinite(guess).all():
            return null
        a, m = self._n_ancillary, self.likelihood.n_predictors
        eta = combine_columns(guess[a:].reshape(-1, m), self.columns[members], self.offset)
        with np.errstate(all="ignore"):
            value = self.likelihood.at(guess[:a], eta).value
        return guess if value > self._null.log_likelihood else null

    def approximate_all(self, centre: Mask, max_size: int) -> FloatArray:
        information, right, value = self._full if centre.all() else self._expand(centre)
        a = self._n_ancillary
        if self.likelihood.n_predictors > 1:
            return self._approximate_blocks(information, right, max_size)
        if a == 0:
            # A parameter that nothing depends on, in the place of the intercept.
            information = np.pad(information, ((1, 0), (1, 0)))
            information[0, 0], right = 1.0, np.concatenate([[0.0], right])
        penalty = self._penalty(np.arange(self.n_always, len(self.columns)))[a:]
        total = float(right @ np.linalg.lstsq(information, right, rcond=None)[0])
        expansion = Expansion(
            information,
            right,
            total,
            max(a, 1) + self.n_always,
            self.prior.table.table.arguments,
            constant=value,
            penalty=penalty if self.prior.is_normal else None,
        )
        return expansion.approximate_all(max_size)

    def _approximate_blocks(
        self, information: Matrix, right: FloatArray, max_size: int
    ) -> FloatArray:
        """The same where a column has several coefficients."""
        a, m = self._n_ancillary, self.likelihood.n_predictors
        if not (np.isfinite(information).all() and np.isfinite(right).all()):
            return np.full(1 << self.size, -np.inf)
        penalty = self._penalty(np.arange(len(self.columns)))
        gram = information + np.diag(penalty)
        unit = np.sqrt(np.maximum(np.diag(gram), np.finfo(np.float64).tiny))
        gram = gram / np.outer(unit, unit) + GRAM_RIDGE * np.eye(unit.size)
        gram, right, ancillary = _fitted_first(gram, right / unit, a)
        gram, right, always = _fitted_first(gram, right, self.n_always * m)
        explained, log_det = explained_by_all_blocks(gram, right, m, max_size)
        wald = always + explained
        value = 0.5 * (ancillary + wald)
        if self.prior.is_normal:
            free = slice(a + self.n_always * m, None)
            share = np.log(penalty[free] / unit[free] ** 2).reshape(-1, m).sum(axis=1)
            prior = prior_of_all(0.5 * share, np.zeros(self.size + 1), np.zeros(1))
            return np.asarray(value - 0.5 * log_det + prior)
        wald = np.where(wald > 0.0, wald, 0.0)
        return np.asarray(glm_score_of_all(value, 0.0, wald, self.prior.table.table.arguments))


def _fitted_first(
    gram: Matrix, right: FloatArray, n_first: int
) -> tuple[Matrix, FloatArray, float]:
    """Gram matrix and right-hand side once the first parameters are fitted, and what they explain.

    They explain :math:`r_1' G_{11}^{-1} r_1`.
    """
    both = np.column_stack([gram[:n_first, n_first:], right[:n_first]])
    solved = np.linalg.solve(gram[:n_first, :n_first], both)
    across = gram[n_first:, :n_first]
    return (
        np.ascontiguousarray(gram[n_first:, n_first:] - across @ solved[:, :-1]),
        right[n_first:] - across @ solved[:, -1],
        float(right[:n_first] @ solved[:, -1]),
    )
