"""One chain is one pure function of a task; many chains run through joblib."""

from dbrm.chains.run import ChainTask, Progress, run_chain, run_chains, seed_sequence

__all__ = ["ChainTask", "Progress", "run_chain", "run_chains", "seed_sequence"]
