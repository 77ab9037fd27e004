"""Column names of the paper's data sets, in the order in which the paper counts them."""

__all__ = ["ARABIDOPSIS", "ASTEROIDS", "EXOPLANETS", "SPAM"]

# With the position of each in the raw files.
ASTEROIDS = {
    "absolute_magnitude": 2,
    "mean_anomaly": 5,
    "argument_of_perihelion": 6,
    "longitude_of_the_ascending_node": 7,
    "inclination": 8,
    "eccentricity": 9,
    "mean_motion": 10,
    "semi_major_axis": 11,
    "rms_residual": 17,
}

EXOPLANETS = [
    "TypeFlag",
    "RadiusJpt",
    "PeriodDays",
    "PlanetaryMassJpt",
    "SemiMajorAxisAU",
    "Eccentricity",
    "HostStarMassSlrMass",
    "HostStarRadiusSlrRad",
    "HostStarMetallicity",
    "HostStarTempK",
    "PlanetaryDensJpt",
]

ARABIDOPSIS = [
    "pos",
    "methylated_bases",
    "total_bases",
    "base_dist",
    "CHG",
    "CG",
    *("DT1", "DT2", "DT3", "DT4", "DT5", "DT6_20"),
    *("Malpha", "Mgamma", "Mdelta"),
    *("eg3000", "eg10000"),
]

_WORDS = (
    "make address all 3d our over remove internet order mail receive will people report "
    "addresses free business email you credit your font 000 money hp hpl george 650 lab labs "
    "telnet 857 data 415 85 technology 1999 parts pm direct cs meeting original project re edu "
    "table conference"
)

# The paper writes X1, ..., X57.
SPAM = [
    *(f"word_freq_{word}" for word in _WORDS.split()),
    *(f"char_freq_{character}" for character in ";([!$#"),
    *(f"capital_run_length_{measure}" for measure in ("average", "longest", "total")),
]
