"""Rows whose survival curves are worth a picture."""

from typing import TYPE_CHECKING, Any

import numpy as np

from dbrm._typing import IntArray, TableLike
from dbrm.posterior.hazard import CoxHazards
from dbrm.posterior.survival_mixture import SurvivalMixture

if TYPE_CHECKING:
    from dbrm.posterior.posterior import Posterior

__all__ = ["survival_examples"]

# Quantiles of the risk of the training rows that are shown, and most curves of other rows.
_QUANTILES, _LABELS = (0.1, 0.5, 0.9), ("low risk", "middle", "high risk")
_MOST = 5
# Share of events that a curve shows at middle risk.
_SHOWN = 0.95


def survival_examples(
    posterior: "Posterior", X: TableLike | None, strata: Any
) -> tuple[SurvivalMixture, list[str], float]:
    """The first rows of `X`, or training rows at low, middle and high risk.

    Their distributions, what they are called, and the last time worth showing.
    """
    averaged, hazards = posterior._averaged, posterior._averaged.hazards
    if X is None:
        table = posterior._source.table
        # A log time under a Weibull model: long lives first.
        risk = np.concatenate([block.mean() for block in averaged.blocks(table)])
        order = np.argsort(risk if isinstance(hazards, CoxHazards) else -risk, kind="stable")
        rows = order[np.round(np.array(_QUANTILES) * (risk.size - 1)).astype(np.int64)]
        table, labels = table.take(rows), list(_LABELS)
        stratum: IntArray | None = np.zeros(rows.size, dtype=np.int64)
    else:
        table = posterior.recipe.apply(X)
        table = table.take(np.arange(min(table.n_rows, _MOST)))
        labels = [f"row {row}" for row in range(table.n_rows)]
        given = None if strata is None else np.asarray(strata)[: table.n_rows]
        stratum = posterior.number_strata(given, 0, table.n_rows)
    (block,) = averaged.blocks(table, stratum=stratum)
    assert isinstance(block, SurvivalMixture)
    if isinstance(hazards, CoxHazards):
        last = float(hazards.times.max())
    else:
        last = float(np.median(block.quantile(_SHOWN)))
    return block, labels, last
