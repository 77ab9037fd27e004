"""Tests of the charge for the digits of numbers inside features."""

from math import log

import numpy as np
import pytest

import dbrm
from dbrm.features import parse_feature
from dbrm.priors import Complexity, WithLongNumbers

NAMES = ("x", "y")


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("x*y", 0),
        ("sin{2.0*x}", 0),
        ("sin{2.5*x}", 1),
        ("sin{-0.5 + 3.141592653589793*x}", 2),
        ("sin{1.0 + 0.5*x}", 0),
        ("power[-1]{-0.002 + 1.0*x + 1.0*y}", 1),
        ("exp{-0.002*x + 0.8*y}", 1),
        ("exp{1.0*x - 1.0*y}", 0),
        ("x*exp{0.1234*y}", 3),
        ("sin{2.345*exp{0.12*x}}", 4),
    ],
)
def test_digits_but_for_one_of_the_weights_cost_log_ten_each(text, digits):
    feature = parse_feature(text, NAMES)
    base = Complexity(1.5)
    expected = base.feature_log_prior(feature) - digits * log(10.0)
    assert WithLongNumbers(base).feature_log_prior(feature) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "priced"),
    [
        ("x*power[-1](power[-1]{1.0*x - 1.0*y})", "x*power[-1]{1.0*x - 1.0*y}"),
        ("square(sqrt_abs{1.0*x + 1.0*y})", "sqrt_abs{1.0*x + 1.0*y}"),
        ("sin(y*power[-1](power[-1]{0.5 + 1.0*x}))", "sin(y*power[-1]{0.5 + 1.0*x})"),
        # Nothing is undone.
        ("power[-1](square{1.0*x - 1.0*y})", "power[-1](square{1.0*x - 1.0*y})"),
        ("power[-1](power[-1](x))", "power[-1](power[-1](x))"),
    ],
)
def test_a_sum_that_is_a_factor_costs_one_function(text, priced):
    base = Complexity(1.5)
    feature, alike = (parse_feature(t, NAMES) for t in (text, priced))
    found = WithLongNumbers(base).feature_log_prior(feature)
    assert found == pytest.approx(WithLongNumbers(base).feature_log_prior(alike))


def test_a_plain_difference_is_more_plausible_than_one_inside_a_wave():
    prior = WithLongNumbers(Complexity(3.0))
    plain, wave = (
        parse_feature(text, NAMES)
        for text in ("power[-1](power[-1]{1.0*x - 1.0*y})", "sin{0.1*x - 0.1*y}")
    )
    assert prior.feature_log_prior(plain) > prior.feature_log_prior(wave)


def test_sizes_and_latent_effects_cost_what_the_base_says():
    base, sizes = Complexity(1.5), np.arange(4)
    prior = WithLongNumbers(base)
    np.testing.assert_array_equal(prior.size_log_prior(sizes), base.size_log_prior(sizes))
    assert prior.latent_log_prior(2) == base.latent_log_prior(2)


@pytest.mark.parametrize(
    ("options", "charged"),
    [({}, True), ({"projection": "bayes"}, False), ({"penalty": "bic"}, False)],
)
def test_it_belongs_to_the_default_unless_weights_are_drawn(options, charged, rng):
    x = rng.normal(size=(40, 2))
    short = {"n_populations": 2, "n_chains": 1, "transforms": ["sin"], "sweep": 0}
    posterior = dbrm.fit(x, x[:, 0] + rng.normal(size=40), **short, **options)
    assert isinstance(posterior._problem.model_prior, WithLongNumbers) == charged
