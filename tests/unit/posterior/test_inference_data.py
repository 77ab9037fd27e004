"""Tests of `Posterior.to_arviz` and `posterior.checks.loo`."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dbrm
from dbrm.errors import InvalidSettingError

arviz = pytest.importorskip("arviz", reason="arviz is not installed")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c d"])
    return X, 1.0 + 2.0 * X["a"] + 0.3 * X["c d"] + rng.normal(size=60)


@pytest.fixture(scope="module")
def posterior(data):
    return dbrm.enumerate_models(*data)


def test_draws_are_those_of_the_averaged_coefficients(posterior):
    """Means of 8000 draws within six standard errors of the table: one alarm in 10**8."""
    found = posterior.to_arviz(draws=8000)["posterior"]
    table = posterior.coefficients().set_index("term")
    for term in ("a", "b", "c d"):
        spelled = f"`{term}`" if " " in term else term
        draws = found["coefficient"].sel(term=spelled).to_numpy().ravel()
        row = table.loc[spelled]
        assert abs(draws.mean() - row["estimate"]) < 6 * draws.std() / np.sqrt(draws.size)
        share = float(found["included"].sel(term=spelled).mean())
        assert share == pytest.approx(row["inclusion"], abs=1e-3)
        lower, upper = np.quantile(draws, [0.025, 0.975])
        np.testing.assert_allclose([lower, upper], [row["lower"], row["upper"]], atol=0.06)
    assert found["intercept"].shape == (4, 2000)


def test_groups_for_arviz(posterior, data):
    found = posterior.to_arviz(draws=40)
    np.testing.assert_array_equal(found["observed_data"]["y"], data[1])
    assert found["log_likelihood"]["y"].shape == (4, 10, 60)
    assert found["posterior_predictive"]["y"].shape == (4, 10, 60)


def test_too_few_draws_are_refused(posterior):
    with pytest.raises(InvalidSettingError, match="draws must be at least 16; got draws=2"):
        posterior.to_arviz(draws=2)


@pytest.mark.slow
def test_leave_one_out_is_that_of_refits(posterior, data):
    """Against the predictive density of each row from a fit to all others."""
    X, y = data
    found = posterior.checks.loo(top=3, draws=4000)
    for row in found.itertuples():
        columns = [name.strip("`") for name in row.features]
        exact = sum(density_without(X[columns], y, i) for i in range(len(y)))
        assert row.elpd_loo == pytest.approx(exact, abs=0.15)
        assert row.elpd_waic == pytest.approx(exact, abs=0.4)
        assert row.pareto_k < 0.7
    assert found["probability"].tolist() == posterior.models["probability"].head(3).tolist()
    worse = sum(density_without(X[["b"]], y, i) for i in range(len(y)))
    assert worse < found["elpd_loo"].min() - 5


def density_without(X, y, i):
    rest = np.delete(np.arange(len(y)), i)
    columns = list(X.columns)
    fit = dbrm.enumerate_models(X.iloc[rest], y.iloc[rest], always=columns[:-1])
    model = fit._fit(np.arange(1), np.zeros(0, dtype=bool), 1.0).fit
    x = np.concatenate([[1.0], X.iloc[i]])
    scale = np.sqrt(model.dispersion * (1 + x @ model.covariance @ x))
    return stats.t.logpdf(y.iloc[i], model.degrees_of_freedom, x @ model.coefficients, scale)


@pytest.mark.parametrize("family", ["binomial", "poisson", "gamma"])
def test_every_family_has_a_log_likelihood(family, rng):
    x = rng.normal(size=(50, 1))
    y = {
        "binomial": lambda: (rng.random(50) < 0.5).astype(float),
        "poisson": lambda: rng.poisson(3.0, 50).astype(float),
        "gamma": lambda: rng.gamma(2.0, size=50),
    }[family]()
    posterior = dbrm.enumerate_models(x, y, family=family)
    found = posterior.checks.loo(top=1, draws=300).iloc[0]
    fit = posterior.best_model.fit
    assert fit.log_likelihood - 6 < found["elpd_loo"] < fit.log_likelihood
    assert np.isfinite(posterior.to_arviz(draws=16)["log_likelihood"]["y"]).all()


def test_latent_effects_are_refused_rather_than_forgotten(rng):
    x = pd.DataFrame({"a": rng.normal(size=40), "site": np.repeat(list("abcdefgh"), 5)})
    y = x["a"] + np.repeat(rng.normal(size=8), 5) + 0.1 * rng.normal(size=40)
    latent = [dbrm.latent.IID("site")]
    posterior = dbrm.fit(x, y, latent=latent, max_depth=0, sweep=0, n_chains=1, n_populations=1)
    with pytest.raises(InvalidSettingError, match="do not hold latent effects yet"):
        posterior.to_arviz()
    with pytest.raises(InvalidSettingError, match="do not hold latent effects yet"):
        posterior.checks.loo()
