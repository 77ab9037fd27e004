"""Maximised likelihoods and evidences of `dbrm.evidence.glm` against statsmodels."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.special import expit

from dbrm.evidence.coefficient_priors import AIC, BIC, Jeffreys
from dbrm.evidence.families import Gamma, NegativeBinomial
from dbrm.evidence.glm import GlmEngine
from dbrm.status import Status

LINKS = sm.families.links
SM_LINK = {
    "identity": LINKS.Identity,
    "logit": LINKS.Logit,
    "probit": LINKS.Probit,
    "cloglog": LINKS.CLogLog,
    "log": LINKS.Log,
    "inverse": LINKS.InversePower,
}
PAIRS = [
    ("gaussian", "identity"),
    ("gaussian", "log"),
    ("gaussian", "inverse"),
    ("binomial", "logit"),
    ("binomial", "probit"),
    ("binomial", "cloglog"),
    ("binomial", "log"),
    ("binomial", "identity"),
    ("poisson", "log"),
    ("poisson", "identity"),
    ("gamma", "log"),
    ("gamma", "inverse"),
    ("gamma", "identity"),
    ("negative_binomial", "log"),
    ("negative_binomial", "identity"),
]


def simulate(rng, family, link, n=300):
    """Columns and a response whose means stay well inside the family's domain."""
    columns = rng.uniform(-1, 1, (n, 3)) * [1.0, 5.0, 0.1] + [0.0, 2.0, 0.0]
    wave = columns @ [0.6, -0.1, 2.0]
    wave = wave - wave.mean()
    if family == "binomial":
        mean = {"log": np.exp(0.4 * wave - 1.2), "identity": 0.5 + 0.2 * wave}.get(
            link, expit(wave)
        )
        return columns, (rng.random(n) < mean).astype(float)
    mean = {"identity": 5 + wave, "inverse": 1 / (1 + 0.3 * wave)}.get(link, np.exp(0.5 * wave + 1))
    if family == "gaussian":
        return columns, mean + 0.1 * rng.standard_normal(n)
    if family == "gamma":
        return columns, rng.gamma(3.0, mean / 3)
    if family == "negative_binomial":
        return columns, rng.poisson(rng.gamma(2.0, mean / 2)).astype(float)
    return columns, rng.poisson(mean).astype(float)


def sm_family(family, link):
    link = SM_LINK[link]()
    if family == "negative_binomial":
        return sm.families.NegativeBinomial(link, alpha=0.4)
    name = {"gaussian": "Gaussian", "binomial": "Binomial", "poisson": "Poisson", "gamma": "Gamma"}
    return getattr(sm.families, name[family])(link)


@pytest.mark.filterwarnings("ignore::statsmodels.tools.sm_exceptions.DomainWarning")
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_likelihood_and_coefficients_agree_with_statsmodels(rng, family, link):
    """Every family with every sensible link, to 1e-8; weights, offset and all constants."""
    columns, y = simulate(rng, family, link)
    weights = rng.integers(1, 4, y.size).astype(float)
    offset = 0.05 * rng.random(y.size)
    given = {"negative_binomial": NegativeBinomial(0.4), "gamma": Gamma(0.3)}.get(family, family)
    engine = GlmEngine(y, Jeffreys(), given, link, weights=weights, offset=offset)
    fit = engine.fit(columns)
    theirs = sm.GLM(
        y,
        sm.add_constant(columns),
        family=sm_family(family, link),
        offset=offset,
        freq_weights=weights,
    ).fit(tol=1e-13, maxiter=300, scale={"gamma": 0.3}.get(family))
    np.testing.assert_allclose(fit.coefficients, theirs.params, rtol=1e-5, atol=1e-7)
    expected = theirs.llf
    if family == "gaussian":
        n, rss = weights.sum(), weights @ (y - theirs.fittedvalues) ** 2
        expected = -0.5 * n * (np.log(2 * np.pi * rss / n) + 1)
    assert fit.log_likelihood == pytest.approx(expected, rel=1e-12, abs=1e-8)
    assert fit.status is Status.OK
    if family not in ("gaussian",):
        covariance = fit.covariance * fit.dispersion
        theirs_covariance = np.asarray(theirs.cov_params())
        np.testing.assert_allclose(covariance, theirs_covariance, rtol=2e-4, atol=1e-9)


def test_binomial_counts_keep_their_constants(rng):
    columns = rng.standard_normal((80, 2))
    trials = rng.integers(1, 30, 80).astype(float)
    y = rng.binomial(trials.astype(int), expit(columns[:, 0])).astype(float)
    engine = GlmEngine(y, Jeffreys(), "binomial", trials=trials)
    theirs = sm.GLM(
        np.column_stack([y, trials - y]), sm.add_constant(columns), family=sm.families.Binomial()
    ).fit(tol=1e-13)
    value, status = engine.log_evidence(columns)
    assert status is Status.OK
    assert value == pytest.approx(theirs.llf + 1.5 * np.log(2 * np.pi), abs=1e-8)


def test_negative_binomial_dispersion_is_the_joint_maximum(rng):
    columns, y = simulate(rng, "negative_binomial", "log")
    fit = GlmEngine(y, Jeffreys(), "negative_binomial").fit(columns)
    theirs = sm.NegativeBinomial(y, sm.add_constant(columns)).fit(
        disp=0, method="newton", maxiter=200, tol=1e-12
    )
    assert fit.dispersion == pytest.approx(theirs.params[-1], rel=1e-5)
    assert fit.log_likelihood == pytest.approx(theirs.llf, abs=1e-8)


def test_negative_binomial_without_overdispersion_is_poisson(rng):
    columns = rng.standard_normal((200, 2))
    y = rng.binomial(10, expit(columns[:, 0])).astype(float)
    value, _ = GlmEngine(y, Jeffreys("none"), "negative_binomial").log_evidence(columns)
    limit, _ = GlmEngine(y, Jeffreys("none"), "poisson").log_evidence(columns)
    assert value == pytest.approx(limit, abs=1e-5)


def test_gamma_shape_is_the_joint_maximum(rng):
    """No move of coefficients and shape together improves the likelihood."""
    columns, y = simulate(rng, "gamma", "log")
    family = Gamma()
    fit = GlmEngine(y, Jeffreys(), family).fit(columns)
    design = np.column_stack([np.ones(y.size), columns])

    def likelihood(coefficients, dispersion):
        return family.log_density(y, np.exp(design @ coefficients), dispersion).sum()

    best = likelihood(fit.coefficients, fit.dispersion)
    assert fit.log_likelihood == pytest.approx(best, abs=1e-8)
    for _ in range(50):
        move = rng.standard_normal(4) * 1e-4
        assert likelihood(fit.coefficients + move, fit.dispersion) < best
        assert likelihood(fit.coefficients, fit.dispersion * (1 + 1e-3 * move[0])) <= best + 1e-9


@pytest.mark.parametrize(("family", "dispersions"), [("binomial", 0), ("poisson", 0), ("gamma", 1)])
def test_information_criteria_count_what_r_counts(rng, family, dispersions):
    """BIC and AIC price each coefficient, and the dispersion where it is estimated."""
    columns, y = simulate(rng, family, "log" if family != "binomial" else "logit")
    likelihood = GlmEngine(y, Jeffreys(), family).fit(columns).log_likelihood
    bic, _ = GlmEngine(y, BIC(), family).log_evidence(columns)
    aic, _ = GlmEngine(y, AIC(), family).log_evidence(columns)
    count = 4 + dispersions
    assert bic == pytest.approx(likelihood - 0.5 * count * np.log(y.size), abs=1e-8)
    assert aic == pytest.approx(likelihood - count, abs=1e-8)
