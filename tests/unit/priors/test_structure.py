"""Tests of `dbrm.priors`: the model priors and their names."""

from itertools import combinations
from math import comb, exp, inf, log

import numpy as np
import pytest

import dbrm
from dbrm.errors import InvalidSettingError, UnknownNameError
from dbrm.priors import (
    Adaptive,
    BetaBinomial,
    Complexity,
    LogicRegression,
    ModelPrior,
    ScriptWeights,
    Uniform,
    resolve_model_prior,
)

# Complexity, and what the classification scripts charge at half a nat per sign.
TABLE = [
    ("x", 1, 0.5),
    ("sin(x)", 2, 1.5),
    ("x*z", 2, 1.5),
    ("R*R*R*rho", 4, 3.5),
    ("sin(0.1 + 2.0*x + 3.0*z)", 4, 2.5),
]


@pytest.mark.parametrize(("text", "complexity", "nats"), TABLE)
def test_the_table_of_the_memo(text, complexity, nats):
    feature = dbrm.parse_feature(text)
    assert Complexity(3.0).feature_log_prior(feature) == -3.0 * complexity
    assert ScriptWeights().feature_log_prior(feature) == -nats


@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_projection_of_k_covariates_costs_half_of_k_plus_three(k):
    text = "tanh(" + " + ".join(f"2.0*x{j}" for j in range(k)) + ")"
    assert ScriptWeights().feature_log_prior(dbrm.parse_feature(text)) == -(k + 3) / 2


def test_complexity_ignores_the_model_size():
    np.testing.assert_array_equal(Complexity(1.0).size_log_prior(np.arange(4)), np.zeros(4))
    np.testing.assert_array_equal(Uniform().size_log_prior(np.arange(4)), np.zeros(4))


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.5, 4.0)])
def test_beta_binomial_is_normalised_over_all_subsets(a, b):
    prior = BetaBinomial(7, a, b)
    sizes = np.arange(8)
    log_prior = prior.size_log_prior(sizes)
    total = sum(comb(7, k) * np.exp(log_prior[k]) for k in sizes)
    assert total == pytest.approx(1.0, abs=1e-12)
    assert prior.size_log_prior(np.array([8]))[0] == -inf


def test_flat_beta_binomial_gives_every_size_the_same_mass():
    log_prior = BetaBinomial(5).size_log_prior(np.arange(6))
    np.testing.assert_allclose([comb(5, k) * np.exp(log_prior[k]) for k in range(6)], 1 / 6)


def test_logic_regression_counts_trees():
    """Two leaves out of five covariates: 10 pairs, four trees each."""
    prior = LogicRegression(5)
    assert prior.feature_log_prior(dbrm.parse_feature("a")) == pytest.approx(-log(5))
    assert prior.feature_log_prior(dbrm.parse_feature("a*not(b)")) == pytest.approx(-log(10 * 4))
    many = dbrm.parse_feature("*".join("abcdef"))
    assert prior.feature_log_prior(many) == -inf


def test_a_prior_is_a_sum_over_features_and_a_size_term():
    """The form every search relies on, by brute force over four features."""
    features = [dbrm.parse_feature(text) for text in ("x", "sin(x)", "x*z", "cos(x*z)")]
    prior = Complexity(1.3)
    for size in range(5):
        for chosen in combinations(features, size):
            whole = sum(prior.feature_log_prior(feature) for feature in chosen)
            assert whole == pytest.approx(-1.3 * sum(feature.complexity for feature in chosen))


@pytest.mark.parametrize(
    ("penalty", "expected"),
    [
        ("aic", Complexity(2.0)),
        ("AIC", Complexity(2.0)),
        ("bic", Complexity(2.0 * log(50))),
        (3, Complexity(3.0)),
        (0.5, Complexity(0.5)),
        (np.float64(0.5), Complexity(0.5)),
        ("uniform", Uniform()),
        ("beta-binomial", BetaBinomial(4)),
        ("beta_binomial", BetaBinomial(4)),
        ("logic-regression", LogicRegression(4)),
        ("script-weights", ScriptWeights()),
        ("multiplicity", Complexity(log(4 + 3))),
        (Complexity(9.0), Complexity(9.0)),
    ],
)
def test_what_users_write_becomes_a_prior(penalty, expected):
    assert resolve_model_prior(penalty, n=50, n_covariates=4, n_transforms=3) == expected


def test_multiplicity_of_one_covariate_alone_is_free():
    assert resolve_model_prior("multiplicity", n=50, n_covariates=1) == Complexity(0.0)


def test_a_prior_of_ones_own_is_used_as_it_is():
    class Short(ModelPrior):
        name = "short"

        def feature_log_prior(self, feature):
            return -float(len(str(feature)))

    mine = Short()
    assert resolve_model_prior(mine, n=50, n_covariates=4) is mine
    assert mine.size_log_prior(np.arange(3)).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("penalty", "error", "message"),
    [
        ("bik", UnknownNameError, "no penalty 'bik'.*Known: aic, bic"),
        (True, InvalidSettingError, "penalty must be a number"),
        (None, InvalidSettingError, "penalty must be a number"),
        ([2.0], InvalidSettingError, "penalty must be a number"),
        (-1.0, InvalidSettingError, "not negative; got penalty=-1.0"),
        (inf, InvalidSettingError, "finite"),
        (float("nan"), InvalidSettingError, "finite"),
    ],
)
def test_bad_penalties_are_refused_by_name(penalty, error, message):
    with pytest.raises(error, match=message):
        resolve_model_prior(penalty, n=50, n_covariates=4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BetaBinomial(0), "n_candidates >= 1"),
        (lambda: BetaBinomial(3, a=0.0), "positive a and b"),
        (lambda: BetaBinomial(3, b=-1.0), "positive a and b"),
        (lambda: LogicRegression(0), "n_covariates >= 1"),
        (lambda: ScriptWeights(-0.5), "finite rate >= 0"),
        (lambda: ScriptWeights(inf), "finite rate >= 0"),
    ],
)
def test_bad_constants_are_refused(make, message):
    with pytest.raises(InvalidSettingError, match=message):
        make()


def test_projections_are_no_logic_trees():
    prior = LogicRegression(5)
    assert prior.feature_log_prior(dbrm.parse_feature("not(1.0 + 2.0*x1 + 3.0*x2)")) == -inf
    assert prior.feature_log_prior(dbrm.parse_feature("x3*not(1.0 + 2.0*x1 + 3.0*x2)")) == -inf
    assert prior.feature_log_prior(dbrm.parse_feature("not(not(x1)*not(x2))")) > -inf


def test_an_adaptive_price_falls_with_the_number_of_features():
    prior = resolve_model_prior("adaptive", n=100, n_covariates=10, n_transforms=6)
    assert prior == Adaptive(10, 6)
    steps = np.diff(prior.size_log_prior(np.arange(40)))
    # One more beside k others: k + 1 orders more.
    np.testing.assert_allclose(steps, np.log(np.arange(1, 40)))


def test_an_adaptive_prior_is_one_over_the_number_of_such_features():
    prior = Adaptive(10, 6)
    assert prior.feature_log_prior(dbrm.parse_feature("x")) == pytest.approx(-log(20))
    for text, complexity, _ in TABLE[1:]:
        expected = -2 * log(16) - (complexity - 2) * log(32)
        assert prior.feature_log_prior(dbrm.parse_feature(text)) == pytest.approx(expected)
    assert prior.latent_log_prior(2) == pytest.approx(-2 * log(32))


def test_half_the_mass_of_an_adaptive_prior_has_covariates_and_half_the_simplest_made_features():
    """Functions of one covariate, and products of two or squares."""
    p, functions = 10, 6
    prior = Adaptive(p, functions)
    simple = p * exp(prior.feature_log_prior(dbrm.parse_feature("x")))
    made = exp(prior.feature_log_prior(dbrm.parse_feature("sin(x)")))
    made *= p * functions + p * (p + 1) / 2
    assert simple == pytest.approx(0.5)
    assert made == pytest.approx(0.5, abs=0.1)
