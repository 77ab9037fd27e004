"""Random slopes and curves against statsmodels and dense integration."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from tests.unit.evidence.latent.models import conditional

from dbrm.errors import InvalidDataError, InvalidSettingError, UnknownNameError
from dbrm.evidence import Observations, add_latent, bind, build_engine, columns_of, resolve_prior
from dbrm.evidence.hyper_integration import find_mode
from dbrm.evidence.latent import RandomIntercept, RandomSlope, Smooth, parse_effects
from dbrm.evidence.nested_laplace import Noise


def simulate(seed=3, deviations=(0.8, 0.5), correlation=0.5, n_groups=15, n_each=8):
    rng = np.random.default_rng(seed)
    g, x = np.repeat(np.arange(n_groups), n_each), rng.normal(2.0, 1.5, n_groups * n_each)
    spread = np.diag(deviations)
    covariance = spread @ np.array([[1.0, correlation], [correlation, 1.0]]) @ spread
    a, b = rng.multivariate_normal([0.0, 0.0], covariance, n_groups).T
    y = 1.0 + 0.5 * x + a[g] + b[g] * (x - 2.0) + 0.5 * rng.normal(size=g.size)
    return pd.DataFrame({"y": y, "x": x, "g": g})


def fit_mixed(data, formula):
    model = smf.mixedlm("y ~ x", data, groups=data["g"], re_formula=formula)
    return model.fit(reml=False, method="lbfgs")


@pytest.mark.parametrize("correlated", [True, False])
def test_likelihood_and_predicted_effects_equal_those_of_statsmodels(correlated):
    """At the estimates of MixedLM: log likelihood to 1e-8, coefficients and BLUPs to 1e-6."""
    data = simulate()
    effect = RandomSlope("g", "x", correlated=correlated)
    bound = bind(effect, (data["g"].to_numpy(), data["x"].to_numpy()), len(data))
    data["z"] = bound.standardise(data["x"])
    mixed = fit_mixed(data, "z" if correlated else "0 + z")
    covariance = mixed.cov_re.to_numpy()
    psi = -np.log(np.diag(covariance))
    if correlated:
        rho = covariance[0, 1] * np.exp(0.5 * psi.sum())
        psi = np.append(psi, np.log((1 + rho) / (1 - rho)))
    model = conditional(
        data["y"].to_numpy(),
        [effect],
        {name: data[name].to_numpy() for name in "gx"},
        data[["x"]].to_numpy(),
        noise=Noise(-np.log(mixed.scale)),
    )
    point = model.at(psi)
    value = point.value - effect.log_hyperprior(psi)
    assert value == pytest.approx(mixed.llf, abs=1e-8)
    np.testing.assert_allclose(point.beta, mixed.fe_params, atol=1e-6)
    blups = np.array([mixed.random_effects[group] for group in range(15)])
    found = np.empty(bound.size)
    found[:] = point.delta[model.layout.slots[0]]
    np.testing.assert_allclose(found.reshape(15, -1), blups, atol=1e-6)


def engine_of(data, effect):
    columns = {name: data[name].to_numpy() for name in data}
    bound = bind(effect, columns_of(effect, columns), len(data))
    seen, prior = Observations(columns["y"]), resolve_prior("jeffreys")
    plain = build_engine(seen, prior)
    return add_latent(plain, seen, prior, [bound], family="gaussian", link=None, always=None)


def integrate_densely(engine, columns, step=0.9, drop=9.0):
    """A fine lattice over all hyperparameters, far into the tails."""
    model = engine.prepare(columns).model(np.arange(columns.shape[1]), (0,))

    def evaluate(theta, near):
        return model.at(theta, (near.delta, near.beta))

    top, scales = find_mode(evaluate, engine.start(model, (0,)), 0.02)
    axes, d = step * scales, top.theta.size
    found, front = {(0,) * d: top}, [(0,) * d]
    while front:
        following = []
        for place in front:
            if found[place].value < top.value - drop:
                continue
            for i, sign in [(i, sign) for i in range(d) for sign in (-1, 1)]:
                near = (*place[:i], place[i] + sign, *place[i + 1 :])
                if near not in found:
                    theta = top.theta + axes @ np.array(near)
                    found[near] = evaluate(theta, found[place])
                    following.append(near)
        front = following
    values = np.array([point.value for point in found.values()])
    return np.logaddexp.reduce(values) + np.linalg.slogdet(axes)[1] + engine.constant


@pytest.mark.parametrize(
    ("correlated", "tolerance"), [(False, 0.02), pytest.param(True, 0.7, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("deviations", [(0.8, 0.5), (0.5, 0.05)])
def test_evidence_equals_dense_integration(correlated, tolerance, deviations):
    """Two hyperparameters by a lattice, four by split normals, which miss up to 0.6 nats.

    The second case has several modes: slopes that are next to nothing beside intercepts.
    """
    data = simulate(deviations=deviations)
    engine = engine_of(data, RandomSlope("g", "x", correlated=correlated))
    columns = data[["x"]].to_numpy()
    value, _ = engine.log_evidence_with(columns, np.array([True]))
    assert value == pytest.approx(integrate_densely(engine, columns), abs=tolerance)


def test_slopes_in_any_unit_of_the_covariate_have_the_same_evidence():
    data = simulate()
    effect = RandomSlope("g", "x")
    values = []
    for unit in (1.0, 1e-4, 1e5):
        scaled = data.assign(x=unit * data["x"])
        engine = engine_of(scaled, effect)
        values.append(engine.log_evidence_with(scaled[["x"]].to_numpy(), np.array([True]))[0])
    np.testing.assert_allclose(values, values[0], rtol=1e-8)


def test_a_curve_with_a_knot_at_every_value_is_a_random_walk():
    rng = np.random.default_rng(1)
    x = rng.choice(np.sort(rng.normal(size=12)), 60)
    data = pd.DataFrame({"x": x, "y": np.sin(2 * x) + 0.2 * rng.normal(size=60)})
    curve = engine_of(data, Smooth("x"))
    walk = engine_of(data, parse_effects("RW2(x)")[0])
    columns, every = data[["x"]].to_numpy(), np.array([True])
    found = curve.log_evidence_with(columns, every)[0]
    assert found == pytest.approx(walk.log_evidence_with(columns, every)[0], abs=1e-6)


@pytest.mark.parametrize(
    ("text", "effects"),
    [
        ("(1 | site)", [RandomIntercept("site")]),
        ("(dose|site)", [RandomSlope("site", "dose")]),
        ("(1 + dose | site)", [RandomSlope("site", "dose")]),
        ("(0 + dose | site)", [RandomSlope("site", "dose", correlated=False)]),
        ("(dose - 1 | site)", [RandomSlope("site", "dose", correlated=False)]),
        (
            "(dose || `the site`)",
            [RandomIntercept("the site"), RandomSlope("the site", "dose", correlated=False)],
        ),
        ("RandomIntercept(g)", [RandomIntercept("g")]),
        ("RandomSlope(site, dose)", [RandomSlope("site", "dose")]),
        ("RandomSlope(site, 0 + dose)", [RandomSlope("site", "dose", correlated=False)]),
        ("RandomSlope(site, dose, correlated=False)", [RandomSlope("site", "dose", False)]),
        ("Smooth(age, n_knots=12)", [Smooth("age", 12)]),
    ],
)
def test_effects_are_read_from_text(text, effects):
    assert parse_effects(text) == effects
    assert [parse_effects(effect.name)[0].name for effect in effects] == [e.name for e in effects]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("site", InvalidSettingError, "texts such as 'RandomIntercept"),
        ("RandomInterept(g)", UnknownNameError, "did you mean 'RandomIntercept'"),
        ("RandomSlope(site)", InvalidSettingError, r"write RandomSlope\(site, dose\)"),
        ("(a + b | site)", InvalidSettingError, r"one by one: \(a \|\| site\) \+ \(b \|\| site\)"),
        ("(dose | site:plot)", InvalidSettingError, "must be one column; got 'site:plot'"),
        ("(0 | site)", InvalidSettingError, "is not understood"),
        ("RW1(t, order=3)", InvalidSettingError, "is not understood"),
    ],
)
def test_a_text_that_is_no_effect_is_refused(text, error, message):
    with pytest.raises(error, match=message):
        parse_effects(text)


@pytest.mark.parametrize(
    ("covariate", "message"),
    [
        (np.array(["a", "b", "a", "b"]), "needs numbers as covariates"),
        (np.array([2.0, 2.0, 2.0, 2.0]), "needs a covariate that varies"),
        (np.array([2.0, np.inf, 2.0, 1.0]), "needs a finite covariate"),
    ],
)
def test_covariates_that_have_no_slope_are_refused(covariate, message):
    with pytest.raises(InvalidDataError, match=message):
        bind(RandomSlope("g", "x"), (np.array([0, 0, 1, 1]), covariate), 4)
