"""Tests of the planets that ship with the package, and of the names of `dbrm.datasets`."""

import numpy as np
import pytest

from dbrm import datasets
from dbrm.datasets import load_exoplanets


def test_the_planets_need_no_download(monkeypatch, tmp_path):
    """Where the authors' files are not, the planets are."""
    monkeypatch.setenv("DBRM_DATA", str(tmp_path))
    assert load_exoplanets().shape == (223, 11)
    with pytest.raises(datasets.DataUnavailableError, match="has no file"):
        datasets.load_spam()


def test_planets_obey_both_laws():
    """The correlation that the paper states for Kepler's law, and the exact mass law."""
    planets = load_exoplanets()
    law = np.cbrt(planets["HostStarMassSlrMass"] * planets["PeriodDays"] ** 2)
    rival = np.cbrt(planets["HostStarRadiusSlrRad"] * planets["PeriodDays"] ** 2)
    assert np.corrcoef(law, rival)[0, 1] == pytest.approx(0.9999667, abs=1e-7)
    np.testing.assert_allclose(
        planets["PlanetaryMassJpt"], planets["PlanetaryDensJpt"] * planets["RadiusJpt"] ** 3
    )


@pytest.mark.parametrize("name", datasets.__all__)
def test_every_name_is_there(name):
    assert getattr(datasets, name) is not None
    assert name in dir(datasets)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'load_iris'"):
        _ = datasets.load_iris
