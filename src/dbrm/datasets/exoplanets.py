"""The planets of the paper's Examples 4 and 5, which ship with the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EXOPLANETS_FILE", "load_exoplanets"]

EXOPLANETS_FILE = Path(__file__).with_name("exoplanets.csv")


def load_exoplanets() -> pd.DataFrame:
    """Planets of other stars with complete records: 223 rows, 11 columns.

    The table ships with the package; no network is needed.

    Returns
    -------
    pandas.DataFrame
        Radius, period (days), mass, semi-major axis (astronomical units), eccentricity and
        density of each planet; mass, radius, metallicity and temperature of its star.
        Planets are measured in units of Jupiter, stars in units of the sun.

    Notes
    -----
    From the Open Exoplanet Catalogue (H. Rein, arXiv:1211.7121; MIT licence), as the authors
    of the paper selected and distribute it (Examples 4 and 5). They model
    ``PlanetaryMassJpt`` and ``SemiMajorAxisAU``, each by all other columns.
    ``PlanetaryDensJpt`` is the mass divided by the cubed radius, exactly.
    """
    import pandas as pd

    return pd.read_csv(EXOPLANETS_FILE)
