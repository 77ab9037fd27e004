"""Tests of `dbrm.datasets.simulated`.

Statistical limits are six standard errors, a false alarm in 5e8 runs; seeds are fixed.
"""

import numpy as np
import pandas as pd
import pytest

from dbrm.datasets import LOGIC_LAW, simulate_logic, simulate_planets


@pytest.mark.parametrize("simulate", [simulate_logic, simulate_planets])
def test_the_seed_decides(simulate):
    pd.testing.assert_frame_equal(simulate(3), simulate(3))
    assert not simulate(3).equals(simulate(4))
    assert len(simulate(3, n=17)) == 17


def logic_residuals(table, law):
    features = [table[[f"X{j}" for j in numbers]].prod(axis=1) for numbers in law]
    return table["Y"] - 1.0 - np.column_stack(features) @ np.array(list(law.values()))


def test_logic_follows_its_law():
    table = simulate_logic(1, n=4000)
    assert list(table.columns) == [*(f"X{j}" for j in range(1, 51)), "Y"]
    covariates = table.drop(columns="Y").to_numpy()
    assert set(np.unique(covariates)) == {0, 1}
    assert covariates.mean() == pytest.approx(0.5, abs=6 * 0.5 / np.sqrt(covariates.size))
    residuals = logic_residuals(table, LOGIC_LAW)
    assert residuals.mean() == pytest.approx(0.0, abs=6 / np.sqrt(4000))
    assert residuals.std() == pytest.approx(1.0, abs=6 / np.sqrt(2 * 4000))


def test_the_check_catches_a_wrong_law():
    """Negative control: one coefficient off by 0.5 shows."""
    residuals = logic_residuals(simulate_logic(1, n=4000), LOGIC_LAW | {(7,): 1.0})
    assert abs(residuals.mean()) > 6 / np.sqrt(4000)


@pytest.mark.parametrize("noise", [0.002, 0.1])
def test_planets_follow_kepler(noise):
    planets = simulate_planets(1, n=4000, noise=noise)
    law = np.cbrt(planets["HostStarMassSlrMass"] * (planets["PeriodDays"] / 365.25) ** 2)
    error = planets["SemiMajorAxisAU"] - law
    assert error.mean() == pytest.approx(0.0, abs=6 * noise / np.sqrt(4000))
    assert error.std() == pytest.approx(noise, rel=6 / np.sqrt(2 * 4000))


def test_planets_are_physical():
    planets = simulate_planets(1, n=4000)
    assert planets["Eccentricity"].between(0, 1, inclusive="left").all()
    assert planets["HostStarTempK"].between(2500, 15000).all()
    positive = planets.drop(columns=["TypeFlag", "HostStarMetallicity", "Eccentricity"])
    assert (positive > 0).all(axis=None)
    np.testing.assert_allclose(
        planets["PlanetaryMassJpt"], planets["PlanetaryDensJpt"] * planets["RadiusJpt"] ** 3
    )
