"""What is found depends neither on the units of a column nor on the labels of two values."""

import re

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.features import walk

QUICK = {"n_chains": 2, "n_populations": 5, "random_state": 4, "n_jobs": 1}


@pytest.fixture(scope="module")
def waves():
    draw = np.random.default_rng(11)
    X = pd.DataFrame(draw.normal(size=(120, 3)), columns=["a", "b", "c"])
    return X, 1.5 * np.sin(X["a"]) + 0.5 * draw.normal(size=120)


def inclusions(posterior):
    """By topology: the numbers in a feature move with the units."""
    found = {}
    for feature, share in zip(posterior._merged.features, posterior._inclusion, strict=True):
        # Fitted numbers that belong to the identity are written out.
        key = re.sub(r"(?<![\w.])\d[\d.e-]*", "#", feature.canonical)
        found[key] = found.get(key, 0.0) + share
    return found


@pytest.mark.parametrize("factor", [1e3, 1e-9])
def test_the_default_functions_do_not_depend_on_units(waves, factor):
    X, y = waves
    here, there = (inclusions(dbrm.fit(table, y, **QUICK)) for table in (X, X * factor))
    assert max(here, key=here.get) == "sin{#*a}"
    assert here["sin((a - ?)/?)"] > 0.01
    assert here.keys() == there.keys()
    assert max(abs(here[key] - there[key]) for key in here) < 1e-6


def test_functions_that_the_user_names_are_plain(waves):
    """Negative control: a plain sine of other units is another feature."""
    X, y = waves
    here, there = (
        dbrm.fit(table, y, transforms=["sin"], **QUICK).inclusion("sin(a)")
        for table in (X, 1000 * X)
    )
    assert here > 0.5
    assert there < 0.01


def test_projections_do_not_depend_on_the_units_of_the_response(waves):
    X, y = waves
    operators = {"mutation": 1, "crossover": 0, "modification": 0, "projection": 3, "informed": 0}
    options = QUICK | {"operators": operators, "sweep": 0}
    here, there = (inclusions(dbrm.fit(X, response, **options)) for response in (y, 1e4 * y))
    assert any("? + ?*" in key for key in here)
    assert max(abs(here[key] - there.get(key, 0.0)) for key in here) < 1e-6


@pytest.mark.parametrize("labels", [(-1.0, 1.0), (-7.5, 7.5)])
def test_a_law_of_signs_has_one_spelling_and_one_price(labels):
    draw = np.random.default_rng(92)
    signs = draw.choice([-1.0, 1.0], size=(200, 6))
    y = 2.0 * signs[:, :3].prod(axis=1) + draw.normal(size=200)
    X = pd.DataFrame(np.where(signs > 0, labels[1], labels[0]), columns=[f"x{j}" for j in range(6)])
    posterior = dbrm.fit(X, y, prior="jeffreys", penalty="bic", **QUICK)
    assert [str(feature) for feature in posterior.best_model.features] == ["x0*x1*x2"]
    for feature in posterior._merged.features:
        factors = str(feature).split("*")
        assert len(set(factors)) == len(factors) == feature.complexity


def test_functions_of_a_smoker_are_not_offered(rng):
    X = pd.DataFrame({"smoker": rng.integers(0, 2, 150), "age": rng.uniform(20, 80, 150)})
    y = 3.0 * X["smoker"] + 0.05 * X["age"] + rng.normal(size=150)
    posterior = dbrm.fit(X, y, **QUICK)
    assert posterior.features["feature"][0] == "smoker"
    arguments = [
        set(node.covariates)
        for feature in posterior._merged.features
        for node in walk(feature)
        if node.transform is not None
    ]
    assert {"age"} in arguments
    assert {"smoker"} not in arguments
