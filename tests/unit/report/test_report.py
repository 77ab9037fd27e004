"""Tests of `dbrm.report`: tables, plots, wording."""

import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import dbrm
from dbrm.report import format_probability
from dbrm.report.wording import shorten


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    columns = {"x": rng.normal(size=60), "price [$]": rng.normal(size=60), "z": rng.normal(size=60)}
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def response(table):
    noise = np.random.default_rng(2).normal(size=len(table))
    return pd.Series(2.0 * table["x"] - 3.0 * table["price [$]"] + noise, name="y_$1$")


@pytest.fixture(scope="module")
def posterior(table, response):
    return dbrm.enumerate_models(table, response)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "<0.0001"),
        (4e-5, "<0.0001"),
        (6e-5, "0.0001"),
        (0.25, "0.2500"),
        (0.99994, "0.9999"),
        (0.99996, ">0.9999"),
        (1.0, ">0.9999"),
    ],
)
def test_a_probability_is_never_written_as_certainty(value, text):
    assert format_probability(value) == text


def test_long_texts_are_cut_visibly():
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdefg", 6) == "abcde…"


def test_summary_shows_formula_features_models_and_run(posterior):
    text = posterior.summary(top=2)
    assert f"  {posterior.best_model.formula}" in text.splitlines()
    assert re.search(r"^x\s+>0\.9999\s+1$", text, flags=re.MULTILINE)
    assert "8 model evaluations, " in text


def test_summary_keeps_brackets_in_names(posterior):
    """Names are not markup."""
    assert "price [$]" in posterior.summary()


def test_summary_is_at_most_as_long_as_asked(posterior):
    lines = posterior.summary(top=1).splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("feature"))
    assert lines[start + 3] == ""


def test_inclusion_plot_shows_every_feature_with_its_probability(posterior):
    axes = posterior.plot.inclusion(top=2)
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["x", ">0.9999", "price [$]", ">0.9999"]


def test_inclusion_plot_draws_bars_of_the_right_length(posterior):
    bars = posterior.plot.inclusion(top=3).containers[1]
    lengths = [bar.get_width() for bar in bars]
    np.testing.assert_allclose(lengths, posterior.features["inclusion"].head(3))


def test_fitted_plot_shows_predictions(posterior, table, response):
    axes = posterior.plot.fitted(table, response)
    points = axes.collections[-1].get_offsets()
    np.testing.assert_allclose(points, np.column_stack([response, posterior.predict(table)]))
    assert axes.get_xscale() == "linear"


def test_a_wide_positive_response_is_shown_on_logarithmic_axes(rng):
    x = np.logspace(-1, 2, 40)
    y = x + rng.uniform(0.0, 0.01, size=40)
    axes = dbrm.enumerate_models(x[:, None], y).plot.fitted(x[:, None], y)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_plots_draw_into_given_axes(posterior, table, response):
    left, right = Figure().subplots(1, 2)
    assert posterior.plot.inclusion(ax=left) is left
    assert posterior.plot.fitted(table, response, ax=right) is right


def test_overview_is_a_picture(posterior, table, response, tmp_path):
    """Also with names that look like mathematics."""
    path = tmp_path / "overview.png"
    posterior.plot.overview(table, response).savefig(path)
    assert path.read_bytes().startswith(b"\x89PNG")
