"""Latent Gaussian effects that are selected together with features."""

from dbrm.evidence.latent.base import LATENT_EFFECTS, Bridge, Latent
from dbrm.evidence.latent.effects.ar1 import AR1
from dbrm.evidence.latent.effects.iid import IID, RandomIntercept
from dbrm.evidence.latent.effects.ou import OU
from dbrm.evidence.latent.effects.random_slope import RandomSlope
from dbrm.evidence.latent.effects.rw1 import RW1
from dbrm.evidence.latent.effects.rw2 import RW2
from dbrm.evidence.latent.effects.smooth import Smooth
from dbrm.evidence.latent.hyperpriors import (
    HYPERPRIORS,
    ExponentialDeviation,
    LogGamma,
    NormalPrior,
)
from dbrm.evidence.latent.spelling import parse_effects

__all__ = [
    "AR1",
    "HYPERPRIORS",
    "IID",
    "LATENT_EFFECTS",
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
    "parse_effects",
]
