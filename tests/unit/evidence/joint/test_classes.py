"""Ordered classes and classes without order: against statsmodels, scikit-learn and integrals."""

import numpy as np
import pytest
import scipy.stats
from scipy.special import expit, softmax
from tests.unit.evidence.joint.test_likelihoods import check_joint

from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.evidence import Jeffreys, Observations, build_engine, find_family
from dbrm.evidence.coefficient_priors import Normal

FAMILIES = [("ordinal", "logit"), ("ordinal", "probit"), ("multinomial", "logit")]


def simulate(rng, n=300, family="ordinal"):
    columns = rng.normal(size=(n, 2))
    if family == "ordinal":
        latent = columns @ [1.0, -0.5] + rng.logistic(size=n)
        return columns, np.digitize(latent, [-1.0, 0.3, 2.0]).astype(float)
    eta = np.column_stack([np.zeros(n), 0.5 + columns @ [1.0, 0.0], columns @ [-1.0, 0.7]])
    return columns, (eta + rng.gumbel(size=eta.shape)).argmax(axis=1).astype(float)


@pytest.mark.parametrize(("family", "link"), FAMILIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_derivatives_agree_with_differences(family, link, weighted, rng):
    columns, y = simulate(rng, 80, family)
    weights = rng.integers(1, 4, size=80).astype(float) if weighted else None
    bound = find_family(family).with_link(link).bind(Observations(y, weights))
    check_joint(
        bound, bound.start() + np.array([-0.2, 0.0, 0.1])[: bound.shift.shape[0]], columns, rng
    )


def test_likelihoods_stay_finite_far_out():
    for link in ("logit", "probit"):
        y = np.array([0.0, 1.0, 2.0, 1.0])
        bound = find_family("ordinal").with_link(link).bind(Observations(y))
        point = bound.at(np.array([-1.0, 1.0]), np.array([[30.0, -30.0, -30.0, 30.0]]))
        assert np.isfinite(point.value)
        assert np.all(np.isfinite(point.score))
        assert np.all(np.isfinite(point.weight))
        assert bound.at(np.array([1.0, -1.0]), np.zeros((1, 4))).value == -np.inf


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_ordinal_fits_are_those_of_statsmodels(link, rng):
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    columns, y = simulate(rng)
    fit = build_engine(Observations(y), Jeffreys(), family="ordinal", link=link).fit(columns)
    model = OrderedModel(y, columns, distr=link)
    other = model.fit(method="bfgs", disp=0, gtol=1e-8, maxiter=200)
    assert fit.log_likelihood == pytest.approx(other.llf, abs=1e-6)
    np.testing.assert_allclose(fit.joint.coefficients[:, 0], other.params[:2], atol=1e-5)
    thresholds = model.transform_threshold_params(other.params)[1:-1]
    np.testing.assert_allclose(fit.joint.ancillary, thresholds, atol=1e-5)
    spread = np.sqrt(np.diag(fit.joint.covariance)[-2:])
    np.testing.assert_allclose(spread, other.bse[:2], rtol=1e-3)


def test_multinomial_fits_are_those_of_statsmodels_and_scikit_learn(rng):
    import statsmodels.api as sm
    from sklearn.linear_model import LogisticRegression

    columns, y = simulate(rng, family="multinomial")
    fit = build_engine(Observations(y), Jeffreys(), family="multinomial").fit(columns)
    other = sm.MNLogit(y, sm.add_constant(columns)).fit(disp=0, tol=1e-12)
    assert fit.log_likelihood == pytest.approx(other.llf, abs=1e-6)
    found = np.vstack([fit.joint.ancillary, fit.joint.coefficients])
    np.testing.assert_allclose(found, other.params, atol=1e-6)
    order = np.arange(6).reshape(3, 2).T.ravel()
    np.testing.assert_allclose(
        fit.joint.covariance[np.ix_(order, order)], other.cov_params(), atol=1e-6
    )
    third = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(columns, y)
    family = find_family("multinomial")
    mine = family.probabilities(fit.joint, columns, np.zeros(y.size))
    np.testing.assert_allclose(mine, third.predict_proba(columns), atol=1e-4)


def test_two_classes_are_a_binomial_response(rng):
    """Multinomial, and ordinal up to the sign of the threshold, with the same evidence."""
    columns, y = simulate(rng)
    y = (y > 1).astype(float)
    known = build_engine(Observations(y), Jeffreys(), family="binomial")
    for family in ("multinomial", "ordinal"):
        engine = build_engine(Observations(y), Jeffreys(), family=family)
        assert engine.log_evidence(columns)[0] == pytest.approx(
            known.log_evidence(columns)[0], abs=1e-8
        )


@pytest.mark.parametrize(("family", "link"), FAMILIES)
def test_normal_prior_evidence_is_nearly_the_integral(family, link, rng):
    """Importance sampling with forty thousand draws of a t; its standard error is stated."""
    columns, y = simulate(rng, 150, family)
    x = columns[:, :1]
    engine = build_engine(Observations(y), Normal(4.0), family=family, link=link)
    value, _ = engine.log_evidence(x)
    joint = engine.fit(x).joint
    a, m = joint.ancillary.size, joint.coefficients.shape[1]
    mode = np.concatenate([joint.ancillary, joint.coefficients.ravel()])
    proposal = scipy.stats.multivariate_t(mode, joint.covariance, df=8)
    draws = proposal.rvs(20_000, random_state=rng)
    chances = []
    for theta in draws:
        eta = x @ theta[a:].reshape(1, m)
        if family == "multinomial":
            table = softmax(np.hstack([np.zeros((y.size, 1)), theta[:a] + eta]), axis=1)
        else:
            cdf = expit if link == "logit" else scipy.stats.norm.cdf
            table = np.diff(cdf(theta[:a] - eta), axis=1, prepend=0.0, append=1.0)
        chances.append(table[np.arange(y.size), y.astype(int)])
    with np.errstate(all="ignore"):
        terms = np.log(chances).sum(axis=1)
    terms += scipy.stats.norm.logpdf(draws[:, a:], scale=2.0).sum(axis=1) - proposal.logpdf(draws)
    terms = np.where(np.isfinite(terms), terms, -np.inf)
    ratios = np.exp(terms - terms.max())
    exact = np.log(ratios.mean()) + terms.max()
    error = ratios.std() / ratios.mean() / np.sqrt(ratios.size)
    # Laplace's own error is of order 1 / n.
    assert abs(value - exact) < 5 * error + 0.05


@pytest.mark.parametrize(("family", "link"), FAMILIES)
def test_mean_probabilities_average_over_the_parameters(family, link, rng):
    columns, y = simulate(rng, 60, family)
    found = find_family(family).with_link(link)
    joint = build_engine(Observations(y), Jeffreys(), family=family, link=link).fit(columns).joint
    new, offset = rng.normal(size=(5, 2)), np.zeros(5)
    mean = found.mean_probabilities(joint, new, offset)
    np.testing.assert_allclose(mean.sum(axis=1), 1.0, atol=1e-12)
    assert np.all(mean >= 0)
    a, m = joint.ancillary.size, joint.coefficients.shape[1]
    mode = np.concatenate([joint.ancillary, joint.coefficients.ravel()])
    total = np.zeros_like(mean)
    draws = rng.multivariate_normal(mode, joint.covariance, size=4000)
    for theta in draws:
        one = type(joint)(theta[:a], theta[a:].reshape(-1, m), joint.covariance)
        total += found.probabilities(one, new, offset)
    np.testing.assert_allclose(mean, total / len(draws), atol=0.01)
    assert found.n_classes(joint) == mean.shape[1]


def test_the_expansion_finds_the_best_model(rng):
    for family in ("ordinal", "multinomial"):
        columns, y = simulate(rng, 300, family)
        columns = np.hstack([columns, rng.normal(size=(300, 3))])
        population = build_engine(Observations(y), Jeffreys(), family=family).prepare(columns)
        found, _ = population.log_evidence_of_all(5)
        guessed = population.approximate_all(np.ones(5, dtype=bool), 5)
        assert np.argmax(guessed) == np.argmax(found)


def test_bad_classes_are_refused():
    family = find_family("multinomial")
    with pytest.raises(InvalidDataError, match=r"number of a class.*y\[1\]=0.5"):
        family.bind(Observations(np.array([0.0, 0.5, 1.0])))
    with pytest.raises(InvalidDataError, match="class 1 has none"):
        family.bind(Observations(np.array([0.0, 2.0, 2.0])))
    with pytest.raises(InvalidDataError, match="y has one class"):
        family.bind(Observations(np.zeros(3)))
    with pytest.raises(InvalidSettingError, match="link='logit' and link='probit'"):
        build_engine(Observations(np.array([0.0, 1.0])), Jeffreys(), family="ordinal", link="log")
