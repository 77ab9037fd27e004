"""Evidence of models with latent effects: the engine, its populations and its fits."""

import numpy as np
import pytest
from tests.unit.evidence.latent.models import dense_covariance, dense_log_evidence

from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.evidence import Observations, add_latent, bind, build_engine, resolve_prior
from dbrm.evidence.latent import AR1, IID, OU, RW1, RW2, RandomIntercept
from dbrm.status import Status

NONE = np.zeros(1, dtype=bool)
ONE = np.ones(1, dtype=bool)


def engine_for(
    y, effects, places, *, family="gaussian", prior="jeffreys", always=None, most=None, **extras
):
    observations = Observations(y, **extras)
    chosen = resolve_prior(prior)
    base = build_engine(observations, chosen, family=family, always=always)
    bounds = [bind(e, None if e.column is None else places[e.column], y.size) for e in effects]
    return add_latent(
        base,
        observations,
        chosen,
        bounds,
        family=family,
        link=None,
        always=always,
        most=most,
    )


@pytest.fixture
def data(rng):
    n = 120
    t = np.arange(float(n))
    X = rng.normal(size=(n, 3))
    walk = np.cumsum(0.3 * rng.normal(size=n))
    return t, X, 1.0 + 0.8 * X[:, 0] + walk - walk.mean()


FAMILIES = ["poisson", "binomial", "gamma", "negative_binomial"]


def draw(rng, family, eta):
    if family == "gaussian":
        return eta + 0.5 * rng.normal(size=eta.size), None
    if family == "binomial":
        trials = np.full(eta.size, 12.0)
        return rng.binomial(12, 1 / (1 + np.exp(-eta))).astype(float), trials
    if family == "gamma":
        return rng.gamma(4.0, np.exp(eta) / 4.0), None
    rate = np.exp(eta) * (rng.gamma(3.0, 1 / 3.0, eta.size) if family != "poisson" else 1.0)
    return rng.poisson(rate).astype(float), None


RIDGE = {"name": "normal", "variance": 0.3, "standardised": True}


@pytest.mark.parametrize(
    "prior", ["jeffreys", "bic", "g-prior", {"name": "normal"}, RIDGE], ids=str
)
@pytest.mark.parametrize("family", FAMILIES)
def test_an_effect_without_variance_changes_nothing(data, rng, family, prior):
    """At a huge precision the evidence is that of the model without the effect."""
    t, X, eta = data
    X = X * [1.0, 1.0, 5.0]
    y, trials = draw(rng, family, eta)
    engine = engine_for(y, [IID("t")], {"t": t}, family=family, prior=prior, trials=trials)
    population = engine.prepare(X)
    plain, status = population.evaluate(np.array([True, False, True, False]))
    assert status == Status.OK
    model = population.model(np.array([0, 2]), (0,))
    fit = engine.base.fit(X[:, [0, 2]])
    noise = [-np.log(fit.dispersion)] if engine.noise.free else []
    psi = np.array([24.0])
    point = model.at(np.concatenate([noise, psi]))
    value = point.value - IID("t").log_hyperprior(psi) + engine.constant
    # For gamma and negative binomial rows observed information stands where models without
    # effects have the expected one: two approximations of the same integral.
    exact = family in ("poisson", "binomial") or prior in ("jeffreys", "bic")
    assert value == pytest.approx(plain, abs=1e-4 if exact else 0.2)


def test_gaussian_models_without_effects_have_the_same_error_prior(data):
    """Differences between models hardly depend on how the error variance is integrated."""
    t, X, y = data
    y = y + np.random.default_rng(1).normal(size=y.size)
    engine = engine_for(y, [AR1("t")], {"t": t})
    ours = [engine.log_evidence(X[:, :k])[0] for k in range(4)]
    exact = [engine.base.log_evidence(X[:, :k])[0] for k in range(4)]
    np.testing.assert_allclose(np.diff(ours), np.diff(exact), atol=0.1)


@pytest.mark.parametrize("family", ["gaussian", *FAMILIES])
def test_the_true_effect_wins(data, rng, family):
    t, X, eta = data
    y, trials = draw(rng, family, eta)
    effects = [RW1("t"), IID("t")] if family != "gaussian" else [RW1("t"), OU("t")]
    engine = engine_for(y, effects, {"t": t}, family=family, trials=trials)
    population = engine.prepare(X)
    columns = [True, False, False]
    values = {
        effects: population.evaluate(np.array([*columns, *effects]))[0]
        for effects in ((False, False), (True, False), (False, True))
    }
    assert max(values, key=values.get) == (True, False)


def test_rescaling_a_gaussian_response_changes_no_comparison(data):
    t, X, y = data
    y = y + 0.5 * np.random.default_rng(2).normal(size=y.size)
    masks = np.array([[1, 0, 0, 1], [1, 0, 0, 0], [1, 1, 0, 1]], dtype=bool)
    plain = engine_for(y, [RW1("t")], {"t": t}).prepare(X).log_evidence(masks)[0]
    scaled = engine_for(1e4 * y - 3.0, [RW1("t")], {"t": t}).prepare(X).log_evidence(masks)[0]
    np.testing.assert_allclose(np.diff(plain), np.diff(scaled), atol=1e-6)


def test_values_do_not_depend_on_the_order_of_questions(data, rng):
    t, X, eta = data
    y, _ = draw(rng, "poisson", eta)
    effects = [RW1("t"), AR1("t"), IID("t")]
    masks = rng.random((12, 6)) < 0.5
    first = engine_for(y, effects, {"t": t}, family="poisson").prepare(X)
    again = engine_for(y, effects, {"t": t}, family="poisson").prepare(X)
    forth = first.log_evidence(masks)[0]
    back = again.log_evidence(masks[::-1])[0][::-1]
    np.testing.assert_array_equal(forth, back)


def test_hopeless_models_are_not_worked_out_and_not_overrated(data, rng):
    """The quick value of a hopeless model is no larger than its evidence."""
    t, X, eta = data
    y, _ = draw(rng, "poisson", 2.0 + eta)
    engine = engine_for(y, [RW1("t"), IID("t")], {"t": t}, family="poisson")
    population = engine.prepare(X)
    poor = np.array([False, False, True, False, True])
    value, _ = population.evaluate(poor)
    assert not engine.known
    full, _ = population.evaluate(poor, thorough=True)
    assert engine.known
    assert value <= full + 0.5
    best, _ = population.evaluate(np.array([True, False, False, True, False]))
    assert full < best


def test_dependent_columns_have_no_evidence(data, rng):
    t, X, eta = data
    y, _ = draw(rng, "poisson", eta)
    engine = engine_for(y, [RW1("t")], {"t": t}, family="poisson")
    population = engine.prepare(np.column_stack([X[:, 0], 2.0 * X[:, 0] - 1.0]))
    value, status = population.evaluate(np.array([True, True, True]))
    assert value == -np.inf
    assert status == Status.RANK_DEFICIENT
    fit = population.fit(np.array([True, True, True]))
    alone = population.fit(np.array([True, False, True]))
    np.testing.assert_allclose(fit.coefficients, [*alone.coefficients, 0.0])
    design = np.column_stack([np.ones(2), [0.5, 1.0], [7.0, -2.0]])
    ours = fit.latent.predictor(engine.effects, [np.array([3.0, 4.5])], design)
    theirs = alone.latent.predictor(engine.effects, [np.array([3.0, 4.5])], design[:, :2])
    np.testing.assert_allclose(ours, theirs)


def test_two_random_walks_over_one_column(data):
    """Constants cannot wander between them: the evidence is that of the dense normal density."""
    t, X, y = data
    effects = [RW1("t"), RW2("t")]
    engine = engine_for(y, effects, {"t": t}, prior={"name": "known-variance", "variance": 0.25})
    model = engine.prepare(X).model(np.array([True, False, False]), (0, 1))
    psi = [np.array([1.0]), np.array([2.0])]
    value = model.at(np.concatenate(psi)).value + engine.constant
    value -= sum(e.log_hyperprior(p) for e, p in zip(effects, psi, strict=True))
    covariance = engine.unit**2 * dense_covariance(engine.effects, psi)
    expected = dense_log_evidence(y, X[:, :1], covariance, 0.25)
    assert value == pytest.approx(expected, abs=1e-4)


def test_the_unit_of_the_positions_of_a_smooth_curve_does_not_matter(data):
    t, X, y = data
    values = [
        engine_for(y, [RW2("t")], {"t": unit * t})
        .prepare(X)
        .evaluate(np.array([True, False, False, True]))[0]
        for unit in (1.0, 1e-4, 1e5)
    ]
    np.testing.assert_allclose(values, values[0], atol=1e-4)


def test_unknown_precision_of_the_slopes_lies_between_known_ones(data, rng):
    """The paper's prior of Example 7 is a mixture of normal ones."""
    t, X, eta = data
    y, _ = draw(rng, "poisson", eta)
    mask = np.array([True, False, False, True])

    def value(prior):
        engine = engine_for(y, [RW1("t")], {"t": t}, family="poisson", prior=prior)
        return engine.prepare(X).evaluate(mask)[0]

    known = [value({"name": "normal", "variance": v}) for v in (1e-4, 0.1, 1.0, 1e3)]
    assert min(known) < value("normal-loggamma") < max(known)


def test_posterior_of_a_gaussian_model_against_dense_algebra(data):
    """Means and variances of coefficients and effects, at one value of the hyperparameters."""
    t, X, y = data
    y = y + 0.5 * np.random.default_rng(4).normal(size=y.size)
    effects = [RW1("t"), RandomIntercept("g")]
    places = {"t": t, "g": np.arange(t.size) % 7}
    engine = engine_for(
        y, effects, places, prior={"name": "known-variance", "variance": 0.25}, always=X[:, 1:2]
    )
    population = engine.prepare(X[:, :1])
    fit = population.fit(np.array([True, True, True]))
    latent = fit.latent
    psi = latent.split_psi(engine.effects)
    means, covariances = [], []
    unit = engine.unit
    B = np.column_stack([np.ones(t.size), X[:, 1], X[:, 0]])
    for point in range(latent.shares.size):
        K = [
            unit**2 * dense_covariance([b], [p[point]])
            for b, p in zip(engine.effects, psi, strict=True)
        ]
        V = sum(K) + 0.25 * np.eye(t.size)
        S = np.linalg.inv(B.T @ np.linalg.solve(V, B))
        beta = S @ B.T @ np.linalg.solve(V, y)
        A = K[0] @ np.linalg.inv(V)
        means.append(np.concatenate([beta, A @ (y - B @ beta)]))
        D = A @ B
        covariances.append(
            np.concatenate([np.diag(S), np.diag(K[0] - A @ K[0]) + np.diag(D @ S @ D.T)])
        )
    mean = latent.shares @ np.array(means)
    variance = latent.shares @ (np.array(covariances) + (np.array(means) - mean) ** 2)
    found, spread = latent.effect(0)
    np.testing.assert_allclose(fit.coefficients, mean[:3], atol=1e-6)
    np.testing.assert_allclose(found, mean[3:], atol=1e-6)
    np.testing.assert_allclose(spread**2, variance[3:], rtol=1e-5)
    np.testing.assert_allclose(np.diag(fit.covariance) * fit.dispersion, variance[:3], rtol=1e-5)


def test_new_positions_and_groups_against_dense_algebra(data):
    """Interpolated, extrapolated and new groups, for a Gaussian model at one lattice point."""
    t, X, y = data
    y = y + 0.5 * np.random.default_rng(5).normal(size=y.size)
    places = {"t": 2.0 * t, "g": np.arange(t.size) % 5}
    effects = [OU("t"), RandomIntercept("g")]
    engine = engine_for(y, effects, places, prior={"name": "known-variance", "variance": 0.25})
    fit = engine.prepare(X[:, :1]).fit(np.array([True, True, True]))
    latent, unit = fit.latent, engine.unit
    new_t, new_g = np.array([2.0, 3.0, 300.0, 7.0]), np.array([1, 1, 0, 99])
    x = np.array([0.3, -1.0, 0.0, 2.0])
    design = np.column_stack([np.ones(4), x])
    mean, variance = latent.predictor(engine.effects, [new_t, new_g], design)
    all_t, all_g = np.concatenate([places["t"], new_t]), np.concatenate([places["g"], new_g])
    means, variances = [], []
    psi = latent.split_psi(engine.effects)
    n = t.size
    for point in range(latent.shares.size):
        tau, rate = np.exp(psi[0][point])
        K = unit**2 / tau * np.exp(-rate * np.abs(all_t[:, None] - all_t))
        K = K + unit**2 / np.exp(psi[1][point, 0]) * (all_g[:, None] == all_g)
        V = K[:n, :n] + 0.25 * np.eye(n)
        B = np.column_stack([np.ones(n), X[:, 0]])
        S = np.linalg.inv(B.T @ np.linalg.solve(V, B))
        beta = S @ B.T @ np.linalg.solve(V, y)
        A = K[n:, :n] @ np.linalg.inv(V)
        D = design - A @ B
        means.append(design @ beta + A @ (y - B @ beta))
        variances.append(np.diag(K[n:, n:] - A @ K[:n, n:] + D @ S @ D.T))
    expected = latent.shares @ np.array(means)
    spread = latent.shares @ (np.array(variances) + (np.array(means) - expected) ** 2)
    # Weights of a bridge are averaged over the hyperparameters, not the bridges themselves.
    np.testing.assert_allclose(mean, expected, atol=0.02)
    np.testing.assert_allclose(variance, spread, rtol=0.05)
    assert variance[2] > 3.0 * variance[0]


def test_a_constant_response_is_refused():
    with pytest.raises(InvalidDataError, match="same in every row"):
        engine_for(np.full(9, 4.0), [RW1("t")], {"t": np.arange(9.0)}, family="poisson")


def test_an_effect_in_every_row_of_a_gaussian_response_is_refused(rng):
    with pytest.raises(InvalidSettingError, match="error of a Gaussian response itself"):
        engine_for(rng.normal(size=9), [IID()], {})


def test_likelihoods_of_ones_own_are_refused(rng):
    y = rng.normal(size=9)
    observations, prior = Observations(y), resolve_prior("jeffreys")
    base = build_engine(observations, prior, evidence=lambda X, y: 0.0)
    with pytest.raises(InvalidSettingError, match="cannot be combined with evidence"):
        add_latent(base, observations, prior, [], family="gaussian", link=None, always=None)
