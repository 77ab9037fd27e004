"""Tests of predictions on the scale of the root of the response."""

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.posterior.draws import draw_models

QUICK = {"n_chains": 1, "n_populations": 2, "random_state": 1}


def growing(draw, n):
    """Errors in proportion to the mean; levels with few rows each."""
    X = pd.DataFrame(draw.normal(size=(n, 4)), columns=list("abcd"))
    X["site"] = draw.choice([f"s{k}" for k in range(12)], n)
    effect = dict(zip([f"s{k}" for k in range(12)], np.linspace(-1.0, 1.0, 12), strict=True))
    root = 4.0 + X["a"] + 0.4 * X["b"] - 0.3 * X["c"] + 0.6 * X["site"].map(effect)
    return X, (root + 0.7 * draw.normal(size=n)).to_numpy() ** 2


@pytest.fixture(scope="module")
def fitted():
    X, y = growing(np.random.default_rng(1), 160)
    return dbrm.fit(X, y, **QUICK), X, y


def test_intervals_are_wider_where_the_response_is_larger(fitted):
    """Of 2,000 new rows 95 % are covered, among the largest and the smallest predictions, too.

    Each bound is five standard errors of a share of 400 rows wide; without roots one fails.
    """
    posterior, X, y = fitted
    assert posterior.root_scale > 0.9
    new, truth = growing(np.random.default_rng(2), 2_000)
    alone = dbrm.fit(X, y, remainder=False, **QUICK)
    order = np.argsort(posterior.predict(new))
    shares = []
    for found in (posterior, alone):
        interval = found.predict_interval(new)
        inside = (interval[:, 0] <= truth) & (truth <= interval[:, 1])
        shares.append([inside[order[:400]].mean(), inside[order[-400:]].mean()])
    assert np.all(np.abs(np.array(shares[0]) - 0.95) < 0.055)
    assert np.any(np.abs(np.array(shares[1]) - 0.95) > 0.03)
    errors = [np.mean((truth - found.predict(new)) ** 2) for found in (posterior, alone)]
    assert errors[0] < 0.95 * errors[1]


def test_the_mean_keeps_to_its_limit_where_little_is_known(fitted):
    """What is uncertain about a root of 9 makes its mean square at most 100, the limit."""
    averaged = fitted[0]._predictive
    size = (len(averaged.models), 1)
    far = averaged._within(np.full(size, 9.0), np.full(size, 1e6), np.full(size, 10.0))
    assert averaged.squares.any()
    # Of the t distribution of the mean, whose squared scale is dispersion times leverage.
    dispersion = np.array([fit.dispersion for fit in averaged.fits])
    df = np.array([fit.degrees_of_freedom for fit in averaged.fits])
    square = 81.0 + dispersion * far[:, 0] * df / (df - 2.0)
    np.testing.assert_allclose(square[averaged.squares], 100.0)
    np.testing.assert_array_equal(far[~averaged.squares], 1e6)
    near = averaged._within(np.full(size, 9.0), np.full(size, 1e-3), np.full(size, 10.0))
    np.testing.assert_array_equal(near, 1e-3)


def test_errors_that_do_not_grow_need_no_root():
    draw = np.random.default_rng(3)
    X, _ = growing(draw, 160)
    y = 20.0 + 4.0 * X["a"] + X["b"] - X["c"] + 3.0 * draw.normal(size=160)
    posterior = dbrm.fit(X, y - y.min(), **QUICK)
    assert posterior.root_scale < 0.1


def test_a_file_predicts_the_same(fitted, tmp_path):
    posterior, X, _ = fitted
    posterior.save(tmp_path / "run.dbrm")
    again = dbrm.load(tmp_path / "run.dbrm")
    assert again.root_scale == posterior.root_scale
    np.testing.assert_array_equal(again.predict(X), posterior.predict(X))
    np.testing.assert_array_equal(again.predict_interval(X), posterior.predict_interval(X))


def test_an_offset_of_new_rows_is_one_of_the_response(fitted):
    posterior, X, _ = fitted
    before, after = (posterior.predict(X[:5], offset=np.full(5, move)) for move in (0.0, 3.0))
    np.testing.assert_allclose(after - before, 3.0, rtol=1e-9)


def test_draws_of_coefficients_agree_with_the_mixture(fitted, rng):
    """Means of 4,000 draws, within six of their standard errors; densities average to it."""
    posterior, X, y = fitted
    rows = posterior.rows(X[:20], y[:20])
    drawn = draw_models(rng, posterior._predictive, 4_000)
    means, (block,) = drawn.mean(rows.table), posterior._predictive.blocks(rows.table)
    error = means.std(axis=0) / np.sqrt(4_000)
    assert np.all(np.abs(means.mean(axis=0) - block.mean()) < 6 * error + 0.02 * block.mean())
    density = np.exp(drawn.log_density(rows)).mean(axis=0)
    np.testing.assert_allclose(np.log(density), block.log_density(y[:20]), atol=0.1)
    responses = drawn.respond(rng, rows)
    assert np.all(responses >= 0.0)
    spread = responses.std(axis=0) / block.standard_deviation()
    np.testing.assert_allclose(spread, 1.0, atol=0.1)


def test_curves_and_contributions_are_of_the_response(fitted):
    posterior, X, _ = fitted
    curve = posterior.effects.partial_dependence("a", grid=5)
    assert np.all((curve["lower"] < curve["mean"]) & (curve["mean"] < curve["upper"]))
    assert np.all(np.diff(curve["mean"]) > 0.0)
    # To first order about the average row, which the predictions near it are.
    parts = posterior.effects.contributions(X)
    predicted = posterior.predict(X)
    near = np.argsort(np.abs(predicted - np.median(predicted)))[:20]
    total = parts.to_numpy().sum(axis=1)
    assert np.abs(total[near] - predicted[near]).mean() < 0.15 * predicted.std()
    table = posterior.covariates
    assert table["covariate"][0] == "a"
    assert table["direction"][0] == "increasing"


def test_coefficients_for_arviz_are_those_of_the_response(fitted):
    """Those of the root, of another unit, are not a number; the features are what they are."""
    posterior, X, y = fitted
    data = posterior.to_arviz(X, y, draws=200, random_state=1)
    found = {name: np.asarray(data["posterior"][name]) for name in ("coefficient", "included")}
    of_root = np.isnan(np.asarray(data["posterior"]["dispersion"]))
    assert of_root.mean() == pytest.approx(posterior.root_scale, abs=0.1)
    assert np.all(np.isnan(found["coefficient"]) == of_root[..., None])
    outside = (found["included"] == 0) & ~of_root[..., None]
    assert np.all(found["coefficient"][outside] == 0.0)
    assert found["included"].sum(axis=-1).mean() > 2.0
    assert np.all(np.isfinite(np.asarray(data["log_likelihood"]["y"])))


def test_densities_of_draws_are_those_of_the_mixture_at_the_origin(fitted):
    """Zero is infinitely dense for a square; what is below it is impossible, in both.

    How near to zero the density goes on is in errors of the response, without and with the
    uncertainty of its mean: a tenth of difference.
    """
    posterior, X, _ = fitted
    ends = np.array([0.0, 1e-12, -1.0])
    lowest = X.iloc[np.full(3, np.argmin(posterior.predict(X)))]
    rows = posterior.rows(lowest, ends)
    drawn = draw_models(np.random.default_rng(1), posterior._predictive, 2_000)
    (block,) = posterior._predictive.blocks(rows.table)
    with np.errstate(over="ignore"):
        density = np.exp(drawn.log_density(rows)).mean(axis=0)
    expected = np.exp(block.log_density(ends))
    np.testing.assert_allclose(density, expected, rtol=0.25, atol=1e-6)
    assert np.all(expected[:2] > 1e-4)
    assert expected[2] < 1e-6
