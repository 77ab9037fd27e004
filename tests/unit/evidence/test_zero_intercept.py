"""Tests of `dbrm.evidence.zero_intercept`, and of the Gaussian engine that knows of it."""

from math import exp, log

import numpy as np
import pytest
from scipy import integrate

import dbrm
from dbrm.errors import InvalidSettingError
from dbrm.evidence import GaussianEngine, Jeffreys, ZellnerSiow
from dbrm.evidence.coefficient_priors import BIC, EBLocal, GPrior
from dbrm.evidence.zero_intercept import log_factor_of_zero


def residual_sum(columns, response):
    slopes = np.linalg.lstsq(columns, response, rcond=None)[0]
    return float(np.sum((response - columns @ slopes) ** 2))


@pytest.fixture
def data(rng):
    """Forty rows, two columns away from zero, a response with a small intercept."""
    columns = rng.uniform(1.0, 3.0, (40, 2))
    return columns, 0.3 + columns @ [1.0, -0.5] + 0.3 * rng.normal(size=40)


def excess_of(columns, response):
    design = np.column_stack([np.ones(len(response)), columns])
    return residual_sum(columns, response) / residual_sum(design, response) - 1.0


# ------------------------------------------------------------------ against integration


def integrated(columns, response):
    """Log Bayes factor by adaptive quadrature over the intercept and the error.

    Slopes that are orthogonal to what the intercept has of its own factorise and cancel.
    """
    n, p = columns.shape
    slopes, _, _, _ = np.linalg.lstsq(columns, np.ones(n), rcond=None)
    own = np.ones(n) - columns @ slopes
    size, without = float(own @ own), residual_sum(columns, response)
    estimate = float(own @ response) / size

    def log_likelihood(intercept, log_sigma):
        left = without - size * (2 * intercept * estimate - intercept**2)
        return -(n - p) * log_sigma - 0.5 * left * np.exp(-2 * log_sigma)

    centre = 0.5 * log(without / n)
    peak = log_likelihood(estimate, centre)

    def of_error(log_sigma):
        spread = np.exp(log_sigma) * np.sqrt(n / size)

        def of_intercept(intercept):
            prior = np.exp(-0.5 * (intercept / spread) ** 2) / (spread * np.sqrt(2 * np.pi))
            return prior * np.exp(log_likelihood(intercept, log_sigma) - peak)

        width = 12 * np.exp(log_sigma) / np.sqrt(size)
        return integrate.quad(of_intercept, estimate - width, estimate + width)[0]

    ends = centre - 2.0, centre + 2.0
    free = integrate.quad(of_error, *ends, epsabs=0.0)[0]
    zero = integrate.quad(
        lambda log_sigma: np.exp(log_likelihood(0.0, log_sigma) - peak), *ends, epsabs=0.0
    )[0]
    return log(zero / free)


def test_factor_is_the_integral(data):
    columns, response = data
    expected = integrated(columns, response)
    assert log_factor_of_zero(excess_of(columns, response), 40, 2) == pytest.approx(
        expected, abs=1e-6
    )


def test_factor_of_an_estimate_of_zero_is_the_root_of_the_observations():
    assert log_factor_of_zero(0.0, 99, 3) == pytest.approx(log(10.0))


def test_factor_without_end_is_the_limit():
    near, limit = (log_factor_of_zero(excess, 40, 2) for excess in (1e12, np.inf))
    assert limit == pytest.approx(near, abs=1e-8)


# ------------------------------------------------------------------ the engine


def engines(response, **options):
    prior = options.pop("prior", ZellnerSiow())
    return (
        GaussianEngine(response, prior, **options),
        GaussianEngine(response, prior, zero_intercept=0.9, **options),
    )


def test_evidence_is_the_mixture(data):
    columns, response = data
    plain, mixed = engines(response)
    factor = log_factor_of_zero(excess_of(columns, response), 40, 2)
    expected = plain.log_evidence(columns)[0] + log(0.1 + 0.9 * exp(factor))
    assert mixed.log_evidence(columns)[0] == pytest.approx(expected, abs=1e-9)


def test_evidence_of_masks_is_that_of_their_columns(data):
    columns, response = data
    mixed = engines(response)[1]
    masks = np.array([[False, False], [True, False], [False, True], [True, True]])
    found = mixed.log_evidence_of(columns, masks)[0]
    expected = [mixed.log_evidence(columns[:, mask])[0] for mask in masks]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    fits = mixed.fit_many(columns, masks)
    np.testing.assert_allclose([fit.log_evidence for fit in fits], expected, atol=1e-9)


def test_always_columns_offset_and_weights(data, rng):
    """A row of weight two is the row twice, an offset a part of the response, always in is in."""
    columns, response = data
    weights, offset = rng.integers(1, 4, 40).astype(float), rng.normal(size=40)
    mixed = engines(response + offset, prior=Jeffreys(), weights=weights, offset=offset)[1]
    rows = np.repeat(np.arange(40), weights.astype(int))
    twin = engines(response[rows], prior=Jeffreys())[1]
    assert mixed.log_evidence(columns)[0] == pytest.approx(
        twin.log_evidence(columns[rows])[0], abs=1e-9
    )
    fits = mixed.fit(columns), twin.fit(columns[rows])
    np.testing.assert_allclose(fits[0].coefficients, fits[1].coefficients, atol=1e-9)
    held = engines(response, prior=Jeffreys(), always=columns[:, :1])[1]
    whole = engines(response, prior=Jeffreys())[1]
    assert held.log_evidence(columns[:, 1:])[0] == pytest.approx(
        whole.log_evidence(columns)[0], abs=1e-9
    )


@pytest.mark.parametrize("unit", [1e-200, 1e-3, 1e200])
def test_units_do_not_matter(data, unit):
    columns, response = data
    plain, mixed = engines(response)
    plain_there, mixed_there = engines(response * unit)
    gain = mixed.log_evidence(columns)[0] - plain.log_evidence(columns)[0]
    there = (
        mixed_there.log_evidence(columns / unit)[0] - plain_there.log_evidence(columns / unit)[0]
    )
    assert there == pytest.approx(gain, abs=1e-8)


def test_fit_is_that_of_the_more_probable_model(data, rng):
    columns, _ = data
    signal = columns @ [1.0, -0.5]
    noise = 0.1 * rng.normal(size=40)
    without = engines(signal + noise)[1].fit(columns)
    assert not without.has_intercept
    slopes = np.linalg.lstsq(columns, signal + noise, rcond=None)[0]
    np.testing.assert_allclose(without.coefficients, [0.0, *slopes], rtol=1e-2)
    error = residual_sum(columns, signal + noise) / 38 * np.linalg.inv(columns.T @ columns)
    np.testing.assert_allclose(without.covariance[1:, 1:] * without.dispersion, error, rtol=0.1)
    assert engines(5.0 + signal + noise)[1].fit(columns).has_intercept


def test_shrinkage_is_about_zero_where_the_intercept_is(rng):
    """Slopes that carry the mean are not shrunk as if they only explained what is about it.

    The mean of the fit is the mean of the response to a tenth of its error, and the error is
    that of least squares about zero, to within a hundredth. Shrunk by what is explained about the
    mean, the fit lies five errors below.
    """
    columns = rng.uniform(280.0, 320.0, (120, 1))
    response = 2.0 * columns[:, 0] + 20.0 * rng.normal(size=120)
    fit = engines(response)[1].fit(columns)
    assert not fit.has_intercept
    error = 20.0 / np.sqrt(120)
    assert abs(columns[:, 0].mean() * fit.coefficients[1] - response.mean()) < 0.1 * error
    least = residual_sum(columns, response) / 119
    assert fit.dispersion == pytest.approx(least, rel=0.02)
    spread = fit.dispersion * fit.covariance[1, 1]
    assert spread == pytest.approx(least / np.sum(columns**2), rel=0.02)


def test_residuals_without_an_intercept_may_exceed_those_about_the_mean(rng):
    """A column that explains nothing about the mean: the variance is not held at that about it."""
    columns = 1.0 + 0.5 * rng.normal(size=(40, 1))
    response = 0.3 * columns[:, 0] + rng.normal(size=40)
    fit = engines(response)[1].fit(columns)
    assert not fit.has_intercept
    left = np.mean((response - columns @ fit.coefficients[1:]) ** 2)
    assert fit.log_likelihood == pytest.approx(-20 * (log(2 * np.pi * left) + 1), abs=0.1)


@pytest.mark.parametrize("prior", [ZellnerSiow(), EBLocal(), Jeffreys(), GPrior(1e20)], ids=repr)
def test_small_errors_of_a_large_mean_keep_their_digits(prior, rng):
    """A residual fraction of 1e-16 about zero; where one is taken off it, nothing is left."""
    columns = 1000.0 + rng.uniform(size=(100, 1))
    response = 2.0 * columns[:, 0] + 1e-5 * rng.normal(size=100)
    fit = engines(response, prior=prior)[1].fit(columns)
    assert not fit.has_intercept
    least = residual_sum(columns, response) / 99
    assert fit.dispersion == pytest.approx(least, rel=0.05)


@pytest.mark.parametrize(
    ("prior", "degrees_of_freedom"),
    [
        (Jeffreys(), 19.0),
        (Jeffreys(degrees_of_freedom="n"), 20.0),
        (BIC(), 19.0),
        (GPrior("n"), 20.0),
    ],
    ids=repr,
)
def test_a_known_mean_takes_no_degree_of_freedom(prior, degrees_of_freedom, rng):
    """And the sample size, which is g of a unit-information prior, stays what it is."""
    columns = rng.uniform(1.0, 3.0, (20, 1))
    response = 2.0 * columns[:, 0] + 0.1 * rng.normal(size=20)
    fit = engines(response, prior=prior)[1].fit(columns)
    assert not fit.has_intercept
    assert fit.degrees_of_freedom == degrees_of_freedom
    if isinstance(prior, GPrior):
        slope = np.linalg.lstsq(columns, response, rcond=None)[0][0]
        assert fit.coefficients[1] == pytest.approx(20.0 / 21.0 * slope)


def test_columns_that_depend_on_each_other_about_zero_have_an_intercept(rng):
    columns = 1e6 + rng.normal(size=(8, 2))
    response = columns @ [1.0, -1.0] + 0.01 * rng.normal(size=8)
    engine = GaussianEngine(response, ZellnerSiow(), zero_intercept=0.999)
    assert engine._row_terms_of_one(columns, engine.fraction(columns)[0]).left[0] == np.inf
    assert engine.fit(columns).has_intercept


def test_rows_of_weight_zero_do_not_count(data):
    columns, response = data
    weights = np.ones(40)
    weights[0] = 0.0
    expected = engines(response[1:])[1].fit(columns[1:])
    for outside in (1e12, 1e160):
        response = np.concatenate([[outside], response[1:]])
        fit = engines(response, weights=weights)[1].fit(columns)
        np.testing.assert_allclose(fit.coefficients, expected.coefficients, rtol=1e-9)
        assert fit.dispersion == pytest.approx(expected.dispersion, rel=1e-9)


def test_perfect_fits_have_a_factor_of_rounding_size(data):
    """Rounding errors are no intercept: without noise the law has none, and 1 where it is 1."""
    columns, _ = data
    signal = columns @ [1.0, -0.5]
    plain, mixed = engines(signal)
    gain = mixed.log_evidence(columns)[0] - plain.log_evidence(columns)[0]
    assert 0.0 < gain <= log(0.1 + 0.9 * exp(0.5 * log(41))) + 1e-9
    assert not mixed.fit(columns).has_intercept
    plain, mixed = engines(1.0 + signal)
    gain = mixed.log_evidence(columns)[0] - plain.log_evidence(columns)[0]
    assert gain == pytest.approx(log(0.1))
    assert mixed.fit(columns).has_intercept


# ------------------------------------------------------------------ fits


@pytest.fixture(scope="module")
def law():
    rng = np.random.default_rng(5)
    x = rng.uniform(1.0, 4.0, (120, 2))
    y = 2.0 * x[:, 0] * x[:, 1]
    return x, y + 0.1 * y.std() * rng.normal(size=120)


SMALL = {"n_populations": 5, "random_state": 1, "progress": False}


def test_a_law_is_shown_without_an_intercept(law, tmp_path):
    x, y = law
    posterior = dbrm.fit(x, y, transforms="laws", **SMALL)
    model = posterior.best_model
    assert model.features == ("x1*x2",)
    assert model.formula.startswith("y = 2.0") or model.formula.startswith("y = 1.9")
    assert not model.fit.has_intercept
    np.testing.assert_allclose(model.predict(np.zeros((1, 2))), 0.0, atol=1e-12)
    posterior.save(tmp_path / "law.dbrm")
    loaded = dbrm.load(tmp_path / "law.dbrm")
    assert loaded.best_model.formula == model.formula
    np.testing.assert_allclose(loaded.predict(x), posterior.predict(x))


def test_an_intercept_is_kept_where_there_is_one_and_by_default(law):
    x, y = law
    shifted = dbrm.fit(x, y + 20.0, transforms="laws", **SMALL)
    assert shifted.best_model.features == ("x1*x2",)
    assert shifted.best_model.fit.has_intercept
    assert dbrm.fit(x, y, transforms="laws", zero_intercept=0, **SMALL).best_model.fit.has_intercept
    for others in (None, ["sin", "log_abs", "sqrt_abs"]):
        assert dbrm.fit(x, y, transforms=others, **SMALL).best_model.fit.has_intercept
    offered = {"transforms": ["sin"], "zero_intercept": 0.5}
    assert not dbrm.fit(x, y, **offered, **SMALL).best_model.fit.has_intercept


def test_the_path_has_the_probability_of_the_model():
    """The best model, among its own submodels again, has the price of its intercept there, too."""
    rng = np.random.default_rng(3)
    x = rng.uniform(1.0, 4.0, (60, 2))
    y = 5.0 + 2.0 * x[:, 0] + 0.3 * rng.normal(size=60)
    posterior = dbrm.fit(x, y, transforms="laws", **SMALL)
    best, path = posterior.models.iloc[0], posterior.path
    assert posterior.best_model.fit.has_intercept
    row = path[[tuple(features) == tuple(best["features"]) for features in path["features"]]]
    assert row["log_evidence"].iloc[0] == pytest.approx(best["log_evidence"], abs=1e-6)
    assert row["probability"].iloc[0] == pytest.approx(best["probability"], rel=1e-6)


def test_an_exact_law_of_a_large_mean_is_saved_and_has_intervals(tmp_path):
    x = 1000.0 + np.random.default_rng(4).uniform(size=(80, 1))
    posterior = dbrm.fit(x, 2.0 * x[:, 0], transforms="laws", **SMALL)
    assert posterior.best_model.fit.dispersion > 0.0
    posterior.save(tmp_path / "law.dbrm")
    np.testing.assert_allclose(dbrm.load(tmp_path / "law.dbrm").predict(x), 2.0 * x[:, 0])
    low, high = posterior.predict_interval(x).T
    assert np.all(low < high)


@pytest.mark.parametrize("value", [-0.1, 1.0, np.nan])
def test_rejects_what_is_no_probability(law, value):
    with pytest.raises(InvalidSettingError, match="probability of at least 0 and below 1; got"):
        dbrm.fit(*law, zero_intercept=value)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"family": "poisson"}, "family='poisson'"),
        ({"preset": "paper_text"}, "preset='paper_text'"),
        ({"algorithm": "rgmjmcmc"}, "algorithm='rgmjmcmc'"),
        ({"scale": "standard"}, "scale="),
    ],
)
def test_rejects_settings_it_is_not_for(law, options, reason):
    x, y = law
    with pytest.raises(InvalidSettingError, match=reason):
        dbrm.fit(x, np.round(y), zero_intercept=0.5, **options)
