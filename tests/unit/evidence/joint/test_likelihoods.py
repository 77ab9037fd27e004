"""Derivatives of joint likelihoods, and their values against other implementations."""

import numpy as np
import pytest
from tests.unit.evidence.joint.survival_data import simulate

from dbrm.evidence import Jeffreys, Observations, build_engine, find_family


def check_joint(likelihood, ancillary, columns, rng):
    """Score and information agree with differences of the value; see `JointLikelihood`."""
    a, m, n = len(likelihood.shift), likelihood.n_predictors, likelihood.n_rows
    theta = np.concatenate([ancillary, 0.3 * rng.normal(size=columns.shape[1] * m)])
    flat = np.ascontiguousarray(columns.T)

    def point(parameters):
        return likelihood.at(parameters[:a], parameters[a:].reshape(-1, m).T @ flat)

    def gradient(parameters):
        here = point(parameters)
        return np.concatenate([here.ancillary_score, (flat @ here.score.T).ravel()])

    here, step, unit = point(theta), 1e-5, np.eye(theta.size)
    slopes = [(point(theta + step * e).value - point(theta - step * e).value) for e in unit]
    np.testing.assert_allclose(gradient(theta), np.array(slopes) / (2 * step), rtol=1e-6, atol=1e-5)
    bends = [(gradient(theta + step * e) - gradient(theta - step * e)) for e in unit]
    information = here.information(flat)
    np.testing.assert_allclose(information, -np.array(bends) / (2 * step), rtol=1e-6, atol=1e-5)
    assert np.all(here.row_information > 0)
    constant = rng.normal(size=m)
    moved = likelihood.at(
        theta[:a] - likelihood.shift @ constant, _eta(theta, a, m, flat, constant)
    )
    assert moved.value == pytest.approx(here.value, rel=1e-10)
    assert n == flat.shape[1]


def _eta(theta, a, m, flat, constant):
    return theta[a:].reshape(-1, m).T @ flat + constant[:, None]


@pytest.mark.parametrize("family", ["cox", "weibull"])
@pytest.mark.parametrize("weights", [False, True])
def test_derivatives_agree_with_differences(family, weights, rng):
    columns, seen = simulate(rng, weights=weights, strata=family == "cox")
    likelihood = find_family(family).bind(seen)
    check_joint(likelihood, likelihood.start() + 0.1, columns, rng)


def test_cox_agrees_with_statsmodels(rng):
    """Coefficients, covariance and log likelihood, with ties, strata and censoring."""
    duration = pytest.importorskip("statsmodels.duration.hazard_regression")
    columns, seen = simulate(rng, late=False)
    fit = build_engine(seen, Jeffreys(), family="cox").fit(columns)
    other = duration.PHReg(
        seen.response, columns, status=seen.event, strata=seen.strata, ties="efron"
    ).fit(tol=1e-12, maxiter=100)
    np.testing.assert_allclose(fit.coefficients[1:], other.params, rtol=1e-6)
    np.testing.assert_allclose(fit.covariance[1:, 1:], other.cov_params(), rtol=1e-6)
    assert fit.log_likelihood == pytest.approx(other.llf, rel=1e-9)
    assert fit.coefficients[0] == 0.0


def efron(columns, seen, beta):
    """Efron's log partial likelihood by its definition, one event time after the other."""
    eta, value = columns @ beta, 0.0
    for stratum in np.unique(seen.strata):
        mine = seen.strata == stratum
        for time in np.unique(seen.response[mine & (seen.event == 1)]):
            dead = np.flatnonzero(mine & (seen.event == 1) & (seen.response == time))
            at_risk = mine & (seen.entry < time) & (seen.response >= time)
            total, tied = np.exp(eta[at_risk]).sum(), np.exp(eta[dead]).sum()
            value += eta[dead].sum()
            for number in range(dead.size):
                value -= np.log(total - number / dead.size * tied)
    return value


def test_cox_agrees_with_the_definition(rng):
    """Strata, late entry and ties together."""
    columns, seen = simulate(rng)
    beta = rng.normal(size=3)
    point = find_family("cox").bind(seen).at(np.zeros(0), (columns @ beta)[None])
    assert point.value == pytest.approx(efron(columns, seen, beta), rel=1e-12)


@pytest.mark.parametrize("family", ["cox", "weibull"])
def test_a_weight_of_two_is_the_row_twice(family, rng):
    columns, seen = simulate(rng, weights=True, strata=family == "cox")
    rows = np.repeat(np.arange(len(columns)), seen.weights.astype(int))
    beside = {name: c[rows] for name, c in seen.given.items() if name != "weights"}
    repeated = Observations(**beside)
    once = build_engine(seen, Jeffreys(), family=family)
    twice = build_engine(repeated, Jeffreys(), family=family)
    assert once.log_evidence(columns)[0] == pytest.approx(twice.log_evidence(columns[rows])[0])
    np.testing.assert_allclose(
        once.fit(columns).coefficients, twice.fit(columns[rows]).coefficients
    )


def test_cox_keeps_its_digits_under_enormous_predictors(rng):
    """Only differences between rows count."""
    columns, seen = simulate(rng)
    likelihood = find_family("cox").bind(seen)
    eta = (columns @ np.array([0.5, -0.2, 0.1]))[None]
    far = likelihood.at(np.zeros(0), eta + 5000.0)
    assert far.value == pytest.approx(likelihood.at(np.zeros(0), eta).value, rel=1e-9)


def test_weibull_agrees_with_a_general_optimiser(rng):
    """The maximum of the density written down from scipy's Weibull distribution."""
    import scipy.optimize
    import scipy.stats

    columns, seen = simulate(rng, strata=False)

    def loss(theta):
        shape = np.exp(-theta[1])
        law = scipy.stats.weibull_min(shape, scale=np.exp(theta[0] + columns @ theta[2:]))
        dead = seen.event == 1
        value = law.logpdf(seen.response)[dead].sum() + law.logsf(seen.response)[~dead].sum()
        return -(value - law.logsf(seen.entry).sum())

    found = scipy.optimize.minimize(loss, np.array([1.0, 0.0, 0.0, 0.0, 0.0]), tol=1e-12)
    fit = build_engine(seen, Jeffreys(), family="weibull").fit(columns)
    assert fit.log_likelihood == pytest.approx(-found.fun, rel=1e-9)
    np.testing.assert_allclose(fit.joint.ancillary, found.x[:2], atol=2e-5)
    np.testing.assert_allclose(fit.coefficients, found.x[[0, 2, 3, 4]], atol=2e-5)
