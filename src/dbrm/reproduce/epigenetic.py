"""Example 7: methylation of 500 cytosines, with latent effects along the genome."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any, final

import numpy as np

from dbrm import datasets
from dbrm.latent import AR1, IID, OU, RW1
from dbrm.priors import Complexity
from dbrm.reproduce.settings import EPIGENETIC
from dbrm.reproduce.study import AbstractStudy, Key, Options
from dbrm.reproduce.whole import fit_whole

__all__ = ["REPORTED", "Epigenetic"]

# Features and effects with a higher posterior probability are reported.
REPORTED = 0.25
# The scripts charged log(200) per term and sign; their prior of slopes is R-INLA's default.
_SCRIPT_PENALTY = log(200.0)
_SCRIPT_PRIOR = {"name": "normal", "variance": 1000.0}
# The text's: slopes N(0, e^-psi) with psi ~ logGamma(1, 5e-5).
_TEXT_PRIOR = {"name": "normal-loggamma", "shape": 1.0, "rate": 5e-5}


@final
@dataclass(frozen=True, slots=True)
class Epigenetic(AbstractStudy):
    """Which features and which latent effects are found.

    The log of the reads, the paper's offset, is offered as a covariate: it is then "a matter
    of model choice", as the paper has it. Every latent effect costs the same. Under
    `paper_code` the random walk lacks the constant that R-INLA leaves out.
    """

    @property
    def name(self) -> str:
        return "example7"

    @property
    def key_columns(self) -> tuple[str, ...]:
        return ("preset", "chains", "populations", "seed")

    @property
    def value_columns(self) -> tuple[str, ...]:
        return ("features", "latent", "seconds")

    def plan(self, options: Options, methods: tuple[str, ...] | None = None) -> list[Key]:  # noqa: ARG002
        return [
            {
                "preset": preset,
                "chains": str(options.chains or EPIGENETIC["n_chains"]),
                "populations": "" if options.populations is None else str(options.populations),
                "seed": str(seed),
            }
            for seed in range(options.runs)
            for preset in options.presets
        ]

    def run(self, key: Key) -> dict[str, str]:
        sites = datasets.load_arabidopsis()
        y = sites.pop("methylated_bases")
        sites["log_total_bases"] = np.log(sites.pop("total_bases"))
        chosen: dict[str, Any] = {**EPIGENETIC, "n_chains": int(key["chains"])}
        if key["populations"]:
            chosen["n_populations"] = int(key["populations"])
        as_script = key["preset"] == "paper_code"
        walk = RW1("pos", normalisation="inla") if as_script else RW1("pos")
        posterior = fit_whole(
            sites,
            y,
            family="poisson",
            prior=_SCRIPT_PRIOR if as_script else _TEXT_PRIOR,
            penalty=Complexity(_SCRIPT_PENALTY) if as_script else "bic",
            latent=[AR1("pos"), walk, OU("pos"), IID("pos")],
            latent_charge="effect",
            random_state=int(key["seed"]),
            **chosen,
        )
        features = zip(posterior.features["feature"], posterior.features["inclusion"], strict=True)
        effects = zip(posterior.latent["effect"], posterior.latent["inclusion"], strict=True)
        return {
            "features": "; ".join(f"{name}={p:.4f}" for name, p in features if p > REPORTED),
            "latent": "; ".join(f"{name}={p:.4f}" for name, p in effects),
        }
