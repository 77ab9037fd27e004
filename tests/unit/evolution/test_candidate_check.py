"""Random candidates after a search: what chains agree on must stand beside them."""

from itertools import combinations

import numpy as np
import pytest

import dbrm
from dbrm.evolution.candidate_check import Candidate, check_candidates
from dbrm.evolution.sweep.products import draw_subsets
from dbrm.features import parse_feature

# Without the sweep, which finds such products itself.
SHORT = {"sweep": 0, "n_populations": 2, "n_chains": 2, "n_jobs": 1, "random_state": 0}
# The null model holds all of the mass of short searches under these priors.
STRICT = SHORT | {"prior": "jeffreys", "penalty": "bic"}


@pytest.fixture(scope="module")
def product():
    """A product of six covariates: parts of it show next to nothing."""
    draw = np.random.default_rng(510)
    values = draw.normal(size=(200, 8))
    table = {f"x{j}": values[:, j] for j in range(8)}
    return table, values[:, :6].prod(axis=1) + 0.5 * draw.normal(size=200)


def test_chains_do_not_agree_on_what_none_looked_beyond(product):
    """All find the null model only; the law is 74 nats better. Under stop="agreement", too."""
    for options in ({}, {"stop": "agreement"}):
        posterior = dbrm.fit(*product, **STRICT | options)
        assert posterior.best_model.features == ()
        assert posterior.diagnostics.captured.min() > 0.999
        candidate = posterior.diagnostics.candidate
        assert candidate.feature == "x0*x1*x2*x3*x4*x5"
        assert candidate.gain > 20
        assert not posterior.diagnostics.agree
        assert "have all missed x0*x1*x2*x3*x4*x5" in posterior.diagnostics.verdict()
        assert posterior.record.ended == ""


def test_the_law_itself_stands(product, rng):
    """Negative control: beside the truth no candidate is a gain."""
    problem = dbrm.fit(*product, **STRICT)._problem
    law = parse_feature("x0*x1*x2*x3*x4*x5")
    assert check_candidates(rng, problem, [law], []).gain <= 1e-9


def test_candidates_with_knots_are_evaluated(product):
    posterior = dbrm.fit(*product, transforms=["step[q0.5]", "sin"], **STRICT)
    assert posterior.diagnostics.candidate.feature == "x0*x1*x2*x3*x4*x5"


def test_a_verdict_survives_saving(product, tmp_path):
    posterior = dbrm.fit(*product, **STRICT)
    posterior.save(tmp_path / "run.dbrm")
    again = dbrm.load(tmp_path / "run.dbrm").diagnostics
    assert again.candidate == posterior.diagnostics.candidate
    assert again.verdict() == posterior.diagnostics.verdict()
    assert "have all missed" in again.verdict()


def test_the_report_says_what_was_missed(product):
    from dbrm.report.findings import find

    (finding,) = [f for f in find(dbrm.fit(*product, **STRICT)) if "missed" in f.title]
    assert finding.level == "bad"
    assert "x0*x1*x2*x3*x4*x5" in finding.text.replace("·", "*").replace(" ", "")


@pytest.fixture(scope="module")
def posed():
    draw = np.random.default_rng(4)
    values = draw.normal(size=(90, 3))
    y = 2 * values[:, 0] * values[:, 1] + values[:, 2] + 0.5 * draw.normal(size=90)
    posterior = dbrm.fit(dict(zip("abc", values.T, strict=True)), y, **SHORT)
    return posterior._problem


@pytest.mark.parametrize(
    ("model", "feature", "exchanged"),
    [([], "a*b", None), (["a*b"], "c", None), (["c", "a*a*b"], "a*b", "a*a*b")],
)
def test_gains_are_differences_of_log_posteriors(posed, rng, model, feature, exchanged):
    """Beside the model, and in the place of a feature."""

    def log_posterior(texts):
        features = [parse_feature(text) for text in texts]
        columns = [f.evaluate(posed.table) for f in features]
        columns = np.column_stack(columns) if columns else np.empty((90, 0))
        prior = sum(posed.model_prior.feature_log_prior(f) for f in features)
        prior += posed.model_prior.size_log_prior(np.array([len(features)])).item()
        return posed.engine.log_evidence(columns)[0] + prior

    better = [*(text for text in model if text != exchanged), feature]
    found = check_candidates(rng, posed, [parse_feature(text) for text in model], [])
    assert found.feature == feature
    assert found.gain == pytest.approx(log_posterior(better) - log_posterior(model), abs=1e-8)


def test_without_engineering_candidates_are_covariates(posed, rng):
    found = check_candidates(rng, posed, [], [], engineered=False)
    assert found.feature == "c"


def test_full_models_only_exchange(posed, rng):
    from dataclasses import replace

    model = [parse_feature("a*b"), parse_feature("c")]
    full = replace(posed, max_model_size=2)
    assert check_candidates(rng, full, model, []).gain <= 1e-9


def test_subsets_are_all_where_they_are_few(rng):
    def drawn(*limits):
        return [tuple(subset) for part in draw_subsets(rng, *limits) for subset in part.tolist()]

    assert drawn(10, 2, 6, 5000) == [
        s for size in range(2, 7) for s in combinations(range(10), size)
    ]
    some = drawn(40, 2, 4, 2000)
    assert len(some) <= 2000
    assert [s for s in some if len(s) == 2] == list(combinations(range(40), 2))
    assert {len(s) for s in some} == {2, 3, 4}
    assert {len(s) for s in drawn(20, 2, 8, 2000)} == set(range(2, 9))
    assert all(len(set(s)) == len(s) and max(s) < 40 for s in some)


def test_the_check_leaves_the_models_alone(product, monkeypatch):
    """It has random numbers of its own."""
    with_check = dbrm.fit(*product, **STRICT)
    monkeypatch.setattr("dbrm.run.runner.check_candidates", lambda *_, **__: Candidate("x", 0.0))
    without = dbrm.fit(*product, **STRICT)
    assert with_check.models.equals(without.models)
    assert with_check.features.equals(without.features)
