"""Tests of the path of formulas."""

import numpy as np
import pytest

import dbrm
from dbrm.errors import InvalidDataError
from dbrm.report.findings import find

COLUMNS = (
    *("complexity", "size", "formula", "features"),
    *("r2", "log_evidence", "step", "probability"),
)


@pytest.fixture(scope="module")
def columns():
    return np.random.default_rng(5).normal(size=(120, 3))


@pytest.fixture(scope="module")
def posterior(columns):
    noise = 0.1 * np.random.default_rng(6).normal(size=120)
    response = 3.0 * columns[:, 0] + columns[:, 1] * columns[:, 2] + noise
    options = {"n_populations": 4, "n_chains": 1, "random_state": 1, "transforms": ["sin"]}
    return dbrm.fit(columns, response, **options)


def test_the_path_leads_from_nothing_to_the_best_model_and_beyond(posterior, columns):
    path = posterior.path
    assert tuple(path) == COLUMNS
    assert path["features"][0] == ()
    assert path["r2"][0] == 0.0
    assert path["complexity"].is_monotonic_increasing
    best = path.iloc[path["probability"].argmax()]
    assert set(best["features"]) == {"x1", "x2*x3"}
    assert best["formula"] == posterior.best_model.formula
    assert best["probability"] == pytest.approx(posterior.best_model.probability)
    (one,) = path[path["complexity"] == 1].itertuples()
    assert one.features == ("x1",)
    response = posterior.rows().response
    assert one.r2 == pytest.approx(np.corrcoef(columns[:, 0], response)[0, 1] ** 2)


def test_every_step_is_the_gain_in_log_evidence(posterior):
    path = posterior.path
    gains = np.diff(path["log_evidence"])
    np.testing.assert_array_equal(path["step"][1:], gains)
    assert np.isnan(path["step"][0])
    assert np.all(gains > 0)


def test_other_families_have_a_path(columns, rng):
    classes = (columns[:, 0] + rng.normal(size=120) > 0).astype(float)
    path = dbrm.enumerate_models(columns, classes, family="binomial").path
    assert path["features"][1] == ("x1",)
    assert 0.0 < path["r2"][1] < 1.0


def test_a_file_keeps_the_path(posterior, tmp_path):
    posterior.save(tmp_path / "run.dbrm")
    assert dbrm.load(tmp_path / "run.dbrm").path.equals(posterior.path)


def test_a_file_without_a_path_says_so(posterior, tmp_path):
    posterior.save(tmp_path / "run.dbrm")
    loaded = dbrm.load(tmp_path / "run.dbrm")
    loaded._source.path.clear()
    assert "A simpler formula does as well" not in loaded.summary()
    with pytest.raises(InvalidDataError, match="fit again"):
        _ = loaded.path


def test_a_simpler_formula_that_does_as_well_is_named(posterior):
    assert "A simpler formula does as well" not in posterior.summary()
    steps = posterior.path_steps
    best = max(steps, key=lambda step: step.probability)
    position = steps.index(best)
    try:
        # As if the formula before the best one had as much evidence.
        object.__setattr__(steps[position - 1], "log_evidence", best.log_evidence - 1.0)
        (finding,) = (f for f in find(posterior) if f.title == "A simpler formula does as well")
    finally:
        del posterior.__dict__["path_steps"]
    assert f"instead of {best.complexity}" in finding.text


def test_the_picture_marks_the_most_probable_formula(posterior):
    axes = posterior.plot.path()
    assert axes.get_yscale() == "log"
    assert axes.get_title(loc="left").startswith("most probable: x1 + x2")
    assert len(axes.collections[0].get_offsets()) == len(posterior.path)
