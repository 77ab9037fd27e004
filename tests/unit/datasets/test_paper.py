"""Tests of `dbrm.datasets.paper`: the loaders give the published tables, value for value."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dbrm import datasets

SHARED = Path(__file__).resolve().parents[3] / ".." / "shared" / "data"

pytestmark = pytest.mark.skipif(
    not (SHARED / "raw").is_dir(), reason="the copy of the paper's data is not beside the project"
)


@pytest.fixture(autouse=True)
def local_copy(monkeypatch):
    monkeypatch.setenv("DBRM_DATA", str(SHARED / "raw"))


def tidy(name):
    return pd.read_csv(SHARED / name)


@pytest.mark.parametrize("name", ["exoplanets", "arabidopsis"])
def test_tables_are_exact(name):
    pd.testing.assert_frame_equal(
        getattr(datasets, f"load_{name}")(), tidy(f"{name}.csv"), check_exact=True
    )


@pytest.mark.parametrize(
    ("name", "response", "suffix"),
    [
        ("neo_asteroids", "neo", ".csv.gz"),
        ("breast_cancer", "malignant", ".csv"),
        ("spam", "spam", ".csv"),
    ],
)
def test_splits_are_exact(name, response, suffix):
    split = getattr(datasets, f"load_{name}")()
    assert split.response == response == split.train.columns[-1]
    pd.testing.assert_frame_equal(split.train, tidy(f"{name}_train.csv"), check_exact=True)
    pd.testing.assert_frame_equal(split.test, tidy(f"{name}_test{suffix}"), check_exact=True)


def test_planets_obey_both_laws():
    """The correlation that the paper states for Kepler's law, and the exact mass law."""
    planets = datasets.load_exoplanets()
    law = np.cbrt(planets["HostStarMassSlrMass"] * planets["PeriodDays"] ** 2)
    rival = np.cbrt(planets["HostStarRadiusSlrRad"] * planets["PeriodDays"] ** 2)
    assert np.corrcoef(law, rival)[0, 1] == pytest.approx(0.9999667, abs=1e-7)
    np.testing.assert_allclose(
        planets["PlanetaryMassJpt"], planets["PlanetaryDensJpt"] * planets["RadiusJpt"] ** 3
    )
