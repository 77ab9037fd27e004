r"""Scores of many features at once.

`PairProducts` scores all pairwise products of two sets of columns without forming the products.
For columns :math:`x, z` and a centred residual :math:`r`, the share of the residual that
:math:`xz` explains follows from three matrix products:

.. math:: \frac{(\sum_i r_i x_i z_i)^2}
    {\{\sum_i x_i^2 z_i^2 - (\sum_i x_i z_i)^2 / n\} \sum_i r_i^2} .

A million products over a thousand rows take well under a second. `rank_again` scores features
found on some of the rows of an out-of-core table again, on all rows of its sample.
"""

from collections.abc import Iterator
from math import log
from typing import final

import numpy as np

from dbrm._typing import Column, Matrix
from dbrm.data import to_unit_length
from dbrm.evidence import ScoreTest
from dbrm.evolution.problem import Problem
from dbrm.features import Feature, evaluate, fit_knots

__all__ = ["PairProducts", "rank_again"]


_BLOCK = 256
# Products that keep less than this share of their raw variance are constant to rounding.
_LEAST_VARIANCE = 1e-9


@final
class PairProducts:
    """All products of a column of one set and a column of another, as correlates of residuals.

    Columns should be of order one. The variances of the products, which no residual changes,
    are computed once: one number for every product.
    """

    def __init__(self, left: Matrix, right: Matrix) -> None:
        self._left, self._right = left, right
        squares = right * right
        # For 0/1 columns sums and sums of squares are the same.
        plain = bool(np.array_equal(squares, right) and np.array_equal(left * left, left))
        self._inverse = np.empty((left.shape[1], right.shape[1]))
        for start in range(0, left.shape[1], _BLOCK):
            block = left[:, start : start + _BLOCK]
            with np.errstate(all="ignore"):
                sums = block.T @ right
                raw = sums if plain else (block * block).T @ squares
                variance = raw - sums * sums / len(left)
                usable = variance > _LEAST_VARIANCE * raw
                self._inverse[start : start + _BLOCK] = np.where(usable, 1.0 / variance, 0.0)

    def shares(self, residual: Column) -> Iterator[tuple[int, Matrix]]:
        """Explained shares of a centred residual, in blocks.

        Yields the first column of ``left`` in the block, then shares by ``right``. Where a
        product is constant or not finite the share is zero.
        """
        norm = float(residual @ residual)
        for start in range(0, self._left.shape[1], _BLOCK):
            block = self._left[:, start : start + _BLOCK]
            inverse = self._inverse[start : start + _BLOCK]
            with np.errstate(all="ignore"):
                share = ((block * residual[:, None]).T @ self._right) ** 2 * (inverse / norm)
            yield start, np.where(np.isfinite(share), np.minimum(share, 1.0), 0.0)


# Columns held at once.
_COLUMNS = 32


def rank_again(
    problem: Problem, score_test: ScoreTest, model: Matrix, features: list[Feature], tried: int
) -> list[tuple[float, Feature]]:
    """Expected gain in log posterior of each feature, beside a model with these columns.

    The best of the features `tried` look better than they are: the share of the residual that
    the best of them explains by chance is subtracted.
    """
    basis, _ = np.linalg.qr(to_unit_length(model, fill=0.0))
    residual = score_test.residual - score_test.residual.mean()
    residual = residual - basis @ (basis.T @ residual)
    norm = float(residual @ residual)
    shares = np.zeros(len(features))
    for start in range(0, len(features), _COLUMNS):
        part = features[start : start + _COLUMNS]
        fitted = [fit_knots(problem.simplify(feature), problem.table) for feature in part]
        columns = to_unit_length(evaluate(fitted, problem.table)[0], fill=0.0, in_place=True)
        left = 1.0 - np.sum((basis.T @ columns) ** 2, axis=0)
        with np.errstate(all="ignore"):
            found = (residual @ columns) ** 2 / (left * norm)
        shares[start : start + len(part)] = np.where(left > 1e-6, found, 0.0)
    noise = 2.0 * log(tried) / problem.table.n_rows
    gains = score_test.gain(np.clip(np.nan_to_num(shares - noise), 0.0, 1.0))
    prior = problem.model_prior.feature_log_prior
    return [(float(gain) + prior(f), f) for gain, f in zip(gains, features, strict=True)]
