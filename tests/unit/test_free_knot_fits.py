"""Fits with free knots and with numbers inside functions, from start to file."""

import numpy as np
import pytest

import dbrm
from dbrm.features import walk


@pytest.fixture(scope="module")
def posterior():
    rng = np.random.default_rng(3)
    table = {"x": rng.uniform(0, 10, 80), "z": rng.normal(size=80)}
    y = 3.0 * (table["x"] > 4.2) + 0.3 * rng.normal(size=80)
    return dbrm.fit(
        table,
        y,
        transforms=["step", "tanh"],
        start=["step(x, 4.2)", "sin{2.3*x}"],
        n_chains=1,
        n_populations=4,
        sweep=0,
        random_state=1,
    )


def test_a_step_at_a_free_knot_is_found(posterior):
    assert posterior.inclusion("step(x, 4.2)") > 0.9
    assert "step(x, " in posterior.best_model.formula


def test_the_operators_draw_knots(posterior):
    """Not only those that were given: knots at other training values are among the features."""
    knots = {
        node.knot
        for text in posterior.features["feature"]
        for node in walk(dbrm.parse_feature(text))
        if node.transform is not None and node.transform.free_knot
    }
    assert len(knots - {4.2}) >= 1


def test_the_file_has_the_same_features(posterior, tmp_path):
    posterior.save(tmp_path / "steps.dbrm")
    again = dbrm.load(tmp_path / "steps.dbrm")
    assert again.best_model.formula == posterior.best_model.formula
    np.testing.assert_array_equal(again.features["feature"], posterior.features["feature"])


def test_the_model_is_exported(posterior):
    model = posterior.best_model
    assert "CASE WHEN" in model.to_sql()
    assert r"\mathrm{I}" in model.to_latex()
    predict = model.to_callable()
    new = {"x": np.array([1.0, 9.0]), "z": np.zeros(2)}
    np.testing.assert_allclose(predict(new), model.predict(new))
