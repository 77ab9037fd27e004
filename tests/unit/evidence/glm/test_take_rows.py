"""An engine on some of the rows."""

import numpy as np

from dbrm.evidence import GlmEngine, Jeffreys


def test_everything_per_row_goes_with_the_rows(rng):
    y, columns = rng.poisson(2.0, 60).astype(float), rng.normal(size=(60, 3))
    given = {
        "weights": rng.integers(1, 4, 60).astype(float),
        "offset": rng.normal(size=60),
        "exposure": rng.uniform(1.0, 2.0, 60),
        "always": rng.normal(size=(60, 1)),
    }
    rows = np.arange(0, 60, 2)
    taken = GlmEngine(y, Jeffreys(), "poisson", **given).take(rows)
    some = {name: values[rows] for name, values in given.items()}
    alone = GlmEngine(y[rows], Jeffreys(), "poisson", **some)
    assert taken.log_evidence(columns[rows]) == alone.log_evidence(columns[rows])


def test_rows_without_weight_are_no_sample(rng):
    weights = np.array([0.0, 1.0] * 20)
    engine = GlmEngine(rng.poisson(2.0, 40).astype(float), Jeffreys(), "poisson", weights=weights)
    assert engine.take(np.arange(0, 40, 2)) is None
