"""Latent Gaussian effects to offer to `dbrm.fit`: ``latent=[dbrm.latent.AR1("time")]``."""

from dbrm.evidence.latent import (
    AR1,
    IID,
    LATENT_EFFECTS,
    OU,
    RW1,
    RW2,
    Bridge,
    ExponentialDeviation,
    Latent,
    LogGamma,
    NormalPrior,
    RandomIntercept,
    RandomSlope,
    Smooth,
)

__all__ = [
    "AR1",
    "IID",
    "OU",
    "RW1",
    "RW2",
    "Bridge",
    "ExponentialDeviation",
    "Latent",
    "LogGamma",
    "NormalPrior",
    "RandomIntercept",
    "RandomSlope",
    "Smooth",
]

# Effects that are not imported above.
globals().update(LATENT_EFFECTS)
