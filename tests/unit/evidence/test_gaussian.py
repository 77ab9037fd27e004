"""Tests of `dbrm.evidence.gaussian`: the engine, against integration, statsmodels and itself."""

from math import lgamma, log, pi

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from dbrm._kernels.bits import unpack_index
from dbrm.evidence import AIC, BIC, GaussianEngine, Jeffreys, KnownVariance, ZellnerSiow
from dbrm.status import Status

PRIORS = [
    Jeffreys(),
    Jeffreys(constant="unit_information"),
    Jeffreys(constant="none"),
    Jeffreys(information="joint"),
    KnownVariance(0.7, constant="paper"),
    BIC(),
    AIC(),
]
IDS = [repr(prior) for prior in PRIORS]


@pytest.fixture
def data(rng):
    """Thirty rows, four columns, a response that needs two of them."""
    columns = rng.normal(loc=[0.0, 5.0, -3.0, 100.0], size=(30, 4))
    return columns, 1.0 + columns[:, 0] - 2.0 * columns[:, 2] + rng.normal(size=30)


def evidence(columns, response, prior=None, **options):
    engine = GaussianEngine(response, Jeffreys() if prior is None else prior, **options)
    return engine.log_evidence(columns)[0]


def of_all(columns, response, prior=None, **options):
    engine = GaussianEngine(response, Jeffreys() if prior is None else prior, **options)
    return engine.prepare(columns).log_evidence_of_all(columns.shape[1])[0]


# ------------------------------------------------------------------ against integration


def integrated(columns, response, *, information="beta", log_constant=0.0, variance=None):
    r"""Log of :math:`\int\int p(y|b, s) |J|^{1/2} \pi(s) db ds` by adaptive quadrature.

    The coefficients are integrated on a grid that shares no code with the engine: in the
    coordinates of an orthogonal basis of the design, where the Gaussian factorises, but
    each factor numerically.
    """
    design = np.column_stack([np.ones(len(response)), columns])
    n, p = design.shape
    q, r = np.linalg.qr(design)
    centre = q.T @ response
    rest = response - q @ centre
    rss = rest @ rest
    log_volume = np.linalg.slogdet(r)[1]

    def log_inner(s):
        """Log of the likelihood times the prior of the coefficients, coefficients integrated."""
        width = 12 * np.sqrt(s)
        one, _ = integrate.quad(lambda t: np.exp(-(t**2) / (2 * s)), -width, width)
        log_gram = log_volume - 0.5 * p * log(s)
        value = -0.5 * n * log(2 * pi * s) - rss / (2 * s) + p * log(one) - log_volume + log_gram
        if information == "joint":
            value += 0.5 * log(n / 2) - log(s)
        return value + log_constant * p

    if variance is not None:
        return log_inner(variance)
    peak = log_inner(rss / n)

    def integrand(u):
        # u = log s: the prior 1/s is flat in it.
        return np.exp(log_inner(np.exp(u)) - peak)

    middle = log(rss / n)
    total, _ = integrate.quad(integrand, middle - 12, middle + 12, points=[middle], limit=200)
    return peak + log(total)


@pytest.mark.parametrize("size", [0, 1, 3])
@pytest.mark.parametrize("information", ["beta", "joint"])
def test_jeffreys_is_the_integral_it_claims_to_be(rng, size, information):
    columns, response = rng.normal(size=(9, size)), rng.normal(size=9)
    expected = integrated(columns, response, information=information)
    prior = Jeffreys(information=information)
    assert evidence(columns, response, prior) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    ("constant", "each"),
    [("unit_information", -0.5 * log(9)), ("none", -0.5 * log(2 * pi))],
)
def test_the_other_constants_differ_by_what_they_say(rng, constant, each):
    columns, response = rng.normal(size=(9, 2)), rng.normal(size=9)
    expected = integrated(columns, response, log_constant=each)
    assert evidence(columns, response, Jeffreys(constant=constant)) == pytest.approx(
        expected, abs=1e-7
    )


def test_known_variance_is_the_integral_it_claims_to_be(rng):
    columns, response = rng.normal(size=(9, 2)), rng.normal(size=9)
    expected = integrated(columns, response, variance=0.7)
    prior = KnownVariance(0.7, constant="paper")
    assert evidence(columns, response, prior) == pytest.approx(expected, abs=1e-9)
    none = evidence(columns, response, KnownVariance(0.7))
    assert none == pytest.approx(expected - 1.5 * log(2 * pi), abs=1e-9)


def test_it_is_not_the_flat_reference_prior(rng):
    """Negative control: the flat prior keeps the determinant and n - p."""
    columns, response = rng.normal(size=(9, 2)), rng.normal(size=9)
    design = np.column_stack([np.ones(9), columns])
    rss = np.sum((response - design @ np.linalg.lstsq(design, response)[0]) ** 2)
    half = 0.5 * (9 - 3)
    flat = -half * log(2 * pi) - 0.5 * np.linalg.slogdet(design.T @ design)[1]
    flat += lgamma(half) - half * log(rss / 2)
    assert abs(evidence(columns, response) - flat) > 0.1


def test_bic_and_aic_are_those_of_statsmodels(data):
    columns, response = data
    for mask in unpack_index(np.arange(16), 4):
        fitted = sm.OLS(response, sm.add_constant(columns[:, mask])).fit()
        # statsmodels does not count the noise variance as a parameter.
        bic = -0.5 * (fitted.bic + log(response.size))
        aic = -0.5 * (fitted.aic + 2.0)
        assert evidence(columns[:, mask], response, BIC()) == pytest.approx(bic, rel=1e-10)
        assert evidence(columns[:, mask], response, AIC()) == pytest.approx(aic, rel=1e-10)


def test_bic_is_jeffreys_up_to_what_the_memo_says(data):
    """-BIC/2 = (J) - (p/2) log(2 pi n) + c(n) for every model."""
    columns, response = data
    n = response.size
    sizes = unpack_index(np.arange(16), 4).sum(axis=1) + 1
    gap = of_all(columns, response, BIC()) - of_all(columns, response)
    gap += 0.5 * sizes * log(2 * pi * n)
    np.testing.assert_allclose(gap, gap[0], atol=1e-9)


# ------------------------------------------------------------------------- invariances


@pytest.mark.parametrize("prior", PRIORS, ids=IDS)
def test_rows_by_qr_and_gram_agree(data, prior):
    columns, response = data
    from_gram = of_all(columns, response, prior)
    masks = unpack_index(np.arange(16), 4)
    from_rows = [evidence(columns[:, mask], response, prior) for mask in masks]
    np.testing.assert_allclose(from_gram, from_rows, rtol=1e-11)


@pytest.mark.parametrize("prior", PRIORS, ids=IDS)
def test_a_weight_of_two_is_the_row_twice(data, prior, rng):
    columns, response = data
    weights = rng.integers(0, 4, size=30).astype(float)
    repeated = np.repeat(np.arange(30), weights.astype(int))
    weighted = of_all(columns, response, prior, weights=weights)
    np.testing.assert_allclose(
        weighted, of_all(columns[repeated], response[repeated], prior), rtol=1e-11
    )
    engine = GaussianEngine(response, prior, weights=weights)
    twin = GaussianEngine(response[repeated], prior)
    one, other = engine.fit(columns), twin.fit(columns[repeated])
    np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=1e-9)
    np.testing.assert_allclose(one.covariance, other.covariance, rtol=1e-9, atol=1e-14)
    assert one.dispersion == pytest.approx(other.dispersion)
    assert one.degrees_of_freedom == other.degrees_of_freedom
    assert one.log_likelihood == pytest.approx(other.log_likelihood)


@pytest.mark.parametrize("prior", PRIORS, ids=IDS)
def test_order_of_rows_and_columns_does_not_matter(data, prior, rng):
    columns, response = data
    rows, order = rng.permutation(30), rng.permutation(4)
    permuted = of_all(columns[rows][:, order], response[rows], prior)
    same = unpack_index(np.arange(16), 4) @ (1 << order)
    expected = of_all(columns, response, prior)[same]
    np.testing.assert_allclose(permuted, expected, rtol=1e-10)


@settings(max_examples=40)
@given(
    powers=st.lists(st.integers(-300, 300), min_size=3, max_size=3),
    shift=st.sampled_from([0.0, 1.0, -1e3, 1e6]),
    seed=st.integers(0, 2**32),
)
def test_units_of_the_columns_do_not_matter(powers, shift, seed):
    """Any factor from 1e-300 to 1e300; shifts up to a million standard deviations."""
    draw = np.random.default_rng(seed)
    columns, response = draw.normal(size=(20, 3)), draw.normal(size=20)
    scaled = (columns + shift) * 10.0 ** np.array(powers, dtype=float)
    np.testing.assert_allclose(of_all(scaled, response), of_all(columns, response), atol=1e-6)


@pytest.mark.parametrize("scale", [1e-150, 1e-6, 1e6, 1e150])
@pytest.mark.parametrize("shift", [0.0, 1e5])
@pytest.mark.parametrize("prior", [Jeffreys(), BIC(), AIC()], ids=repr)
def test_units_of_the_response_shift_all_models_alike(data, prior, scale, shift):
    columns, response = data
    moved = of_all(columns, (response + shift) * scale, prior) - of_all(columns, response, prior)
    np.testing.assert_allclose(moved, -30 * log(scale), rtol=1e-8)


def test_units_of_the_response_matter_with_a_known_variance(data):
    """They must: the published scripts' criterion is not invariant."""
    columns, response = data
    moved = of_all(columns, 3 * response, KnownVariance()) - of_all(
        columns, response, KnownVariance()
    )
    assert np.ptp(moved) > 1.0


def test_an_offset_is_subtracted_and_its_mean_goes_into_the_intercept(data, rng):
    columns, response = data
    offset = rng.normal(size=30)
    plain = of_all(columns, response - offset)
    np.testing.assert_allclose(of_all(columns, response, offset=offset), plain, rtol=1e-12)
    np.testing.assert_allclose(of_all(columns, response, offset=offset + 7.0), plain, rtol=1e-11)


@pytest.mark.parametrize("prior", PRIORS, ids=IDS)
def test_always_in_columns_are_in_every_model(data, prior):
    columns, response = data
    fixed = of_all(columns[:, :2], response, prior, always=columns[:, 2:])
    np.testing.assert_allclose(fixed, of_all(columns, response, prior)[12:], rtol=1e-10)
    engine = GaussianEngine(response, prior, always=columns[:, 2:])
    whole = GaussianEngine(response, prior).fit(columns[:, [2, 3, 0, 1]])
    fit = engine.fit(columns[:, :2])
    np.testing.assert_allclose(fit.coefficients, whole.coefficients, rtol=1e-8)
    assert fit.log_evidence == pytest.approx(whole.log_evidence)
    assert fit.dispersion == pytest.approx(whole.dispersion)


def test_always_in_columns_may_repeat_each_other_and_lie_far_from_zero(data):
    """Two copies of a year-like column count once."""
    columns, response = data
    year = columns[:, [3]] + 1e6
    twice = of_all(columns[:, :2], response, always=np.hstack([year, 2 * year]))
    np.testing.assert_allclose(twice, of_all(columns[:, :2], response, always=year), rtol=1e-9)
    once = of_all(columns[:, [0, 1, 3]], response)[4:]
    np.testing.assert_allclose(twice, once, rtol=1e-9)


def test_a_combination_of_always_in_columns_is_dependent(data):
    columns, response = data
    engine = GaussianEngine(response, Jeffreys(), always=columns[:, 2:])
    combination = (columns[:, [2]] - columns[:, [3]]) * 3.0 + 1.0
    assert engine.log_evidence(combination) == (-np.inf, Status.RANK_DEFICIENT)
    _, statuses = engine.prepare(combination).log_evidence_of_all(1)
    assert statuses.tolist() == [Status.OK, Status.RANK_DEFICIENT]


def test_after_preparation_the_rows_are_not_needed(data):
    """Ten times the rows, the same size of everything that evaluations touch."""
    columns, response = data
    small = GaussianEngine(response, Jeffreys()).prepare(columns).context
    large = GaussianEngine(np.tile(response, 10), Jeffreys()).prepare(np.tile(columns, (10, 1)))
    sizes = [[np.size(part) for part in one] for one in (small, large.context)]
    assert sizes[0] == sizes[1]
    assert max(sizes[0]) <= 30


# ------------------------------------------------------------------------ perfect fits


def mass_law(rng, n=60):
    """A response that is an exact product, and distractors."""
    radius, density = rng.lognormal(size=n), rng.lognormal(size=n)
    law = radius**3 * density
    return np.column_stack([law, radius, density, rng.normal(size=(n, 2))]), 3.0 + 2.0 * law


def test_all_perfect_fits_tie(rng):
    columns, response = mass_law(rng)
    values, statuses = GaussianEngine(response, Jeffreys()).prepare(columns).log_evidence_of_all(5)
    masks = unpack_index(np.arange(32), 5)
    perfect = masks[:, 0]
    np.testing.assert_array_equal(statuses == Status.PERFECT_FIT, perfect)
    # Per coefficient (1/2) log 2 pi; nothing else tells perfect fits apart.
    per_size = values[perfect] - 0.5 * log(2 * pi) * masks[perfect].sum(axis=1)
    np.testing.assert_allclose(per_size, per_size[0], atol=1e-9)
    assert np.all(np.isfinite(values))


def test_the_floor_holds_from_the_rows_as_well(rng):
    columns, response = mass_law(rng)
    engine = GaussianEngine(response, Jeffreys())
    one, status = engine.log_evidence(columns[:, :1])
    two, _ = engine.log_evidence(columns[:, :2])
    assert status is Status.PERFECT_FIT
    assert two - one == pytest.approx(0.5 * log(2 * pi), abs=1e-9)
    fit = engine.fit(columns[:, :1])
    assert fit.status is Status.PERFECT_FIT
    assert fit.dispersion > 0
    np.testing.assert_allclose(fit.coefficients, [3.0, 2.0], rtol=1e-9)


def test_from_the_rows_an_approximation_is_no_law(rng):
    """A perfect fit to seven digits loses against one to sixteen, as the formula has it."""
    columns, response = mass_law(rng)
    law = columns[:, 0]
    near = law + 1e-8 * law.std() * rng.normal(size=60)
    # As the fraction f falls, g grows as 1/f: of f^(-(n-1-p)/2) the prior g^(-3/2) takes one half.
    for prior, slope in ((Jeffreys(), 60 / 2), (ZellnerSiow(), (60 - 1 - 1 - 1) / 2)):
        engine = GaussianEngine(response, prior)
        fraction, _ = engine.fraction(near[:, None])
        assert 1e-20 < fraction < 1e-12
        values = [engine.log_evidence(column[:, None])[0] for column in (law, near)]
        expected = slope * np.log(fraction / 1e-20)
        assert values[0] - values[1] == pytest.approx(expected, rel=0.01)
        # The Gram matrix cannot tell them apart.
        gram = engine.prepare(np.column_stack([law, near])).log_evidence_of_all(1)[0]
        assert gram[1] == pytest.approx(gram[2], abs=1e-6)


def test_a_response_without_digits_does_not_tell_perfect_fits_apart(rng):
    """Far from zero its own rounding is larger than what they differ by; nothing varies at all."""
    columns, response = mass_law(rng)
    for values in (1e12 + response, np.ones(60)):
        engine = GaussianEngine(values, Jeffreys())
        found = [engine.log_evidence(columns[:, list(some)]) for some in ((0,), (0, 3), (0, 4))]
        assert all(status is Status.PERFECT_FIT for _, status in found)
        assert found[1][0] == pytest.approx(found[2][0], abs=1e-9)


def test_without_the_floor_noise_would_rank_them(rng):
    """Negative control: raw residuals of perfect fits differ by nats of rounding."""
    columns, response = mass_law(rng)
    engine = GaussianEngine(response, Jeffreys())
    raw = [engine.fraction(columns[:, [0, *extra]])[0] for extra in ([], [1], [2], [3], [4])]
    assert np.ptp(-0.5 * 60 * np.log(np.maximum(raw, 1e-300))) > 1.0


def test_a_tiny_but_real_residual_is_no_perfect_fit(rng):
    columns, response = mass_law(rng)
    noisy = response + 1e-4 * np.std(response) * rng.normal(size=60)
    _, status = GaussianEngine(noisy, Jeffreys()).log_evidence(columns[:, :1])
    assert status is Status.OK


def test_nearly_collinear_columns_are_refined_by_qr(rng):
    """The Gram matrix squares the condition number; rows do not."""
    first = rng.normal(size=200)
    columns = np.column_stack([first, first + 1e-4 * rng.normal(size=200)])
    response = columns[:, 0] - columns[:, 1] + 1e-7 * rng.normal(size=200)
    design = np.column_stack([np.ones(200), columns[:, 0], (columns[:, 1] - first) / 1e-4])
    expected = np.sum((response - design @ np.linalg.lstsq(design, response)[0]) ** 2)
    fraction, status = GaussianEngine(response, Jeffreys()).fraction(columns)
    assert status is Status.OK
    total = np.sum((response - response.mean()) ** 2)
    assert fraction == pytest.approx(expected / total, rel=1e-6)


# --------------------------------------------------------------------------- extremes


@pytest.mark.parametrize("prior", PRIORS, ids=IDS)
@pytest.mark.parametrize("value", [0.0, 0.1, 1e300])
def test_a_constant_response_gives_numbers(prior, value, rng):
    response = np.full(12, value)
    values = of_all(rng.normal(size=(12, 3)), response, prior)
    assert np.all(np.isfinite(values))
    fit = GaussianEngine(response, prior).fit(rng.normal(size=(12, 2)))
    assert np.all(np.isfinite(fit.coefficients))
    np.testing.assert_allclose(fit.coefficients[1:], 0.0, atol=1e-10 * (1 + value))


@pytest.mark.parametrize("prior", PRIORS, ids=IDS)
@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
def test_extreme_units_of_the_response_give_numbers(prior, scale, rng):
    columns = rng.normal(size=(12, 3))
    values = of_all(columns, scale * rng.normal(size=12), prior)
    assert np.all(np.isfinite(values))


@pytest.mark.parametrize("prior", PRIORS, ids=IDS)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_fewer_rows_than_columns(prior, n, rng):
    """Models that leave no residual are undefined or dependent, never numbers of noise."""
    engine = GaussianEngine(rng.normal(size=n), prior)
    values, statuses = engine.prepare(rng.normal(size=(n, 6))).log_evidence_of_all(6)
    sizes = unpack_index(np.arange(64), 6).sum(axis=1)
    np.testing.assert_array_equal(np.isfinite(values), sizes + 1 < n)
    bad = (Status.UNDEFINED, Status.RANK_DEFICIENT)
    np.testing.assert_array_equal(np.isin(statuses, bad), sizes + 1 >= n)


def test_one_row_has_no_model():
    value, status = GaussianEngine(np.ones(1), Jeffreys()).log_evidence(np.empty((1, 0)))
    assert value == -np.inf
    assert status is Status.UNDEFINED


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e8])
def test_a_column_far_from_zero_is_not_taken_for_a_constant(offset, rng):
    columns, response = rng.normal(size=(40, 2)), rng.normal(size=40)
    moved = columns + np.array([offset, 0.0])
    np.testing.assert_allclose(of_all(moved, response), of_all(columns, response), atol=1e-5)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e300])
def test_a_constant_column_is_dependent_on_the_intercept(value, rng):
    column = np.full(10, value)
    engine = GaussianEngine(rng.normal(size=10), Jeffreys())
    assert engine.log_evidence(column[:, None])[1] is Status.RANK_DEFICIENT
    _, statuses = engine.prepare(column[:, None]).log_evidence_of_all(1)
    assert statuses[1] == Status.RANK_DEFICIENT


# ------------------------------------------------------------- fits, projections, screens


def test_the_fit_is_that_of_statsmodels(data, rng):
    columns, response = data
    weights = rng.uniform(0.5, 2.0, size=30)
    fit = GaussianEngine(response, BIC(), weights=weights).fit(columns)
    peer = sm.WLS(response, sm.add_constant(columns), weights=weights).fit()
    np.testing.assert_allclose(fit.coefficients, peer.params, rtol=1e-8)
    covariance = fit.covariance * fit.dispersion
    rescaled = peer.cov_params() * peer.df_resid / (weights.sum() - 5)
    np.testing.assert_allclose(covariance, rescaled, rtol=1e-8)


def test_intervals_under_jeffreys_prior_are_those_of_least_squares(data):
    columns, response = data
    fit = GaussianEngine(response, Jeffreys()).fit(columns)
    peer = sm.OLS(response, sm.add_constant(columns)).fit()
    assert fit.degrees_of_freedom == peer.df_resid
    assert fit.dispersion == pytest.approx(peer.scale)
    assert fit.log_likelihood == pytest.approx(peer.llf)


def test_by_the_paper_the_posterior_of_jeffreys_has_n_degrees_of_freedom(data):
    columns, response = data
    paper = Jeffreys(degrees_of_freedom="n")
    fit = GaussianEngine(response, paper).fit(columns)
    peer = sm.OLS(response, sm.add_constant(columns)).fit()
    assert fit.degrees_of_freedom == 30
    assert fit.dispersion == pytest.approx(peer.ssr / 30)
    assert fit.log_evidence == GaussianEngine(response, Jeffreys()).fit(columns).log_evidence
    joint = Jeffreys(information="joint", degrees_of_freedom="n")
    assert GaussianEngine(response, joint).fit(columns).degrees_of_freedom == 32
    with pytest.raises(ValueError, match="degrees_of_freedom 'residual' or 'n'; got 'p'"):
        Jeffreys(degrees_of_freedom="p")


def test_projection_weights_are_least_squares(data):
    columns, response = data
    weights = GaussianEngine(response, Jeffreys()).project(columns)
    peer = np.linalg.lstsq(np.column_stack([np.ones(30), columns]), response)[0]
    np.testing.assert_allclose(weights, peer, rtol=1e-9)


def test_projection_of_dependent_columns_is_finite(data):
    columns, response = data
    weights = GaussianEngine(response, Jeffreys()).project(columns[:, [0, 0, 1]])
    assert np.all(np.isfinite(weights))


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_projection_weights_survive_extreme_units(data, scale):
    columns, response = data
    weights = GaussianEngine(response, Jeffreys()).project(columns * scale)
    plain = GaussianEngine(response, Jeffreys()).project(columns)
    np.testing.assert_allclose(weights[1:] * scale, plain[1:], rtol=1e-8)


@pytest.mark.parametrize("size", [0, 2])
def test_the_promise_of_a_candidate_is_its_gain(data, size):
    """For a column orthogonal to the model the score_test's gain is exact."""
    columns, response = data
    engine = GaussianEngine(response, Jeffreys())
    score_test = engine.score_test(columns[:, :size])
    design = np.column_stack([np.ones(30), columns[:, :size]])
    candidate = columns[:, 3] - design @ np.linalg.lstsq(design, columns[:, 3])[0]
    share = (candidate @ score_test.residual) ** 2
    share /= (candidate @ candidate) * (score_test.residual @ score_test.residual)
    grown = engine.log_evidence(np.column_stack([columns[:, :size], candidate]))[0]
    expected = grown - engine.log_evidence(columns[:, :size])[0]
    assert score_test.gain(np.array([share]))[0] == pytest.approx(expected, abs=1e-8)


def test_a_screen_without_room_promises_nothing(rng):
    """Three rows and two columns: one more model size and nothing is left."""
    engine = GaussianEngine(rng.normal(size=3), Jeffreys())
    assert engine.score_test(rng.normal(size=(3, 2))).gain(np.array([0.5]))[0] == -np.inf


@pytest.mark.parametrize("n", [9, 60])
def test_models_over_the_same_columns_share_one_factorisation(n, rng):
    """One QR of all columns gives what a QR of each model's own rows gives."""
    columns = 1e3 + rng.normal(size=(n, 8))
    columns[:, 7] = columns[:, 0] + 1e-4 * columns[:, 7]
    response = columns[:, :2] @ [1.0, -2.0] + 0.3 * rng.normal(size=n)
    engine = GaussianEngine(response, Jeffreys(), always=rng.normal(size=(n, 1)))
    masks = rng.random((40, 8)) < 0.4
    values, statuses = engine.log_evidence_of(columns, masks)
    expected = [engine.log_evidence(columns[:, mask]) for mask in masks]
    np.testing.assert_allclose(values, [value for value, _ in expected], rtol=1e-9)
    np.testing.assert_array_equal(statuses, [status for _, status in expected])


def test_lost_digits_never_look_like_evidence():
    """Functions of one variable, some with a pole: no model is promised more than it has."""
    draw = np.random.default_rng(4)
    x = draw.uniform(-1, 1, 300)
    bent = x * np.sqrt(np.abs(x))
    columns = [x, 1 / x, x**3, np.sin(x**3), 1 / np.sin(x), np.exp(bent), np.exp(bent / 2)]
    columns = np.column_stack([*columns, np.log(np.abs(x))])
    y = x + x**2 + x**3 + 0.01 * draw.normal(size=300)
    prepared = GaussianEngine(y, Jeffreys()).prepare(columns)
    masks = (np.arange(256)[:, None] >> np.arange(8)) % 2 == 1
    unit = columns - columns.mean(axis=0)
    unit /= np.linalg.norm(unit, axis=0)
    target = (y - y.mean()) / np.linalg.norm(y - y.mean())
    exact = np.empty(256)
    for row, mask in enumerate(masks):
        rest = target - unit[:, mask] @ np.linalg.lstsq(unit[:, mask], target)[0]
        exact[row] = prepared.table.value(float(rest @ rest), int(mask.sum()))
    for values, _ in (prepared.log_evidence_of_all(8), prepared.log_evidence(masks)):
        assert np.all(values < exact + 1e-3)
        assert np.median(np.abs(values - exact)) < 1e-6


def test_some_of_the_rows_are_an_engine_of_their_own(rng):
    """Weights, offset and always-in columns go with their rows."""
    y, columns, always = rng.normal(size=40), rng.normal(size=(40, 3)), rng.normal(size=(40, 1))
    weights, offset = rng.integers(1, 4, 40).astype(float), rng.normal(size=40)
    rows = np.arange(0, 40, 3)
    given = {"weights": weights, "always": always, "offset": offset}
    taken = GaussianEngine(y, Jeffreys(), **given).take(rows)
    alone = GaussianEngine(y[rows], Jeffreys(), **{name: v[rows] for name, v in given.items()})
    assert taken.log_evidence(columns[rows]) == alone.log_evidence(columns[rows])


@pytest.mark.parametrize("prior", [ZellnerSiow(), Jeffreys()])
@pytest.mark.parametrize("weighted", [False, True])
def test_models_fitted_together_are_those_fitted_one_by_one(rng, prior, weighted):
    """Also where columns nearly depend on each other, and where a model fits almost perfectly."""
    X = rng.normal(size=(60, 7)) * 10.0 ** rng.uniform(-3, 3, size=7) + 100.0 * rng.normal(size=7)
    X[:, 5] = X[:, 4] * (1.0 + 1e-7 * rng.normal(size=60))
    y = X[:, 0] / X[:, 0].std() + X[:, 6] / X[:, 6].std() + 1e-5 * rng.normal(size=60)
    extra = {"weights": rng.integers(1, 4, 60).astype(float), "offset": rng.normal(size=60)}
    engine = GaussianEngine(y, prior, **(extra if weighted else {}))
    masks = rng.random((40, 7)) < 0.4
    masks[:3] = [[False] * 7, [False] * 4 + [True] * 2 + [False], [True] + [False] * 5 + [True]]
    for fit, mask in zip(engine.fit_many(X, masks), masks, strict=True):
        alone = engine.fit(X[:, mask])
        assert fit.status == alone.status
        spread = np.sqrt(np.diag(alone.covariance))
        np.testing.assert_allclose(
            fit.covariance / np.outer(spread, spread),
            alone.covariance / np.outer(spread, spread),
            atol=1e-9,
        )
        error = (fit.coefficients - alone.coefficients) / (spread * np.sqrt(alone.dispersion))
        np.testing.assert_allclose(error, 0.0, atol=1e-6)
        assert fit.dispersion == pytest.approx(alone.dispersion, rel=1e-9)
        assert fit.log_evidence == pytest.approx(alone.log_evidence, abs=1e-7)
        assert fit.log_likelihood == pytest.approx(alone.log_likelihood, abs=1e-7)
