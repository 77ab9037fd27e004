"""Latent Gaussian effects that are selected together with features."""

from dbrm.evidence.latent.ar1 import AR1
from dbrm.evidence.latent.base import Bridge, Latent
from dbrm.evidence.latent.hyperpriors import ExponentialDeviation, LogGamma, NormalPrior
from dbrm.evidence.latent.iid import IID, RandomIntercept
from dbrm.evidence.latent.ou import OU
from dbrm.evidence.latent.rw1 import RW1
from dbrm.evidence.latent.rw2 import RW2

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
]
