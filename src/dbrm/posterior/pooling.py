r"""One fit from those of a model on several completed tables, by Rubin's rules.

.. math:: \bar\beta = \frac1K\sum_k \hat\beta_k, \qquad
    T = \frac1K\sum_k V_k + \Bigl(1 + \frac1K\Bigr) B ,

with :math:`V_k` the covariance on table :math:`k`, and :math:`B` that of the estimates between
tables.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dbrm.evidence import ModelFit
from dbrm.status import Status

__all__ = ["pool_fits"]


def pool_fits(fits: Sequence[ModelFit]) -> ModelFit:
    """Pool the fits of one model."""
    number = len(fits)
    coefficients = np.array([fit.coefficients for fit in fits])
    away = coefficients - coefficients.mean(axis=0)
    between = away.T @ away / max(number - 1, 1)
    within = np.mean([fit.dispersion * fit.covariance for fit in fits], axis=0)
    dispersion = float(np.mean([fit.dispersion for fit in fits]))
    return replace(
        fits[0],
        log_evidence=float(np.mean([fit.log_evidence for fit in fits])),
        log_likelihood=float(np.mean([fit.log_likelihood for fit in fits])),
        coefficients=coefficients.mean(axis=0),
        covariance=(within + (1.0 + 1.0 / number) * between) / dispersion,
        dispersion=dispersion,
        status=Status(max(int(fit.status) for fit in fits)),
    )
