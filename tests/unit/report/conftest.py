"""Posteriors to report on."""

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dbrm


@pytest.fixture(scope="session")
def planets():
    """Few columns of simulated planets, and the axis to explain."""
    table = dbrm.datasets.simulate_planets(seed=1, n=60)
    return table[["PeriodDays", "HostStarMassSlrMass", "RadiusJpt"]], table["SemiMajorAxisAU"]


@pytest.fixture(scope="session")
def kepler(planets):
    """A run that finds its law, with chains that agree."""
    options = {"transforms": ["troot"], "n_chains": 2, "n_populations": 3, "random_state": 1}
    return dbrm.fit(*planets, **options)


@pytest.fixture(scope="session")
def vague():
    """Every subset of columns that have nothing to do with the response, oddly named."""
    draw = np.random.default_rng(1)
    names = ["<script>alert(1)</script>", "a & b", "sin", "price [$]"]
    table = pd.DataFrame(draw.normal(size=(30, 4)), columns=names)
    response = pd.Series(draw.normal(size=30), name="<i>y</i>")
    return dbrm.enumerate_models(table, response, penalty=0.0)


@pytest.fixture
def with_diagnostics():
    """The same posterior with other diagnostics: a function."""

    def change(posterior, **changes):
        changed = copy.copy(posterior)
        changed.diagnostics = replace(posterior.diagnostics, **changes)
        return changed

    return change
