"""Tests of what notebooks show."""

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import sklearn

import dbrm

QUICK = {
    "n_chains": 1,
    "n_populations": 2,
    "n_iter": 20,
    "random_state": 0,
    "transforms": ["tanh"],
    "sweep": 1,
}


def words(html):
    return " ".join("".join(ElementTree.fromstring(f"<p>{html}</p>").itertext()).split())


def test_a_posterior_shows_formula_verdict_and_features(kepler):
    text = words(kepler._repr_html_())
    assert "Posterior of models for SemiMajorAxisAU" in text
    assert "One formula stands out." in text
    assert "PeriodDays2·HostStarMassSlrMass" in text
    assert ">0.9999" in text


def test_doubts_are_shown(kepler, with_diagnostics):
    assert "The chains disagree." in words(
        with_diagnostics(kepler, disagreements=[0])._repr_html_()
    )


def test_names_are_text(vague):
    assert "<i>y</i>" in words(vague._repr_html_())


@pytest.fixture
def table(rng):
    return pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])


@pytest.mark.parametrize("kind", [dbrm.DBRMRegressor, dbrm.DBRMFeatures])
def test_an_estimator_shows_what_it_found(kind, table):
    model = kind(**QUICK)
    assert "sk-" in model._repr_html_()
    assert "sk-" in model._repr_mimebundle_()["text/html"]
    model.fit(table, table["a"] + 1.0)
    assert words(model._repr_html_()).startswith(f"{kind.__name__}: a")
    assert model._repr_mimebundle_()["text/html"] == model._repr_html_()
    assert "DBRM" in model._repr_mimebundle_()["text/plain"]


def test_a_classifier_shows_its_posterior(table, rng):
    two = dbrm.DBRMClassifier(**QUICK).fit(
        table, np.where(table["a"] + rng.normal(size=60) > 0, 7, 3)
    )
    assert words(two._repr_html_()).count("DBRMClassifier: class") == 1
    assert "class 7" in words(two._repr_html_())
    labels = rng.choice(["x", "y", "z"], size=60)
    three = dbrm.DBRMClassifier(**QUICK).fit(table, labels)
    assert words(three._repr_html_()).startswith("DBRMClassifier: y")


def test_scikit_learns_choice_of_display_is_kept(table):
    model = dbrm.DBRMRegressor(**QUICK).fit(table, table["a"])
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
        assert not hasattr(model, "_repr_html_")
