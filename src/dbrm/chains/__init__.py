"""Run chains in work units, each a pure function of its task, on any kind of workers."""

from dbrm.chains.checkpoint import Checkpoint
from dbrm.chains.driver import Progress, RunReport, run_chains, seed_sequence
from dbrm.chains.interrupts import StopEvent, catch_interrupts, pass_on_sigterm
from dbrm.chains.work_unit import ChainTask, WorkUnit, run_unit

__all__ = [
    "ChainTask",
    "Checkpoint",
    "Progress",
    "RunReport",
    "StopEvent",
    "WorkUnit",
    "catch_interrupts",
    "pass_on_sigterm",
    "run_chains",
    "run_unit",
    "seed_sequence",
]
