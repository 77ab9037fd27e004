"""Tests of populations that cannot be filled: few rows, or few features to make."""

import numpy as np
import pytest

import dbrm

SETTINGS = {"n_chains": 1, "n_populations": 8, "n_jobs": 1, "random_state": 1}


@pytest.mark.filterwarnings("ignore::dbrm.errors.DBRMWarning")
def test_few_rows_end_the_tries_for_new_features(rng):
    """In ten rows nine columns are independent; further candidates are not even made."""
    x = rng.normal(size=(10, 1))
    posterior = dbrm.fit(x, x[:, 0] + rng.normal(size=10), **SETTINGS)
    assert sum(posterior.record.rejections.values()) < 1_000


@pytest.mark.filterwarnings("ignore::dbrm.errors.DBRMWarning")
def test_nothing_new_can_be_made_of_a_two_valued_column(rng):
    """Each of the seven further populations gives up after 40 tries in a row."""
    x = rng.integers(0, 2, size=(30, 1)).astype(float)
    posterior = dbrm.fit(x, x[:, 0] + rng.normal(size=30), **SETTINGS)
    assert 0 < sum(posterior.record.rejections.values()) <= 7 * 40


def test_populations_with_more_to_offer_are_filled(rng):
    """Control: where features can be made, populations have their full size."""
    x = rng.normal(size=(60, 4))
    posterior = dbrm.fit(x, x[:, 0] + rng.normal(size=60), population_size=9, **SETTINGS)
    problem = posterior._problem
    assert problem.budget.population_size == 9
    assert len(posterior.features) >= 9
    assert np.isfinite(posterior.models["log_evidence"]).all()
