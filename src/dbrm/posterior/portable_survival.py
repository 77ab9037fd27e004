r"""Survival times as plain data: what another program needs for the curves of a row.

Under Cox's model the baseline hazards at some of the event times, between which survival does not
change; under a Weibull model the log scales with their covariances. See `dbrm.posterior.hazard`.
"""

from typing import Any

import numpy as np

from dbrm._typing import FloatArray, IntArray
from dbrm.data import Table
from dbrm.posterior.hazard import AbstractHazards, CoxHazards, WeibullHazards
from dbrm.posterior.prediction import AveragedModels
from dbrm.posterior.survival_mixture import NORMAL_NODES, NORMAL_WEIGHTS, SurvivalMixture

__all__ = ["affordable_times", "survival_data"]

# Fewest and most times of each stratum.
_FEWEST_TIMES, _MOST_TIMES = 12, 40
# Rows whose longest times, survived by so few, decide how far Weibull curves go.
_ROWS, _SHOWN = 25, 0.95


def survival_data(kept: AveragedModels, training: Table, n_times: int) -> dict[str, Any]:
    """Times of the curves by stratum, and what gives the hazards of each model at them."""
    assert kept.glm is not None
    found: dict[str, Any] = {
        "kind": "survival",
        "family": kept.glm.family.name,
        "mean": "x",
        "integrate": kept.integrate,
        "rule": np.column_stack([NORMAL_NODES, NORMAL_WEIGHTS]).tolist(),
    }
    if isinstance(kept.hazards, CoxHazards):
        return found | _cox(kept.hazards, n_times)
    assert isinstance(kept.hazards, WeibullHazards)
    return found | _weibull(kept.hazards) | {"times": [_even_times(kept, training)]}


def affordable_times(
    hazards: AbstractHazards | None, sizes: IntArray, numbers: float
) -> tuple[int, int]:
    """Times of each stratum that fit into so many numbers with all models, and their sum.

    Parameters
    ----------
    sizes
        Coefficients of each model.
    """
    if not isinstance(hazards, CoxHazards):
        return 0, 0
    n_strata = np.unique(hazards.strata).size
    fit = int(numbers / float((2 + sizes).sum()) / n_strata)
    n_times = min(max(fit, _FEWEST_TIMES), _MOST_TIMES)
    return n_times, _positions(hazards, n_times).size


def _positions(hazards: CoxHazards, n_times: int) -> IntArray:
    """Event times that are kept: evenly from each stratum, ends included."""
    parts = []
    for number in np.unique(hazards.strata):
        own = np.flatnonzero(hazards.strata == number)
        count = min(own.size, n_times)
        parts.append(own[np.linspace(0, own.size - 1, count).astype(np.int64)])
    return np.concatenate(parts)


def _cox(hazards: CoxHazards, n_times: int) -> dict[str, Any]:
    rows = _positions(hazards, n_times)
    strata = hazards.strata[rows]
    return {
        "times": [hazards.times[rows[strata == k]].tolist() for k in np.unique(strata)],
        "log_hazard": hazards.log_hazard[:, rows],
        "spread": hazards.spread[:, rows],
        "pulls": np.concatenate([pulls[rows].ravel() for pulls in hazards.pulls]),
    }


def _weibull(hazards: WeibullHazards) -> dict[str, Any]:
    joints = [fit.joint for fit in hazards.fits]
    across = [np.delete(joint.covariance[1], 1) for joint in joints if joint is not None]
    return {
        "log_scale": np.array([joint.ancillary[1] for joint in joints if joint is not None]),
        "scale_variance": np.array([j.covariance[1, 1] for j in joints if j is not None]),
        "across": np.concatenate(across),
    }


def _even_times(kept: AveragedModels, training: Table) -> list[float]:
    """Times from zero on, until few of the rows are left; four digits, as they are shown."""
    n = training.n_rows
    rows = np.unique(np.linspace(0, n - 1, min(n, _ROWS)).astype(np.int64))
    stratum = np.zeros(rows.size, dtype=np.int64)
    last: list[FloatArray] = [
        block.quantile(_SHOWN)
        for block in kept.blocks(training.take(rows), stratum=stratum)
        if isinstance(block, SurvivalMixture)
    ]
    end = float(np.nanmedian(np.concatenate(last)))
    return [float(f"{end * j / _MOST_TIMES:.4g}") for j in range(1, _MOST_TIMES + 1)]
