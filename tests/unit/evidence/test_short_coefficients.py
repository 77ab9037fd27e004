"""Tests of `dbrm.evidence.short_coefficients`, and of the Gaussian engine that knows of it."""

from itertools import product
from math import log, pi

import numpy as np
import pytest
from scipy import integrate, stats

import dbrm
from dbrm.errors import InvalidSettingError
from dbrm.evidence import GaussianEngine, Jeffreys, ShortCoefficients, ZellnerSiow
from dbrm.evidence.zero_intercept import log_factor_of_zero
from dbrm.features.numbers import numbers_of_a_decade

NUMBERS, LOG_PRIORS = numbers_of_a_decade()
HALF = ShortCoefficients(0.5, NUMBERS, LOG_PRIORS)


def factors_of(estimates, scales, degrees):
    """Of models (rows) with these estimates and scale matrices."""
    relative = scales / (estimates[:, :, None] * estimates[:, None, :])
    return HALF.log_factors(np.log10(np.abs(estimates)), relative, degrees)


def factor_of(estimate, error, degrees=100.0):
    relative = np.array([[[(error / estimate) ** 2]]])
    return float(HALF.log_factors(np.array([[np.log10(estimate)]]), relative, degrees)[0])


# ------------------------------------------------------------------ one coefficient


def integrated(estimate, error, degrees):
    """Log of one half and half the Bayes factor: likelihood of short numbers against any.

    Any number has a uniform logarithm, of which the part near the estimate matters.
    """

    def likelihood(value):
        return stats.t.pdf((estimate - value) / error, degrees) / error

    decades = np.concatenate([NUMBERS / 10.0, NUMBERS, 10.0 * NUMBERS])
    short = np.tile(np.exp(LOG_PRIORS), 3) @ likelihood(decades)
    low, high = estimate - 40 * error, estimate + 40 * error
    any_number, _ = integrate.quad(
        lambda value: likelihood(value) / (value * log(10.0)), low, high, points=[estimate]
    )
    return log(0.5 + 0.5 * short / any_number)


@pytest.mark.parametrize("estimate", [1.0, 1.004, 2.0, 2.003, 2.5, pi, 1 / 3, 2.3456, 9.999])
@pytest.mark.parametrize("degrees", [5.0, 300.0])
def test_one_coefficient_against_integration(estimate, degrees):
    """To the square of the relative error, by which a density differs within the error."""
    expected = integrated(estimate, 0.002, degrees)
    assert factor_of(estimate, 0.002, degrees) == pytest.approx(expected, abs=2e-4)


def test_a_precise_estimate_tells_short_from_long():
    """Ten times the precision is ten times the evidence of two, and the end of it for 2.003."""
    gains = [factor_of(2.0, error) for error in (1e-2, 1e-3, 1e-4)]
    np.testing.assert_allclose(np.diff(np.exp(gains) - 0.5) / (np.exp(gains[:2]) - 0.5), 9, rtol=1)
    assert factor_of(2.003, 1e-4) == pytest.approx(log(0.5), abs=1e-3)


@pytest.mark.parametrize("scale", [10.0, 1e-200, 1e150])
def test_the_power_of_ten_does_not_matter(scale):
    assert factor_of(2.5 * scale, 0.01 * scale) == pytest.approx(factor_of(2.5, 0.01))


def test_an_unsure_coefficient_says_nothing():
    """One whose error is more than .3 of it gains and loses nothing."""
    assert factor_of(2.0, 0.61) == factor_of(2.0, 20.0) == 0.0
    assert factor_of(2.0, 0.5) != 0.0


@pytest.mark.parametrize(
    ("log_size", "variance"), [(-np.inf, np.inf), (0.3, np.nan), (np.inf, 0.0), (0.3, np.inf)]
)
def test_what_has_no_digits_says_nothing(log_size, variance):
    found = HALF.log_factors(np.array([[log_size]]), np.array([[[variance]]]), 20.0)
    assert found[0] == 0.0


# ------------------------------------------------------------------ several


def enumerated(estimates, scale, degrees):
    """The mixture over which of two coefficients are short, and over all their values."""
    joint = stats.multivariate_t(estimates, scale, degrees)
    errors = np.sqrt(np.diag(scale))
    one = [
        np.exp(LOG_PRIORS) @ (stats.t.pdf((NUMBERS - m) / e, degrees) / e * m * log(10.0))
        for m, e in zip(estimates, errors, strict=True)
    ]
    pairs = np.array(list(product(NUMBERS, NUMBERS)))
    weights = np.exp(np.add.outer(LOG_PRIORS, LOG_PRIORS).ravel())
    both = weights @ (joint.pdf(pairs) * np.prod(estimates) * log(10.0) ** 2)
    return log(0.25 * (1.0 + sum(one) + both))


@pytest.mark.parametrize("correlation", [0.0, 0.9, -0.99])
def test_two_coefficients_against_all_pairs(correlation):
    """Holding the first at its best value is exact to a tenth where the data say what it is."""
    estimates, errors = np.array([2.001, 5.2]), np.array([0.003, 0.3])
    estimates[1] = 5.0 + correlation * 0.3 * (0.001 / 0.003)
    scale = np.outer(errors, errors) * np.array([[1.0, correlation], [correlation, 1.0]])
    found = factors_of(estimates[None], scale[None], 50.0)[0]
    assert found == pytest.approx(enumerated(estimates, scale, 50.0), abs=0.1)
    turned = factors_of(estimates[None, ::-1], scale[None, ::-1, ::-1], 50.0)[0]
    assert turned == pytest.approx(found)


def test_the_probability_of_a_short_number_is_that_of_the_factor():
    """One coefficient: its posterior odds are the Bayes factor; two: the second given the first."""
    gain = factor_of(2.003, 0.004, 50.0)
    number, probability = HALF.short_ones(np.log10([2.003]), np.array([[(0.004 / 2.003) ** 2]]), 50)
    assert 2.003 * number[0] == pytest.approx(2.0)
    assert 1.0 - probability[0] == pytest.approx(0.5 * np.exp(-gain))
    scale = np.outer([0.004, 0.3], [0.004, 0.3]) * np.array([[1.0, 0.999], [0.999, 1.0]])
    estimates = np.array([2.003, 5.0 + 0.999 * 0.3 * 0.003 / 0.004])
    relative = scale / np.outer(estimates, estimates)
    numbers, probabilities = HALF.short_ones(np.log10(estimates), relative, 50.0)
    np.testing.assert_allclose(numbers * estimates, [2.0, 5.0])
    assert np.all(probabilities > 0.8)
    assert factor_of(5.0, 0.3, 50.0) < log(0.5 + 0.5 * 4.0)


def test_models_do_not_see_each_other(rng):
    estimates = rng.uniform(1.0, 9.0, (6, 3))
    roots = 0.02 * rng.normal(size=(6, 3, 3))
    scales = roots @ np.swapaxes(roots, 1, 2)
    together = factors_of(estimates, scales, 30.0)
    alone = [factors_of(estimates[[k]], scales[[k]], 30.0)[0] for k in range(6)]
    np.testing.assert_allclose(together, alone)


# ------------------------------------------------------------------ the engine


@pytest.fixture
def data(rng):
    columns = rng.uniform(1.0, 3.0, (80, 3))
    return columns, columns @ [2.0, -0.5, 1.2345] + 0.02 * rng.normal(size=80)


def engines(response, **options):
    prior = options.pop("prior", ZellnerSiow())
    return (
        GaussianEngine(response, prior, **options),
        GaussianEngine(response, prior, short_coefficients=HALF, **options),
    )


def digits_of_least_squares(columns, response, n_ones):
    design = np.hstack([np.ones((80, n_ones)), columns])
    estimates, left, _, _ = np.linalg.lstsq(design, response, rcond=None)
    degrees = 80 - design.shape[1]
    scale = np.linalg.inv(design.T @ design) * left[0] / degrees
    return factors_of(estimates[None, -3:], scale[None, -3:, -3:], degrees)[0], left[0]


def test_evidence_knows_of_the_digits_of_least_squares(data):
    columns, response = data
    plain, knowing = engines(response)
    expected, _ = digits_of_least_squares(columns, response, 1)
    assert expected > 1.0
    assert knowing.log_evidence(columns)[0] - plain.log_evidence(columns)[0] == pytest.approx(
        expected, abs=1e-8
    )
    assert knowing.fit(columns).log_evidence == pytest.approx(knowing.log_evidence(columns)[0])


@pytest.mark.parametrize("intercept", [0.0, -0.025, 0.03, 0.05, 1.0])
def test_evidence_is_the_mixture_over_intercept_and_digits(data, intercept):
    """Also where the data do not say whether there is an intercept."""
    columns, response = data[0], data[1] + intercept
    knowing = engines(response, zero_intercept=0.9)[1]
    free, held = (digits_of_least_squares(columns, response, k) for k in (1, 0))
    factor = log_factor_of_zero(held[1] / free[1] - 1.0, 80, 3)
    mixture = np.log(0.1 * np.exp(free[0]) + 0.9 * np.exp(factor + held[0]))
    expected = engines(response)[0].log_evidence(columns)[0] + mixture
    assert knowing.log_evidence(columns)[0] == pytest.approx(expected, abs=1e-8)
    fit = knowing.fit(columns)
    assert fit.log_evidence == pytest.approx(expected, abs=1e-8)
    assert fit.has_intercept is bool(0.1 * np.exp(free[0]) >= 0.9 * np.exp(factor + held[0]))


@pytest.mark.parametrize("zero_intercept", [0.0, 0.9])
def test_redundant_always_in_columns_change_nothing(data, zero_intercept):
    """All indicators of a factor beside an intercept, a column twice, more columns than rows."""
    columns, response = data
    factor = np.eye(3)[np.arange(80) % 3]
    once = engines(response, always=factor[:, :2], zero_intercept=zero_intercept)[1]
    expected = once.log_evidence(columns)[0]
    for always in (factor, factor[:, [0, 1, 1, 0]]):
        engine = engines(response, always=always, zero_intercept=zero_intercept)[1]
        if always is not factor or not zero_intercept:
            assert engine.log_evidence(columns)[0] == pytest.approx(expected, abs=1e-8)
    few = engines(response[:6], always=np.tile(columns[:6, :1], 5), zero_intercept=zero_intercept)
    values = [engine.log_evidence(columns[:6, 1:])[0] for engine in few]
    assert np.all(np.isfinite(values))


def test_a_column_far_from_zero_keeps_its_digits(data):
    columns, response = data
    near = engines(response)[1].log_evidence(columns)[0]
    far = engines(response)[1].log_evidence(columns + np.array([0.0, 1e6, 0.0]))[0]
    assert far == pytest.approx(near, abs=1e-4)


def test_evidence_of_masks_is_that_of_their_columns(data):
    columns, response = data
    knowing = engines(response, zero_intercept=0.9)[1]
    masks = np.array(list(product([False, True], repeat=3)))
    found = knowing.log_evidence_of(columns, masks)[0]
    expected = [knowing.log_evidence(columns[:, mask])[0] for mask in masks]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    fits = knowing.fit_many(columns, masks)
    np.testing.assert_allclose([fit.log_evidence for fit in fits], expected, atol=1e-9)


@pytest.mark.parametrize("unit", [1e-200, 1e-3, 1e200])
def test_powers_of_ten_as_units_do_not_matter(data, unit):
    columns, response = data
    gains = [
        np.diff([engine.log_evidence(columns * unit)[0] for engine in engines(response * scale)])
        for scale in (1.0, unit)
    ]
    expected = np.diff([engine.log_evidence(columns)[0] for engine in engines(response)])
    np.testing.assert_allclose(gains, [expected] * 2, atol=1e-7)


def test_populations_do_not_know_of_digits(data):
    columns, response = data
    masks = np.ones((1, 3), dtype=bool)
    values = [e.prepare(columns).log_evidence(masks)[0][0] for e in engines(response)]
    assert values[0] == values[1]


def test_always_columns_offset_and_weights(data, rng):
    """A row of weight two is the row twice; columns that are always in have no digits."""
    columns, response = data
    weights, offset = rng.integers(1, 4, 80).astype(float), rng.normal(size=80)
    options = {"prior": Jeffreys(), "always": columns[:, :1]}
    knowing = engines(response + offset, weights=weights, offset=offset, **options)
    rows = np.repeat(np.arange(80), weights.astype(int))
    options["always"] = columns[rows, :1]
    twins = engines(response[rows], **options)
    values = [e.log_evidence(columns[:, 1:])[0] for e in knowing]
    again = [e.log_evidence(columns[rows, 1:])[0] for e in twins]
    np.testing.assert_allclose(values, again, atol=1e-9)
    assert np.diff(values) < np.diff([e.log_evidence(columns)[0] for e in engines(response)])


def test_columns_that_depend_on_each_other_have_no_evidence(data):
    columns, response = data
    twice = np.column_stack([columns[:, 0], 3.0 * columns[:, 0]])
    knowing = engines(response)[1]
    masks = np.array([[True, False], [True, True]])
    values, _ = knowing.log_evidence_of(twice, masks)
    assert np.isfinite(values[0])
    assert values[1] == -np.inf


# ------------------------------------------------------------------ fits

SMALL = {"n_populations": 5, "random_state": 1, "progress": False}
CUBIC = ("x1", "square(x1)", "x1*square(x1)")


def probability_of(posterior, features):
    rows = [set(found) == set(features) for found in posterior.models["features"]]
    return float(posterior.models["probability"][rows].sum())


def test_short_coefficients_tell_a_law_from_what_is_like_it(rng):
    """Beside noise a cubic with three coefficients of one loses against two terms.

    With a long number in the place of each it is no more plausible than before.
    """
    x = rng.uniform(-1.0, 1.0, (300, 1))
    powers = np.column_stack([x, x**2, x**3])
    noise = 0.1 * rng.normal(size=300)
    found = {}
    for name, coefficients in {"short": [1.0, 1.0, 1.0], "long": [1.2467, 0.8523, 0.7689]}.items():
        for probability in (0.0, 0.5):
            y = powers @ coefficients + noise
            posterior = dbrm.fit(
                x, y, transforms="laws", short_coefficients=probability, time_budget=None, **SMALL
            )
            found[name, probability] = probability_of(posterior, CUBIC)
    assert found["short", 0.5] > 2.0 * found["short", 0.0]
    assert found["long", 0.5] < found["long", 0.0] + 0.05


def test_short_numbers_of_the_best_formula(rng, tmp_path):
    x = rng.uniform(1.0, 3.0, (200, 2))
    y = 0.5 * x[:, 0] * x[:, 1] ** 2 - 2 * pi * x[:, 1] + 0.01 * rng.normal(size=200)
    posterior = dbrm.fit(x, y, transforms="laws", **SMALL)
    table = posterior.best_model.short_numbers().set_index("term")
    assert table["number"].to_dict() == {"x2": "-2*pi", "x1*square(x2)": "0.5"}
    assert table["value"]["x2"] == pytest.approx(-2 * pi)
    assert np.all(table["probability"] > 0.9)
    posterior.save(tmp_path / "law.dbrm")
    again = dbrm.load(tmp_path / "law.dbrm").best_model.short_numbers()
    np.testing.assert_allclose(again["probability"], table["probability"])
    doubted = posterior.best_model.short_numbers(probability=0.01)
    assert np.all(doubted["probability"].to_numpy() < table["probability"].to_numpy())
    with pytest.raises(InvalidSettingError, match="above 0 and below 1; got probability=1"):
        posterior.best_model.short_numbers(probability=1)


def test_short_numbers_are_those_of_gaussian_responses(data):
    columns, response = data
    counts = np.round(np.exp(response / response.max()))
    posterior = dbrm.fit(columns, counts, family="poisson", transforms=[], **SMALL)
    assert not posterior.best_model.may_have_short_numbers
    with pytest.raises(InvalidSettingError, match="needs a Gaussian response"):
        posterior.best_model.short_numbers()


def test_default_is_one_half_for_laws_and_nothing_otherwise(data):
    columns, response = data
    engine = dbrm.fit(columns, response, transforms="laws", **SMALL)._source.problem.engine
    assert engine.short_coefficients.probability == 0.5
    for options in ({}, {"transforms": "laws", "short_coefficients": 0}):
        engine = dbrm.fit(columns, response, **options, **SMALL)._source.problem.engine
        assert engine.short_coefficients is None


@pytest.mark.parametrize("value", [-0.1, 1.0, np.nan])
def test_rejects_what_is_no_probability(data, value):
    with pytest.raises(InvalidSettingError, match="short_coefficients is a probability"):
        dbrm.fit(*data, short_coefficients=value)


def test_rejects_settings_it_is_not_for(data):
    columns, response = data
    with pytest.raises(InvalidSettingError, match="and not for scale="):
        dbrm.fit(columns, response, short_coefficients=0.5, scale="standard")
