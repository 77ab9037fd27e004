"""Tests of the pictures: they draw the numbers they claim, at paper size, with odd names."""

import inspect

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import dbrm
from dbrm.errors import InvalidDataError, InvalidSettingError
from dbrm.report import Plots
from dbrm.report.wording import display

LONG = "a column [with $an$ unusually long name] that does not fit `anywhere`".replace("`", "'")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    columns = {"x": rng.normal(size=80), LONG: rng.normal(size=80)}
    return pd.DataFrame(columns | {"site": np.array(["north", "south", "east", "west"] * 20)})


def respond(table, family):
    rng = np.random.default_rng(2)
    eta = 0.7 * table["x"] - 0.5 * table[LONG] + 0.5 * (table["site"] == "south")
    draws = {
        "gaussian": lambda: eta + 0.3 * rng.normal(size=len(eta)),
        "poisson": lambda: rng.poisson(np.exp(eta)),
        "binomial": lambda: (rng.random(len(eta)) < 1 / (1 + np.exp(-eta))).astype(float),
    }
    return pd.Series(draws[family](), name="y_$1$")


@pytest.fixture(scope="module", params=["gaussian", "poisson", "binomial"])
def posterior(request, table):
    y = respond(table, request.param)
    return dbrm.enumerate_models(table, y, family=request.param)


def arguments_of(name, table):
    """What a picture needs beyond the posterior."""
    return {"contributions": [table], "surface": ["x", "site"]}.get(name, [])


def picture_names():
    """Pictures of any posterior; those of latent effects and of survival times need some."""
    methods = inspect.getmembers(Plots, inspect.isfunction)
    others = ("overview", "latent", "survival")
    return [name for name, _ in methods if not name.startswith("_") and name not in others]


@pytest.mark.parametrize("name", picture_names())
def test_every_picture_fits_one_column_of_a_journal(posterior, table, name, tmp_path):
    """Drawn into given axes 3.3 inches wide nothing fails and nothing warns."""
    axes = Figure(figsize=(3.3, 2.5), layout="constrained").add_subplot()
    assert getattr(posterior.plot, name)(*arguments_of(name, table), ax=axes) is axes
    axes.figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 2000


def test_every_picture_makes_its_own_axes(posterior, table):
    for name in picture_names():
        figure = getattr(posterior.plot, name)(*arguments_of(name, table)).figure
        assert 3.0 < figure.get_figwidth() <= 7.0


def test_texts_for_the_eye_have_short_weights_and_no_quotes():
    text = "sin(2.0671971605599677 - 0.17113683549788905*`a 1.23456 b`)*x1.00001"
    assert display(text) == "sin(2.07 - 0.171*a 1.23456 b)*x1.00001"


def test_model_bars_are_the_model_probabilities(posterior):
    bars = posterior.plot.models(top=3).containers[1]
    np.testing.assert_allclose(
        [bar.get_width() for bar in bars], posterior.models["probability"].head(3)
    )


def test_model_image_shows_each_feature_of_each_model_once(posterior):
    axes = posterior.plot.model_image(n_models=4)
    boxes = [c for c in axes.collections if type(c).__name__ == "PolyCollection"]
    assert len(boxes) == posterior.models["size"].head(4).sum()


def test_model_image_columns_are_as_wide_as_models_are_probable(posterior):
    """The first model begins at the left and ends where its probability says."""
    axes = posterior.plot.model_image(n_models=2, widths="probability")
    first, second = posterior.models["probability"].head(2)
    ends = max(c.get_paths()[0].vertices[:, 0].max() for c in axes.collections[:1])
    assert ends == pytest.approx(first / (first + second))


def test_unknown_widths_are_refused(posterior):
    with pytest.raises(InvalidSettingError, match="widths must be 'log_odds' or 'probability'"):
        posterior.plot.model_image(widths="area")


def test_complexity_bars_add_to_one(posterior):
    heights = [bar.get_height() for bar in posterior.plot.complexity().containers[0]]
    assert sum(heights) == pytest.approx(1.0)


def test_architecture_of_a_feature_shows_every_part(posterior):
    axes = posterior.plot.architecture("sin(0.5 + 2*x - `site[south]`)*x")
    texts = [text.get_text() for text in axes.texts]
    assert sorted(texts) == sorted(["×", "x", "sin", "x", "site[south]", "1", "2", "-1", "0.5"])


def test_architecture_of_the_best_model_shows_its_coefficients(posterior):
    best = posterior.best_model
    texts = [text.get_text() for text in posterior.plot.architecture().texts]
    assert {f"{slope:.3g}" for slope in best.fit.coefficients[1:]} <= set(texts)


def test_partial_dependence_draws_the_table(posterior):
    axes = posterior.plot.partial_dependence("x")
    curve = posterior.effects.partial_dependence("x")
    np.testing.assert_allclose(axes.lines[0].get_ydata(), curve["mean"])
    np.testing.assert_allclose(axes.lines[0].get_xdata(), curve["value"])


def test_partial_dependence_of_a_factor_names_its_levels(posterior):
    labels = [t.get_text() for t in posterior.plot.partial_dependence("site").get_xticklabels()]
    assert labels == ["east", "north", "south", "west"]


def test_contributions_end_at_the_linear_predictor(posterior, table):
    axes = posterior.plot.contributions(table, row=5)
    total = posterior.effects.contributions(table).iloc[5].sum()
    assert axes.lines[-1].get_xdata()[0] == pytest.approx(total)


def test_residuals_of_an_unknown_kind_are_refused(posterior):
    with pytest.raises(InvalidSettingError, match="kind must be 'fitted' or 'qq'"):
        posterior.plot.residuals(kind="pearson")


def test_a_loaded_posterior_needs_rows_for_pictures_of_rows(posterior, table, tmp_path):
    posterior.save(tmp_path / "run.dbrm")
    loaded = dbrm.load(tmp_path / "run.dbrm")
    with pytest.raises(InvalidDataError, match="does not have the training response: pass X and y"):
        loaded.plot.fitted()
    loaded.plot.inclusion()
    loaded.plot.partial_dependence("x")


def test_a_table_without_a_response_is_refused(posterior, table):
    with pytest.raises(InvalidDataError, match="Pass X and y, or neither"):
        posterior.plot.fitted(table)
