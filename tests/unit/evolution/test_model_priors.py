"""Tests of `dbrm.evolution.model_priors`."""

import numpy as np

from dbrm.evolution import Registry, with_prior
from dbrm.features import parse_feature
from dbrm.search import ModelTable


def test_a_model_has_the_prior_of_the_simplest_spelling_met_until_now(rng, pose):
    x = rng.uniform(1, 2, (40, 2))
    problem = pose(x, x[:, 0], transforms=["sqrt_abs", "square"], penalty=3.0)
    registry, prior = Registry(problem.table), problem.model_prior
    long, short = parse_feature("sqrt_abs(square(x1))"), parse_feature("x1")
    other = parse_feature("x2")
    for feature, column in ((long, x[:, 0]), (other, x[:, 1])):
        registry.number(feature, column)

    def log_priors():
        models = ModelTable.from_masks(
            np.array([[True, False], [True, True], [False, False]]),
            np.arange(2, dtype=np.int32),
            registry.keys,
            log_evidence=np.zeros(3),
            log_prior=np.full(3, np.nan),
            statuses=np.zeros(3, dtype=np.uint8),
        )
        return with_prior(models, problem, registry).log_prior

    def expected(name):
        one, two = prior.feature_log_prior(name), prior.feature_log_prior(other)
        return np.array([one, one + two, 0.0]) + prior.size_log_prior(np.arange(3))[[1, 2, 0]]

    np.testing.assert_allclose(log_priors(), expected(long))
    registry.alias(0, short)
    np.testing.assert_allclose(log_priors(), expected(short))
    assert np.all(expected(short)[:2] > expected(long)[:2] + 5.0)
