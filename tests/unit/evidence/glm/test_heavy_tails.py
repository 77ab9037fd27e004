"""Student's t, beta and zero-inflated Poisson responses: against statsmodels and by hand."""

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.stats
from scipy.special import expit, polygamma
from statsmodels.discrete.count_model import ZeroInflatedPoisson as StatsmodelsZip
from statsmodels.miscmodels.tmodel import TLinearModel
from statsmodels.othermod.betareg import BetaModel

import dbrm
from dbrm._kernels.bits import unpack_index
from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.evidence import find_family
from dbrm.evidence.coefficient_priors import Jeffreys, Normal
from dbrm.evidence.families import Beta, Gamma, StudentT, ZeroInflatedPoisson
from dbrm.evidence.families.student_t import estimate_df
from dbrm.evidence.glm import GlmEngine
from dbrm.status import Status

FAMILIES = [StudentT(4.0), Beta(), ZeroInflatedPoisson()]
INVERSE_LINKS = {"student_t": lambda eta: eta, "beta": expit, "zero_inflated_poisson": np.exp}
DISPERSION = {"student_t": 0.5, "beta": 0.1, "zero_inflated_poisson": 0.6}


def simulate(rng, family, n=300):
    columns = rng.standard_normal((n, 3))
    mean = INVERSE_LINKS[family.name](0.4 + columns @ [0.5, -0.3, 0.0])
    return columns, family.rvs(rng, mean, DISPERSION[family.name])


def statsmodels_fit(family, y, design):
    """Coefficients, dispersion and log likelihood; without the constant of the mean's scale."""
    if family.name == "student_t":
        model = TLinearModel(y, design, fix_df=family.df)
        start = np.append(np.linalg.lstsq(design, y, rcond=None)[0], y.std())
        found = model.fit(start_params=start, disp=0, method="nm", maxiter=5000)
        found = model.fit(start_params=found.params, disp=0, method="newton", maxiter=100)
        return found.params[:-1], found.params[-1] ** 2, found.llf
    if family.name == "beta":
        found = BetaModel(y, design).fit(disp=0, method="bfgs", gtol=1e-9, maxiter=500)
        return found.params[:-1], np.exp(-found.params[-1]), found.llf
    found = StatsmodelsZip(y, design).fit(disp=0, method="bfgs", gtol=1e-8, maxiter=500)
    odds = np.exp(found.params[0])
    coefficients = found.params[1:].copy()
    # Its coefficients are those of the Poisson part, mean times (1 + odds).
    coefficients[0] -= np.log1p(odds)
    return coefficients, odds, found.llf


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_fits_are_those_of_statsmodels(rng, family):
    columns, y = simulate(rng, family)
    fit = GlmEngine(y, Jeffreys(), family).fit(columns)
    assert fit.status is Status.OK
    design = np.column_stack([np.ones(y.size), columns])
    coefficients, dispersion, likelihood = statsmodels_fit(family, y, design)
    assert fit.log_likelihood == pytest.approx(likelihood, abs=1e-6)
    np.testing.assert_allclose(fit.coefficients, coefficients, atol=1e-4)
    assert fit.dispersion == pytest.approx(dispersion, rel=1e-3)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_jeffreys_evidence_counts_the_dispersion(rng, family):
    """Maximised likelihood times the square root of two pi for each parameter."""
    columns, y = simulate(rng, family)
    engine = GlmEngine(y, Jeffreys(), family)
    expected = engine.fit(columns).log_likelihood + 2.5 * np.log(2 * np.pi)
    assert engine.log_evidence(columns)[0] == pytest.approx(expected, abs=1e-9)


def log_density(family, y, mean, phi):
    """The same densities by SciPy."""
    if family.name == "student_t":
        return scipy.stats.t.logpdf(y, family.df, mean, np.sqrt(phi))
    if family.name == "beta":
        return scipy.stats.beta.logpdf(y, mean / phi, (1 - mean) / phi)
    excess = phi / (1 + phi)
    chance = excess * (y == 0) + (1 - excess) * scipy.stats.poisson.pmf(y, mean * (1 + phi))
    with np.errstate(divide="ignore"):
        return np.log(chance)


def expected_information(family, mean, phi):
    """Of the linear predictor, for each row."""
    if family.name == "student_t":
        return np.full(mean.size, (family.df + 1) / (family.df + 3) / phi)
    if family.name == "beta":
        about_mean = (polygamma(1, mean / phi) + polygamma(1, (1 - mean) / phi)) / phi**2
        return about_mean * (mean * (1 - mean)) ** 2
    counts = np.arange(60.0)[:, None]
    step = 1e-5
    chance = np.exp(log_density(family, counts, mean, phi))
    up, down = (log_density(family, counts, mean * np.exp(h), phi) for h in (step, -step))
    return (chance * ((up - down) / (2 * step)) ** 2).sum(axis=0)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_normal_prior_evidence_is_laplace_and_nearly_the_integral(rng, family):
    """With a known dispersion, a flat intercept and a slope of variance four."""
    phi = DISPERSION[family.name]
    family = type(family)(**({"df": 4.0} if family.name == "student_t" else {}), dispersion=phi)
    columns, y = simulate(rng, family, 120)
    x, inverse = columns[:, 0], INVERSE_LINKS[family.name]

    def loss(beta):
        value = log_density(family, y, inverse(beta[0] + beta[1] * x), phi).sum()
        return -float(value + scipy.stats.norm.logpdf(beta[1], scale=2.0))

    best = scipy.optimize.minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-7})
    design = np.column_stack([np.ones(y.size), x])
    weights = expected_information(family, inverse(design @ best.x), phi)
    information = design.T @ (weights[:, None] * design) + np.diag([0.0, 0.25])
    laplace = -best.fun + np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(information)[1]
    value, _ = GlmEngine(y, Normal(4.0), family).log_evidence(columns[:, :1])
    assert value == pytest.approx(laplace, abs=1e-6)
    root = np.linalg.cholesky(np.linalg.inv(information))
    side = np.linspace(-6, 6, 41)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    terms = [-loss(beta) for beta in best.x + grid @ root.T]
    volume = (side[1] - side[0]) ** 2 * np.prod(np.diag(root))
    # The expected information, where the integral has the observed one.
    assert value == pytest.approx(np.logaddexp.reduce(terms) + np.log(volume), abs=0.15)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_the_expansion_ranks_models_as_the_evidence_does(rng, family):
    columns, y = simulate(rng, family)
    population = GlmEngine(y, Jeffreys(), family).prepare(columns)
    found, _ = population.log_evidence(unpack_index(np.arange(8), 3))
    guessed = population.approximate_all(np.ones(3, dtype=bool), 3)
    assert np.argmax(guessed) == np.argmax(found)
    near = found > found.max() - 6.0
    apart = (guessed - guessed.max()) - (found - found.max())
    assert np.max(np.abs(apart[near])) < 0.5


@pytest.mark.parametrize(("df", "low", "high"), [(3.0, 2.1, 4.5), (30.0, 8.0, 100.0)])
def test_degrees_of_freedom_are_estimated(rng, df, low, high):
    columns = rng.standard_normal((1000, 3))
    y = columns @ [1.0, -1.0, 0.0] + np.abs(columns[:, 2]) + rng.standard_t(df, 1000)
    assert low <= estimate_df(columns, y, np.ones(1000)) <= high
    weights = np.concatenate([np.ones(500), np.zeros(500)])
    half = estimate_df(columns[:500], y[:500], np.ones(500))
    assert estimate_df(columns, y, weights) == pytest.approx(half, rel=1e-6)


def test_without_covariates_or_rows_there_is_an_estimate(rng):
    y = rng.standard_t(3.0, 40)
    assert 2.1 <= estimate_df(np.empty((40, 0)), y, np.ones(40)) <= 100.0
    assert 2.1 <= estimate_df(rng.standard_normal((8, 20)), y[:8], np.ones(8)) <= 100.0
    assert 2.1 <= estimate_df(np.ones((40, 1)), np.ones(40), np.ones(40)) <= 100.0


def test_outliers_do_not_buy_features(rng, tmp_path):
    table = pd.DataFrame(rng.standard_normal((150, 4)), columns=list("abcd"))
    y = table["a"] + rng.normal(0, 0.5, 150)
    far = np.argsort(-table["d"].to_numpy())[:8]
    y.iloc[far] += 25.0
    usual = dbrm.enumerate_models(table, y, penalty="bic")
    robust = dbrm.enumerate_models(table, y, family="student_t", penalty="bic")
    assert usual.inclusion("d") > 0.9
    assert robust.inclusion("a") > 0.99
    assert robust.inclusion("d") < 0.2
    assert 2.0 < robust.family.df < 5.0
    path = tmp_path / "robust.dbrm"
    robust.save(path)
    again = dbrm.load(path)
    assert again.family == robust.family
    np.testing.assert_array_equal(again.predict_interval(table), robust.predict_interval(table))


@pytest.mark.parametrize("family", ["student_t", "beta", "zero_inflated_poisson"])
def test_predictions_cover(rng, family):
    """Four hundred new rows at 95 per cent: one false alarm in a million."""
    found = find_family(family)
    columns, y = simulate(rng, found, 600)
    table = pd.DataFrame(columns, columns=list("abc"))
    posterior = dbrm.enumerate_models(table[:200], y[:200], family=family)
    low, high = np.asarray(posterior.predict_interval(table[200:])).T
    inside = np.sum((y[200:] >= low) & (y[200:] <= high))
    least = scipy.stats.binom.ppf(1e-6, 400, 0.94)
    assert inside >= least
    if not found.discrete:
        assert inside <= scipy.stats.binom.ppf(1 - 1e-6, 400, 0.96)


def test_parameters_in_the_name():
    assert find_family("student_t(5)") == StudentT(5.0)
    assert find_family("Student-T(df=5, dispersion=2)") == StudentT(5.0, 2.0)
    assert StudentT(5.0).text == "student_t(df=5.0)"
    assert find_family(Gamma(0.5).text) == Gamma(0.5)
    assert Gamma().text == "gamma"
    for wrong in ("student_t(dof=4)", "student_t(four)", "poisson(3)"):
        with pytest.raises(InvalidSettingError, match="parameters are numbers"):
            find_family(wrong)


def test_wrong_parameters_and_responses_are_refused():
    with pytest.raises(InvalidSettingError, match=r"above 2.*df=2.0"):
        StudentT(2.0)
    with pytest.raises(InvalidDataError, match=r"2 of 3 rows are exactly 0 or 1.*binomial"):
        Beta().check_response(np.array([0.0, 0.5, 1.0]))
    with pytest.raises(InvalidDataError, match="between 0 and 1"):
        Beta().check_response(np.array([0.2, 1.5]))
    with pytest.raises(InvalidDataError, match="whole numbers"):
        ZeroInflatedPoisson().check_response(np.array([1.5]))


def test_what_they_cannot_do_is_said(rng):
    columns, y = simulate(rng, StudentT(4.0), 40)
    with pytest.raises(InvalidSettingError, match=r"device='gpu' has no program.*it has for: "):
        dbrm.enumerate_models(columns, y, family="student_t", device="gpu")
    with pytest.raises(
        InvalidSettingError, match=r"latent= works with the families binomial.*student_t"
    ):
        dbrm.enumerate_models(
            columns, y, family="student_t", latent=[dbrm.latent.IID()], device="cpu"
        )
