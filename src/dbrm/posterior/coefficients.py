r"""Coefficients averaged over models, with credible intervals.

The coefficient of a feature is zero in the models without it. Its averaged posterior is

.. math:: \Bigl(1 - \sum_{M \ni F} p_M\Bigr) \delta_0
    + \sum_{M \ni F} p_M\, t_{\nu_M}(\hat\beta_{MF}, \phi_M C_{MF}),

a point mass and a mixture of t distributions; where a dispersion is integrated by a sum over
its posterior (`dbrm.posterior.dispersion`), of as many as it has terms for each model.
"""

from typing import TYPE_CHECKING

import numpy as np

from dbrm._typing import Column
from dbrm.data import Table
from dbrm.posterior.mixture import StudentMixture
from dbrm.posterior.new_data import check_level
from dbrm.posterior.prediction import AveragedModels

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["averaged_coefficients"]

_TINY = np.finfo(float).tiny


def averaged_coefficients(
    averaged: AveragedModels, level: float, conditional: bool, training: Table | None
) -> "pd.DataFrame":
    """One row per term, the most probable first; see `Posterior.coefficients`.

    Parameters
    ----------
    training
        Rows whose standard deviations are the units of the terms; ``None`` for no such units.
    """
    import pandas as pd

    check_level(level)
    mixture, inclusion = _mixture(averaged)
    share = np.ones_like(inclusion) if conditional else inclusion
    mean = share * mixture.mean()
    second = mixture.standard_deviation() ** 2 + mixture.mean() ** 2
    low, high = (_quantile(mixture, share, end) for end in (0.5 - level / 2, 0.5 + level / 2))
    terms = ["(intercept)", *map(str, averaged.always), *map(str, averaged.features)]
    table = pd.DataFrame(
        {
            "term": terms,
            "inclusion": inclusion,
            "estimate": mean,
            "sd": np.sqrt(np.maximum(share * second - mean**2, 0.0)),
            "lower": low,
            "upper": high,
        }
    )
    if training is not None:
        spread = averaged.evaluate(training).std(axis=0)
        table[["estimate", "sd", "lower", "upper"]] *= np.concatenate([[1.0], spread])[:, None]
    fixed = 1 + len(averaged.always)
    order = np.argsort(-inclusion[fixed:], kind="stable") + fixed
    first = 0 if any(fit.has_intercept for fit in averaged.fits) else 1
    return table.iloc[[*range(first, fixed), *order]].reset_index(drop=True)


def _mixture(averaged: AveragedModels) -> tuple[StudentMixture, Column]:
    """The t part of every term (columns) over models (rows), and the weight of that part."""
    fixed = 1 + len(averaged.always)
    shape = (len(averaged.models), fixed + len(averaged.features))
    weights, locations, scales = np.zeros(shape), np.zeros(shape), np.ones(shape)
    total = float(averaged.probability.sum())
    for row, (members, fit) in enumerate(zip(averaged.models, averaged.fits, strict=True)):
        positions = np.concatenate([np.arange(fixed), fixed + members])
        spread = np.sqrt(np.maximum(np.diag(fit.covariance), 0.0) * fit.dispersion)
        weights[row, positions] = averaged.probability[row] / total
        locations[row, positions] = averaged.centre(row)
        scales[row, positions] = np.maximum(spread, _TINY)
        if not fit.has_intercept:
            weights[row, 0], scales[row, 0] = 0.0, 1.0
    totals = weights.sum(axis=0)
    inclusion = np.minimum(totals, 1.0)
    models, shares, _, factors = averaged.components
    df = np.array([fit.degrees_of_freedom for fit in averaged.fits])
    mixture = StudentMixture(
        # A term of no model, an intercept that is zero in all, has no row in the end.
        np.where(totals > 0, weights / np.maximum(totals, _TINY), 1.0 / len(weights))[models]
        * shares[:, None],
        locations[models],
        scales[models] * np.sqrt(factors)[:, None],
        df[models],
    )
    return mixture, inclusion


def _quantile(mixture: StudentMixture, share: Column, level: float) -> Column:
    """Quantile of a point mass at zero, weight ``1 - share``, and the mixture."""
    below = share * mixture.cdf(np.zeros_like(share))
    left, right = level < below, level > below + (1.0 - share)
    inner = np.where(left, level, level - (1.0 - share)) / np.maximum(share, _TINY)
    return np.where(left | right, mixture.quantile(np.where(left | right, inner, 0.5)), 0.0)
