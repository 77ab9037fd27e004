"""Example 6: products of up to four of fifty binary covariates, in simulated data."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any, final

from dbrm import datasets
from dbrm.features import Feature
from dbrm.priors import ModelPrior
from dbrm_paper.runs import AbstractStudy, Key, Options, fit_completely
from dbrm_paper.settings import LOGIC

__all__ = ["DETECTED", "TREES", "Logic", "PerOperation"]

DETECTED = 0.5
TREES = tuple("*".join(f"X{j}" for j in numbers) for numbers in datasets.LOGIC_LAW)
METHODS = {"DBRM_G": "gmjmcmc", "DBRM_R": "rgmjmcmc", "LOGIC": "gmjmcmc"}
UNIT_INFORMATION = {"name": "jeffreys", "constant": "unit_information"}


@final
@dataclass(frozen=True, slots=True)
class PerOperation(ModelPrior):
    r"""What the script of Example 6 charged: :math:`\log n` per multiplication or function.

    A covariate costs nothing beyond what BIC charges for its coefficient.
    """

    penalty: float
    name = "per-operation"

    def feature_log_prior(self, feature: Feature) -> float:
        return -self.penalty * (feature.complexity - 1)


@final
@dataclass(frozen=True, slots=True)
class Logic(AbstractStudy):
    """One data set per seed; DBRM with both samplers, and with the prior of logic regression.

    Results: the inclusion probabilities of the eight trees and the number of other
    features detected.
    """

    @property
    def name(self) -> str:
        return "example6"

    @property
    def key_columns(self) -> tuple[str, ...]:
        return ("preset", "method", "chains", "populations", "seed")

    @property
    def value_columns(self) -> tuple[str, ...]:
        return ("inclusion", "others", "seconds")

    def plan(self, options: Options, methods: tuple[str, ...] | None = None) -> list[Key]:
        return [
            {
                "preset": preset,
                "method": method,
                "chains": str(options.chains or 4),
                "populations": options.populations_text,
                "seed": str(seed),
            }
            for seed in range(options.runs)
            for preset in options.presets
            for method in methods or METHODS
        ]

    def run(self, key: Key) -> dict[str, str]:
        table = datasets.simulate_logic(int(key["seed"]))
        y = table.pop("Y")
        settings = {**LOGIC, **_prior(key["method"], key["preset"], len(table))}
        if key["populations"]:
            settings["n_populations"] = int(key["populations"])
        posterior = fit_completely(
            table,
            y,
            algorithm=METHODS[key["method"]],
            n_chains=int(key["chains"]),
            random_state=int(key["seed"]),
            **settings,
        )
        inclusion = [posterior.inclusion(tree) for tree in TREES]
        detected = len(posterior.features_above(DETECTED))
        others = detected - sum(value > DETECTED for value in inclusion)
        return {
            "inclusion": " ".join(f"{value:.4f}" for value in inclusion),
            "others": str(others),
        }


def _prior(method: str, preset: str, n: int) -> dict[str, Any]:
    """Priors of coefficients and models: the text implies :math:`a = n^{-2}`."""
    if method == "LOGIC":
        return {"prior": UNIT_INFORMATION, "penalty": "logic-regression"}
    if preset == "paper_code":
        return {"prior": UNIT_INFORMATION, "penalty": PerOperation(log(n))}
    return {"prior": "jeffreys", "penalty": "bic"}
