r"""Fewer covariates: products of powers that a response depends on, by tests on the data.

If :math:`y = x_i^k\, h(x_j x_i^m, \dots)`, then :math:`\log|y|`, a function of the
:math:`\log x_j`, is linear in :math:`\log x_i` once :math:`\log x_j + m \log x_i` has taken the
place of both. Polynomials in the variables before and after are compared, the pair that loses least
is merged, and so on: what remains are the groups of a law of physics, found without units. They
only decide where sums are looked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement
from typing import final

import numpy as np

from dbrm._typing import Column, FloatArray, Matrix

__all__ = ["Reduction", "merged_pairs", "reduce_covariates"]

# Exponents of one covariate beside another.
_RATIOS = (-1.0, 1.0, -2.0, 2.0, -0.5, 0.5)
# Largest degree of a polynomial, and rows for each of its terms.
_DEGREE, _ROWS_PER_TERM = 4, 5
# What a term less may add to the squares, in units of what it does by chance.
_CHANCE = 4.0
# Share of the variance that the misfit of a polynomial may be.
_MISFIT = 1e-4
# Largest distance of the exponent of a factor from a multiple of one half, and largest exponent.
_FAR, _LARGEST = 0.15, 6.0
# Powers of a group that are tried in the factor.
_SHIFTS = (0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0)
# Most that a row weighs, beside that in the middle.
_HEAVIEST = 10.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A factor, and groups on which what stands beside it depends.

    Parameters
    ----------
    factor
        Exponents of the covariates in the factor.
    groups
        Exponents of the covariates in each group, one row for each; those of a covariate that was
        not merged are those of itself.
    """

    factor: FloatArray
    groups: Matrix


def reduce_covariates(logs: Matrix, others: Matrix, response: Column) -> Reduction | None:
    """Merge covariates into groups, pair by pair; ``None`` if there is no pair.

    Parameters
    ----------
    logs
        Logarithms of the covariates that may be merged.
    others
        Columns that the response may depend on beside them.
    """
    size = np.abs(response)
    if not np.all(size > 0.0) or not logs.shape[1] > 1:
        return None
    of_one_sign = bool(np.all(response > 0.0) or np.all(response < 0.0))
    target, root = response, np.ones(response.size)
    if of_one_sign:
        target, root = np.log(size), np.minimum(size / np.median(size), _HEAVIEST)
    centred = target - np.average(target, weights=root**2)
    variation = max(float(np.sum((centred * root) ** 2)), 1e-300)
    groups, linear = np.eye(logs.shape[1]), np.empty((0, logs.shape[1]))
    merged = False
    while True:
        options = list(_merged(groups, linear, factor=of_one_sign))
        now = _Polynomial(logs, others, groups, linear, len(groups) + others.shape[1])
        n_terms, squares, _ = now.fit(target, root)
        spare = response.size - n_terms
        # Where there is hardly any noise it is the misfit of polynomials that is compared.
        noise = max(squares, _MISFIT * variation / _CHANCE) / spare
        best: tuple[float, Matrix, Matrix] = (_CHANCE, groups, linear)
        for fewer, rest in options:
            after = _Polynomial(logs, others, fewer, rest, len(groups) + others.shape[1])
            n_after, more, _ = after.fit(target, root)
            added = (more - squares) / max(n_terms - n_after, 1) / noise
            if added < best[0]:
                best = added, fewer, rest
        if best[1] is groups:
            break
        _, groups, linear = best
        merged = True
    if not merged:
        return None
    return _with_factor(logs, others, groups, linear, target, root)


def merged_pairs(columns: Matrix, response: Column) -> Matrix:
    r"""Weights of the columns in sums and differences on which a response depends, a row for each.

    Of one or two columns each, one and plus or minus one. A polynomial in :math:`x_i \pm x_j` in
    the place of both must lose nothing; of the pairs that share a column, the one that loses least.
    """
    groups, none = np.eye(columns.shape[1]), np.empty((0, columns.shape[1]))
    root, variation = np.ones(response.size), float(np.sum((response - response.mean()) ** 2))
    merged = np.zeros(len(groups), dtype=np.bool_)
    while np.sum(~merged) > 1:
        empty = np.empty((response.size, 0))
        n_terms, squares, _ = _Polynomial(columns, empty, groups, none, len(groups)).fit(
            response, root
        )
        noise = max(squares, _MISFIT * variation / _CHANCE) / max(response.size - n_terms, 1)
        best, found = _CHANCE, groups
        for i, j in combinations(np.flatnonzero(~merged).tolist(), 2):
            for sign in (1.0, -1.0):
                fewer = np.vstack([np.delete(groups, [i, j], axis=0), groups[i] + sign * groups[j]])
                after = _Polynomial(columns, empty, fewer, none, len(groups))
                n_after, more, _ = after.fit(response, root)
                added = (more - squares) / max(n_terms - n_after, 1) / noise
                if added < best:
                    best, found = added, fewer
        if found is groups:
            break
        groups = found
        merged = np.count_nonzero(groups, axis=1) > 1
    return groups


def _merged(groups: Matrix, linear: Matrix, *, factor: bool) -> Iterator[tuple[Matrix, Matrix]]:
    """Each pair of groups in one, the first of them as a factor, too."""
    for i, j in combinations(range(len(groups)), 2):
        others = np.delete(groups, [i, j], axis=0)
        for ratio in _RATIOS:
            both = groups[j] + ratio * groups[i]
            if abs(ratio) < 1.0:
                both = both / abs(ratio)
            yield np.vstack([both, others]), np.vstack([linear, groups[i]]) if factor else linear


class _Polynomial:
    """All monomials in the logarithms of groups and in other columns, and linear terms."""

    def __init__(
        self, logs: Matrix, others: Matrix, groups: Matrix, linear: Matrix, n_variables: int
    ) -> None:
        variables = np.column_stack([logs @ groups.T, others])
        spread = variables.std(axis=0)
        variables = (variables - variables.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        degree = _degree(n_variables, len(logs))
        monomials = [
            np.prod(variables[:, chosen], axis=1)
            for k in range(degree + 1)
            for chosen in combinations_with_replacement(range(variables.shape[1]), k)
        ]
        self.design = np.column_stack([logs @ linear.T, *monomials])

    def fit(self, target: Column, root: Column) -> tuple[int, float, FloatArray]:
        """The number of terms, the squares that are left, and the coefficients."""
        design = self.design * root[:, None]
        lengths = np.linalg.norm(design, axis=0)
        lengths = np.where(lengths > 0.0, lengths, 1.0)
        solved, _, rank, _ = np.linalg.lstsq(design / lengths, target * root, rcond=1e-10)
        rest = target * root - design @ (solved / lengths)
        return int(rank), float(rest @ rest), np.asarray(solved / lengths)


def _degree(n_variables: int, n_rows: int) -> int:
    degree, n_terms = 1, 1 + n_variables
    while degree < _DEGREE:
        n_terms = n_terms * (n_variables + degree + 1) // (degree + 1)
        if n_terms * _ROWS_PER_TERM > n_rows:
            break
        degree += 1
    return degree


def _with_factor(
    logs: Matrix, others: Matrix, groups: Matrix, linear: Matrix, target: Column, root: Column
) -> Reduction | None:
    """The exponents of the factor, if they are near multiples of one half."""
    polynomial = _Polynomial(logs, others, groups, linear, len(groups) + others.shape[1])
    slopes = polynomial.fit(target, root)[2][: len(linear)]
    rounded = np.round(2.0 * slopes) / 2.0
    if np.any(np.abs(slopes - rounded) > _FAR) or np.any(np.abs(rounded) > _LARGEST):
        return None
    factor = rounded @ linear
    for group in groups:
        # A power of a group may as well belong to what stands beside the factor.
        options = [factor + shift * group for shift in _SHIFTS]
        factor = min(options, key=lambda exponents: float(np.abs(exponents).sum()))
    return Reduction(factor, np.array([_upright(row, logs) for row in groups]))


def _upright(group: FloatArray, logs: Matrix) -> FloatArray:
    """A group or its inverse: with fewer covariates below the line, or below one."""
    signs = np.sign(group).sum()
    if signs == 0.0:
        signs = -np.median(logs @ group)
    return group if signs >= 0.0 else -group
