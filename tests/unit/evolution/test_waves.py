"""Tests of waves found in a periodogram."""

import numpy as np
import pytest

from dbrm.evolution.sweep.waves import sweep_waves
from dbrm.features import evaluate

LAWS = ["sin", "cos", "exp", "square", "power[-1]"]

WAVES = {
    "a fast wave": lambda x, y: 2.0 * np.sin(9.8 * x) + x * y,
    "a product of waves": lambda x, y: np.cos(7.0 * x) * np.sin(1.3 * y),
    "a wave of a product": lambda x, y: (x - 3) * (y - 3) + 2 * np.sin((x - 4) * (y - 4)),
}


def table_of(rng, n=300):
    return rng.uniform(0.05, 6.0, (n, 2))


@pytest.mark.parametrize("name", WAVES)
def test_a_wave_beside_a_polynomial_is_found(rng, pose, name):
    """With its frequencies: nothing is left where it was not fitted."""
    x = table_of(rng)
    response = WAVES[name](*x.T)
    noise = 0.01 * response.std() * rng.normal(size=300)
    problem = pose(x, response + noise, transforms=LAWS, max_complexity=20, max_depth=8)
    features = sweep_waves(problem)
    fresh = table_of(rng)
    law = WAVES[name](*fresh.T)
    columns = evaluate(features, dict(zip(problem.table.names, fresh.T, strict=True)))[0]
    smooth = np.column_stack([np.ones(300), fresh, fresh[:, 0] * fresh[:, 1]])
    left = []
    for column in columns.T:
        design = np.column_stack([smooth, column])
        rest = law - design @ np.linalg.lstsq(design, law, rcond=None)[0]
        left.append(float(rest @ rest) / float(np.sum((law - law.mean()) ** 2)))
    assert min(left) < 1e-4


def test_noise_has_no_waves(rng, pose):
    """The share of a false peak exceeds its limit in less than one of a million tables."""
    x = table_of(rng)
    assert sweep_waves(pose(x, x[:, 0] + rng.normal(size=300), transforms=LAWS)) == []


def test_there_are_none_without_sine_and_cosine(rng, pose):
    x = table_of(rng)
    response = WAVES["a fast wave"](*x.T)
    assert sweep_waves(pose(x, response, transforms=["exp", "square"])) == []
    assert sweep_waves(pose(x, response, transforms=LAWS), lambda: True) == []
