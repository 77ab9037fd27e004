"""Chains are run in slices, each a pure function of its task, on whatever workers there are."""

from dbrm.chains.checkpoint import Checkpoint
from dbrm.chains.interrupts import StopSign, catch_interrupts, pass_on_sigterm
from dbrm.chains.run import Progress, RunReport, run_chains, seed_sequence
from dbrm.chains.task import ChainTask, Slice, run_slice

__all__ = [
    "ChainTask",
    "Checkpoint",
    "Progress",
    "RunReport",
    "Slice",
    "StopSign",
    "catch_interrupts",
    "pass_on_sigterm",
    "run_chains",
    "run_slice",
    "seed_sequence",
]
