"""Newcomers to a population, drawn by what they promise beside its leading model."""

from dbrm.evolution.newcomers.constants import propose_constants
from dbrm.evolution.newcomers.draw import draw_newcomers, propose_numbers
from dbrm.evolution.newcomers.screen import Screener

__all__ = ["Screener", "draw_newcomers", "propose_constants", "propose_numbers"]
