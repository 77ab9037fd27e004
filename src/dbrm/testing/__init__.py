"""Checks for authors of new parts; built-in parts pass the same ones."""

from dbrm.testing.priors import PriorReport, check_prior

__all__ = ["PriorReport", "check_prior"]
