"""Laplace evidence of joint likelihoods against independent numbers, and the search's expansion."""

import numpy as np
import pytest
import scipy.integrate
from tests.unit.evidence.joint.survival_data import simulate

from dbrm._kernels.bits import unpack_index
from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.evidence import Jeffreys, Observations, build_engine, find_family, resolve_prior
from dbrm.status import Status

FAMILIES = ("cox", "weibull")


def independent_laplace(family, columns, seen, log_prior):
    """Laplace's method with derivatives by differences and a general optimiser."""
    import scipy.optimize

    likelihood = find_family(family).bind(seen)
    a = len(likelihood.shift)

    def loss(theta):
        eta = (columns @ theta[a:])[None]
        return -likelihood.at(theta[:a], eta).value - log_prior(theta[a:])

    start = np.concatenate([likelihood.start(), np.zeros(columns.shape[1])])
    found = scipy.optimize.minimize(
        loss,
        start,
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-13, "maxiter": 40_000, "maxfev": 40_000},
    )
    mode, step, unit = found.x, 1e-4, np.eye(start.size)
    hessian = np.array(
        [
            [
                (
                    loss(mode + step * (e + f))
                    - loss(mode + step * (e - f))
                    - loss(mode - step * (e - f))
                    + loss(mode - step * (e + f))
                )
                / (4 * step**2)
                for e in unit
            ]
            for f in unit
        ]
    )
    return -found.fun + 0.5 * start.size * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(hessian)[1]


@pytest.mark.parametrize("family", FAMILIES)
def test_normal_prior_agrees_with_an_independent_laplace(family, rng):
    columns, seen = simulate(rng, n=60, strata=family == "cox")
    columns, variance = columns[:, :2], 2.0

    def log_prior(beta):
        return -0.5 * beta @ beta / variance - beta.size / 2 * np.log(2 * np.pi * variance)

    engine = build_engine(seen, resolve_prior("normal", variance=variance), family=family)
    other = independent_laplace(family, columns, seen, log_prior)
    assert engine.log_evidence(columns)[0] == pytest.approx(other, abs=2e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_normal_prior_agrees_with_numerical_integration(family, rng):
    """With forty events Laplace's error is below 0.02 nats, below 0.1 with three parameters."""
    columns, seen = simulate(rng, n=70, strata=False)
    columns, variance = columns[:, :1], 2.0
    engine = build_engine(seen, resolve_prior("normal", variance=variance), family=family)
    fit = engine.fit(columns)
    likelihood = find_family(family).bind(seen)
    a = len(likelihood.shift)
    mode = np.concatenate([fit.joint.ancillary, fit.joint.coefficients.ravel()])
    root = np.linalg.cholesky(fit.joint.covariance)

    def density(*point):
        theta = mode + root @ np.array(point)
        value = likelihood.at(theta[:a], columns.T * theta[a]).value
        value -= 0.5 * theta[a] ** 2 / variance + 0.5 * np.log(2 * np.pi * variance)
        return np.exp(value - fit.log_likelihood)

    if a == 0:
        mass = scipy.integrate.quad(density, -8, 8, epsabs=1e-10)[0]
    else:
        nodes, weights = np.polynomial.hermite_e.hermegauss(25)
        points = np.array(np.meshgrid(*[nodes] * 3)).reshape(3, -1).T
        each = np.prod(np.array(np.meshgrid(*[weights] * 3)).reshape(3, -1), axis=0)
        values = np.array([density(*p) * np.exp(0.5 * p @ p) for p in points])
        mass = float(each @ values)
    integral = np.log(mass) + fit.log_likelihood + np.log(np.diag(root)).sum()
    assert engine.log_evidence(columns)[0] == pytest.approx(
        integral, abs=0.02 if family == "cox" else 0.1
    )


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("constant", ["paper", "unit_information", "none"])
def test_jeffreys_is_the_likelihood_and_a_constant_for_each_parameter(family, constant, rng):
    columns, seen = simulate(rng, strata=family == "cox")
    engine = build_engine(seen, Jeffreys(constant=constant), family=family)
    fit = engine.fit(columns)
    n_parameters = 3 + len(find_family(family).bind(seen).shift)
    each = {"paper": 2 * np.pi, "unit_information": 2 * np.pi / seen.event.sum(), "none": 1.0}
    expected = fit.log_likelihood + 0.5 * n_parameters * np.log(each[constant])
    assert engine.log_evidence(columns)[0] == pytest.approx(expected)
    assert fit.log_evidence == pytest.approx(expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_g_prior_is_a_normal_prior_with_the_information_as_precision(family, rng):
    """Against its formula: the Wald statistic beside flat ancillary parameters."""
    columns, seen = simulate(rng, strata=family == "cox")
    g, n = seen.event.sum(), len(find_family(family).bind(seen).shift)
    engine = build_engine(seen, resolve_prior("g-prior", g=float(g)), family=family)
    fit = build_engine(seen, Jeffreys(), family=family).fit(columns)
    beta = fit.joint.coefficients.ravel()
    inner = np.linalg.inv(fit.joint.covariance[n:, n:])
    information = np.linalg.inv(fit.joint.covariance)
    # The ancillary part at the maximum, of columns with mean zero: invariant under the shift.
    flat = 0.5 * n * np.log(2 * np.pi)
    centred = columns - columns.mean(axis=0)
    fit_centred = build_engine(seen, Jeffreys(), family=family).fit(centred)
    information = np.linalg.inv(fit_centred.joint.covariance)
    flat -= 0.5 * np.linalg.slogdet(information[:n, :n])[1] if n else 0.0
    expected = fit.log_likelihood + flat - 1.5 * np.log1p(g) - 0.5 * (beta @ inner @ beta) / (1 + g)
    assert engine.log_evidence(columns)[0] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
def test_rows_in_another_order_give_the_same(family, rng):
    columns, seen = simulate(rng, strata=family == "cox")
    order = rng.permutation(len(columns))
    moved = Observations(**{name: column[order] for name, column in seen.given.items()})
    one = build_engine(seen, Jeffreys(), family=family).fit(columns)
    two = build_engine(moved, Jeffreys(), family=family).fit(columns[order])
    assert one.log_evidence == pytest.approx(two.log_evidence, rel=1e-13)
    np.testing.assert_allclose(one.coefficients, two.coefficients, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("prior", ["jeffreys", "g-prior", "normal"])
def test_expansion_is_exact_at_its_centre_and_ranks_the_models(family, prior, rng):
    columns, seen = simulate(rng, n=300, strata=family == "cox")
    columns = np.column_stack([columns, rng.normal(size=(300, 3))])
    population = build_engine(seen, resolve_prior(prior), family=family).prepare(columns)
    masks = unpack_index(np.arange(64), 6)
    exact, statuses = population.log_evidence(masks)
    rough = population.approximate_all(np.ones(6, dtype=bool), 6)
    assert not statuses.any()
    near = exact > exact.max() - 5.0
    assert np.std((exact - rough)[near]) < 0.25
    assert np.argmax(rough) == np.argmax(exact)


@pytest.mark.parametrize("family", FAMILIES)
def test_values_do_not_depend_on_the_population(family, rng):
    columns, seen = simulate(rng, strata=family == "cox")
    engine = build_engine(seen, Jeffreys(), family=family)
    alone, _ = engine.log_evidence(columns[:, :1])
    beside, _ = engine.prepare(columns).log_evidence(np.array([[True, False, False]]))
    assert beside[0] == pytest.approx(alone, abs=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_always_columns_and_dependent_columns(family, rng):
    columns, seen = simulate(rng, strata=family == "cox")
    whole = build_engine(seen, Jeffreys(), family=family)
    with_always = build_engine(seen, Jeffreys(), family=family, always=columns[:, :1])
    assert with_always.log_evidence(columns[:, 1:])[0] == pytest.approx(
        whole.log_evidence(columns)[0]
    )
    np.testing.assert_allclose(
        with_always.fit(columns[:, 1:]).coefficients, whole.fit(columns).coefficients, rtol=1e-7
    )
    twice = np.column_stack([columns[:, 0], 2.0 * columns[:, 0] + 1.0])
    assert whole.log_evidence(twice) == (-np.inf, Status.RANK_DEFICIENT)


def test_a_column_that_orders_the_times_is_separated(rng):
    time = np.arange(1.0, 21.0)
    engine = build_engine(Observations(time, event=np.ones(20)), Jeffreys(), family="cox")
    value, status = engine.log_evidence(-time[:, None])
    assert status is Status.SEPARATED
    # The likelihood tends to one.
    assert value == pytest.approx(0.5 * np.log(2 * np.pi), abs=1e-6)
    fit = engine.fit(-time[:, None])
    assert fit.status is Status.SEPARATED
    # What predictions use is finite and uncertain.
    assert 0.0 < fit.coefficients[1] < 10.0
    assert fit.covariance[1, 1] > 0.01 * fit.coefficients[1] ** 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"response": np.array([1.0, -1.0, 2.0])}, r"must be positive; got y\[1\]=-1.0"),
        ({"event": np.array([1.0, 2.0, 0.0])}, r"0 \(censored\) or 1 \(seen\); got event\[1\]=2.0"),
        ({"event": np.array([1.0, 2.0, 1.0])}, r"pass event=event - 1\)"),
        ({"event": np.zeros(3)}, "needs at least one event"),
        ({"entry": np.array([0.0, 5.0, 0.0])}, r"entry must be before the time; got entry\[1\]"),
        ({"entry": np.array([0.0, -0.5, 0.0])}, "entry must not be negative"),
        ({"trials": np.ones(3)}, "has no trials"),
    ],
)
def test_refuses_what_are_no_survival_times(change, message):
    usual = {"response": np.array([1.0, 2.0, 3.0]), "event": np.array([1.0, 1.0, 0.0])}
    with pytest.raises(InvalidDataError, match=message):
        build_engine(Observations(**(usual | change)), Jeffreys(), family="cox")


def test_refuses_a_link_and_priors_that_need_other_engines(rng):
    columns, seen = simulate(rng)
    with pytest.raises(InvalidSettingError, match="has no other link"):
        build_engine(seen, Jeffreys(), family="cox", link="log")
    engine = build_engine(seen, resolve_prior("normal-loggamma"), family="cox")
    with pytest.raises(InvalidSettingError, match="Try prior='normal'"):
        engine.prepare(columns)


@pytest.mark.parametrize("family", FAMILIES)
def test_score_test_finds_the_column_that_is_missing(family, rng):
    columns, seen = simulate(rng, n=300, strata=family == "cox")
    columns = np.column_stack([columns, rng.normal(size=(300, 3))])
    engine = build_engine(seen, Jeffreys(constant="unit_information"), family=family)
    test = engine.score_test(columns[:, 1:2])
    strength = np.abs(test.residual @ (columns - columns.mean(axis=0)))
    assert np.argmax(strength) == 0
    share = strength[0] ** 2 / (test.residual @ test.residual) / 300
    gain = engine.log_evidence(columns[:, :2])[0] - engine.log_evidence(columns[:, 1:2])[0]
    assert float(test.gain(np.array([share]))[0]) == pytest.approx(gain, rel=0.4)
