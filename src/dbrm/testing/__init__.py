"""Checks for authors of new parts; built-in parts pass the same ones."""

from dbrm.testing.families import FamilyReport, LinkReport, check_family, check_link
from dbrm.testing.latent import LatentReport, check_latent
from dbrm.testing.priors import PriorReport, check_prior

__all__ = [
    "FamilyReport",
    "LatentReport",
    "LinkReport",
    "PriorReport",
    "check_family",
    "check_latent",
    "check_link",
    "check_prior",
]
