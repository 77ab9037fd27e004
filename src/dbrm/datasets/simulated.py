"""Simulated data in which the true model is known, for examples and for measuring power.

The same seed gives the same table on every machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LOGIC_LAW", "simulate_logic", "simulate_planets"]

# Coefficient of each true feature of Example 6, a product of the columns with these numbers.
LOGIC_LAW: dict[tuple[int, ...], float] = {
    (7,): 1.5,
    (8,): 1.5,
    (2, 9): 3.5,
    (18, 21): 6.6,
    (1, 3, 27): 7.0,
    (12, 20, 37): 9.0,
    (4, 10, 17, 30): 7.0,
    (11, 13, 19, 50): 7.0,
}

DAYS_PER_YEAR = 365.25


def simulate_logic(seed: int, n: int = 1000) -> pd.DataFrame:
    r"""Binary covariates and products of up to four of them (Example 6).

    With :math:`X_{ij} \sim \mathrm{Bernoulli}(q_{ij})`, :math:`q_{ij} \sim U(0, 1)`, the
    response is one plus the features of `LOGIC_LAW` times their coefficients plus
    standard normal noise.

    Returns
    -------
    pandas.DataFrame
        Columns ``X1``, ..., ``X50`` of zeros and ones, and ``Y``.
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    X = (rng.random((n, 50)) < rng.random((n, 50))).astype(np.int64)
    mean = 1.0 + sum(
        coefficient * X[:, np.array(numbers) - 1].prod(axis=1)
        for numbers, coefficient in LOGIC_LAW.items()
    )
    table = pd.DataFrame(X, columns=[f"X{j}" for j in range(1, 51)])
    return table.assign(Y=rng.normal(mean, 1.0))


def simulate_planets(seed: int, n: int = 200, *, noise: float = 0.002) -> pd.DataFrame:
    r"""Planets that obey Kepler's third law up to the error of measurement.

    In astronomical units, years and solar masses, :math:`a^3 = M P^2`. Stars are on
    the main sequence (radius and temperature follow the mass, with scatter), periods
    and densities are log-normal, eccentricities Beta(0.867, 3.03).

    Parameters
    ----------
    seed
        Same seed, same planets.
    n
        Number of planets.
    noise
        Standard deviation of the measurement error of ``SemiMajorAxisAU``, in astronomical units.

    Returns
    -------
    pandas.DataFrame
        The columns of `load_exoplanets`. The planet's mass is its density times the
        cubed radius, exactly, as there.
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    star_mass = rng.lognormal(0.0, 0.25, n)
    period = rng.lognormal(np.log(12.0), 1.4, n)
    radius, density = rng.lognormal(0.0, 0.3, n), rng.lognormal(-0.2, 1.0, n)
    axis = np.cbrt(star_mass * (period / DAYS_PER_YEAR) ** 2)
    columns = {
        "TypeFlag": rng.choice([0, 1, 2, 3], size=n, p=[0.85, 0.05, 0.08, 0.02]),
        "RadiusJpt": radius,
        "PeriodDays": period,
        "PlanetaryMassJpt": density * radius**3,
        "SemiMajorAxisAU": axis + rng.normal(0.0, noise, n),
        "Eccentricity": rng.beta(0.867, 3.03, n),
        "HostStarMassSlrMass": star_mass,
        "HostStarRadiusSlrRad": star_mass**0.8 * rng.lognormal(0.0, 0.1, n),
        "HostStarMetallicity": rng.normal(0.05, 0.2, n),
        "HostStarTempK": np.rint(5772.0 * star_mass**0.5 * rng.lognormal(0.0, 0.03, n)),
        "PlanetaryDensJpt": density,
    }
    return pd.DataFrame(columns)
