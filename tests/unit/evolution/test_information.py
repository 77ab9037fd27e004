"""Tests of `dbrm.evolution.information`: features of one row are refused."""

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.evidence import GaussianEngine, Jeffreys
from dbrm.evolution.information import InformationRule, effective_rows
from dbrm.features import evaluate, parse_feature
from dbrm.status import Status


def judge(text, table, **response):
    cache = {}
    feature = parse_feature(text)
    evaluate([feature], table, cache)
    n_rows = len(next(iter(table.values())))
    return InformationRule(np.ones(n_rows), **response).status(feature, cache)


@pytest.mark.parametrize("k", [1, 2, 7])
def test_a_dummy_of_k_rows_has_about_k_effective_ones(k):
    dummy = np.arange(10_000) < k
    assert effective_rows(dummy.astype(float), np.ones(10_000)) == pytest.approx(k, rel=0.01)


@pytest.mark.parametrize("scale", [1e-170, 1.0, 1e140])
def test_effective_rows_do_not_depend_on_units(rng, scale):
    x = rng.normal(size=300)
    expected = 300 / np.mean(((x - x.mean()) / x.std()) ** 4)
    assert effective_rows(scale * x, np.ones(300)) == pytest.approx(expected, rel=1e-9)


def test_a_weight_is_as_good_as_rows(rng):
    x, counts = rng.normal(size=20), rng.integers(1, 5, 20)
    rows = effective_rows(np.repeat(x, counts), np.ones(counts.sum()))
    assert effective_rows(x, counts.astype(float)) == pytest.approx(rows)


@pytest.fixture(scope="module")
def table():
    draw = np.random.default_rng(0)
    x = draw.uniform(20.0, 1000.0, 200)
    x[0] = 4.0
    rare = np.zeros(200)
    rare[:12] = 1.0
    return {
        "x": x,
        "z": draw.normal(size=200),
        "a": rare,
        "c": (np.arange(200) % 5 == 0).astype(float),
        "b": rare[::-1].copy() + (np.arange(200) < 2),
    }


@pytest.mark.parametrize("text", ["erf(x)", "sigmoid(x)", "tanh(x)", "z*tanh(x)", "sin(erf(x))"])
def test_saturated_functions_are_refused(table, text):
    assert judge(text, table) in (Status.SATURATED, Status.FEW_ROWS)


def test_a_spike_is_refused(table):
    assert judge("gauss(10.0 - 0.02*x)", table) is Status.OK
    assert judge("gauss(500.0 - 1.0*x)", table) is Status.FEW_ROWS


def test_a_product_of_dummies_that_meet_in_two_rows_is_refused(table):
    assert judge("a*b", table) is Status.FEW_ROWS


@pytest.mark.parametrize(
    "text", ["x*x", "sin(z)", "troot(x)", "log_abs(x)", "z*z", "c*z", "tanh(z)"]
)
def test_ordinary_features_pass(table, text):
    assert judge(text, table) is Status.OK


def test_waves_shorter_than_the_steps_between_rows_are_refused(table):
    """Ten waves over 200 rows can be seen; 156 waves are random numbers."""
    assert judge("sin{0.06*x}", table) is Status.OK
    assert judge("sin(x)", table) is Status.ALIASED
    assert judge("z*cos{1.0*x + 2.0*z}", table) is Status.ALIASED


def test_one_distant_row_does_not_make_a_wave_random(table):
    distant = {"x": np.append(table["z"], 1e4)}
    assert judge("sin(x)", distant) is Status.OK


@pytest.mark.parametrize("text", ["x*x", "x*x*x", "troot(x*x*x*x)", "z*z*z*z*z*z"])
def test_long_tails_pass_because_laws_reach_into_them(rng, text):
    """Periods of planets: one is a hundred times the others, and the law needs its square."""
    tail = {"x": np.exp(2.0 * rng.normal(size=200)), "z": np.append(rng.normal(size=199), 6.0)}
    assert effective_rows(tail["x"] ** 3, np.ones(200)) < 3
    assert judge(text, tail) is Status.OK


def test_an_exponential_of_one_row_is_refused_unless_the_response_is_one(rng):
    thin = {"z": np.append(rng.uniform(-1, 1, 199), 60.0)}
    assert judge("exp(z)", thin) is Status.FEW_ROWS
    assert judge("exp(z)", thin, response_is_a_dummy=True) is Status.OK


@pytest.fixture(scope="module")
def sparse():
    """Dummies of so many rows, and a column in which five rows lie apart."""
    draw = np.random.default_rng(1)
    apart = draw.normal(size=200)
    apart[100:105] = 40.0
    dummies = {f"d{k}": (np.arange(200) < k).astype(float) for k in (2, 5, 12, 40)}
    return dummies | {"x": apart, "z": draw.normal(size=200), "w": draw.normal(size=200)}


@pytest.mark.parametrize(("k", "status"), [(5, Status.FEW_ROWS), (12, Status.OK)])
def test_a_bounded_function_needs_eight_rows(sparse, k, status):
    table = sparse | {"x": sparse[f"d{k}"] * (3.0 + 0.1 * sparse["z"])}
    assert effective_rows(np.tanh(table["x"]), np.ones(200)) == pytest.approx(k, rel=0.2)
    assert judge("tanh(x)", table) is status


@pytest.mark.parametrize("text", ["x*most", "x*tanh(z)", "x*z*sin(w)", "z*d12"])
def test_a_product_that_picks_rows_needs_eight_of_them(sparse, text):
    """A few far rows decide, or a slope among a dozen, which has about a third of them."""
    table = sparse | {"most": (np.arange(200) % 16 > 3).astype(float)}
    cache = {}
    evaluate([parse_feature(text)], table, cache)
    column = cache[parse_feature(text).text]
    assert 3 < effective_rows(column, np.ones(200)) < 8
    assert judge(text, table) is Status.FEW_ROWS
    assert judge(text, table, response_has_a_tail=True) is Status.OK


@pytest.mark.parametrize("text", ["x*z", "x*x", "x*exp{0.1*z}", "z*d40", "z*tanh(w)"])
def test_products_that_pick_no_rows_or_enough_pass(sparse, text):
    """Negative control: no bounded or two-valued factor, or rows enough."""
    assert judge(text, sparse) is Status.OK


@pytest.fixture(scope="module")
def windows():
    """A column with a long tail, and positions of which a narrow window holds so many rows."""
    draw = np.random.default_rng(2)
    rows = np.arange(600)
    return {
        "x": draw.exponential(size=600),
        "few": np.where(rows < 40, 0.02 * draw.normal(size=600), 3.0 + draw.random(600)),
        "many": np.where(rows < 200, 0.02 * draw.normal(size=600), 3.0 + draw.random(600)),
    }


@pytest.mark.parametrize("window", ["gauss{{1.0*{}}}", "cos(gauss{{1.0*{}}})", "tanh{{4.0*{}}}"])
def test_what_a_window_adds_to_the_other_factors_needs_sixteen_rows(windows, window):
    """Also where the product itself has many, because it is nearly its other factor."""
    few, many = (f"x*{window.format(name)}" for name in ("few", "many"))
    cache = {}
    evaluate([parse_feature(few)], windows, cache)
    assert effective_rows(cache[parse_feature(few).text], np.ones(600)) > 8
    assert judge(few, windows) is Status.FEW_ROWS
    assert judge(many, windows) is Status.OK


def test_what_a_window_adds_counts_weights_as_rows(rng):
    product, other, counts = rng.normal(size=30), rng.exponential(size=30), rng.integers(1, 9, 30)
    rule = InformationRule(counts.astype(float))
    rows = InformationRule(np.ones(counts.sum()))
    expected = rows._freed(np.repeat(product, counts), np.repeat(other, counts))
    np.testing.assert_allclose(np.repeat(rule._freed(product, other), counts), expected, atol=1e-12)


def test_what_a_window_adds_may_have_as_few_rows_as_the_response(windows):
    assert judge("x*gauss{1.0*few}", windows, response_rows=14.0) is Status.OK


def test_a_bounded_function_without_fitted_numbers_may_add_fewer(windows):
    """Nobody has tried thousands of it: a saturating law is not refused."""
    assert judge("x*gauss(few)", windows) is Status.OK


def test_a_window_that_adds_nothing_to_its_other_factor_is_refused(rng):
    """The product is its other factor but for rounding."""
    table = {"x": rng.exponential(size=300), "z": np.append(np.zeros(290), rng.random(10))}
    assert judge("x*sigmoid{1.0 + 0.01*z}", table) in (Status.FEW_ROWS, Status.SATURATED)


def test_a_response_with_a_tail_lets_five_rows_pass_but_not_two(sparse):
    assert judge("z*d5", sparse) is Status.FEW_ROWS
    assert judge("z*d5", sparse, response_has_a_tail=True) is Status.OK
    assert judge("z*d2", sparse, response_has_a_tail=True) is Status.FEW_ROWS


def test_few_rows_need_a_quarter_of_them():
    assert InformationRule(np.ones(20)).least == 5.0
    assert InformationRule(np.ones(32)).least == InformationRule(np.ones(900)).least == 8.0
    assert InformationRule(np.ones(900), response_has_a_tail=True).least == 3.0


@pytest.mark.parametrize(("n_apart", "tail", "dummy"), [(0, 0, 0), (5, 1, 0), (12, 0, 0)])
def test_the_tail_is_that_of_the_response(rng, n_apart, tail, dummy):
    y = rng.normal(size=200)
    y[:n_apart] = 60.0
    rule = InformationRule.of(GaussianEngine(y, Jeffreys()))
    assert (rule.response_has_a_tail, rule.response_is_a_dummy) == (tail, dummy)


def test_beyond_the_identity_link_a_tail_of_the_response_is_none(rng):
    x = rng.normal(size=(200, 1))
    y = rng.poisson(1.0, size=200)
    y[:5] = 400
    assert effective_rows(y.astype(float), np.ones(200)) < 8
    quick = {"n_chains": 1, "n_populations": 1, "sweep": 0, "random_state": 1}
    engine = dbrm.fit(x, y, family="poisson", transforms=[], **quick)._problem.engine
    assert not InformationRule.of(engine).response_has_a_tail


def test_a_fit_refuses_them_counts_them_and_predicts_sensibly():
    """Raw functions of raw units: 6e9 was predicted for a response below 600."""
    draw = np.random.default_rng(0)
    x = draw.uniform(20, 1000, 200)
    y = 0.5 * x + draw.normal(0, 30, 200)
    x[0], y[0] = 4.0, 600.0
    options = {"n_chains": 1, "n_populations": 2, "random_state": 0}
    posterior = dbrm.fit(pd.DataFrame({"x": x}), y, transforms=["erf", "sigmoid"], **options)
    assert Status.SATURATED.meaning in posterior.record.rejections
    assert np.all(np.abs(posterior.predict(pd.DataFrame({"x": [1.0, 2.0, 3.0, 5.0]}))) < 1000)
