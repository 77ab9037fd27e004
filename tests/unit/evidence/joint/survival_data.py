"""Simulated survival times with ties, censoring, late entries, strata and weights."""

import numpy as np

from dbrm.evidence import Observations


def simulate(rng, n=80, *, late=True, strata=True, weights=False):
    """Columns, and times rounded to halves so that there are ties."""
    columns = rng.normal(size=(n, 3))
    time = np.ceil(8.0 * rng.exponential(np.exp(-0.7 * columns[:, 0] + 0.3 * columns[:, 1]))) / 2
    censored = np.ceil(8.0 * rng.exponential(1.5, size=n)) / 2
    observed = np.minimum(time, censored)
    entry = np.where(rng.random(n) < 0.5, np.floor(observed * rng.random(n)), 0.0)
    return columns, Observations(
        observed,
        weights=rng.integers(1, 4, n).astype(float) if weights else None,
        event=(time <= censored).astype(float),
        entry=entry if late else None,
        strata=rng.integers(0, 2, n).astype(float) if strata else None,
    )
