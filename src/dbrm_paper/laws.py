"""Examples 4 and 5 and Appendix B: two laws of physics in 223 exoplanets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from dbrm import datasets
from dbrm_paper.runs import AbstractStudy, Key, Options, fit_completely
from dbrm_paper.settings import LAWS, SIGMOID

if TYPE_CHECKING:
    from dbrm.posterior import Posterior

__all__ = ["DETECTED", "Law", "SigmoidOnly"]

# A feature with a higher inclusion probability counts as detected.
DETECTED = 0.25
ALGORITHMS = {"DBRM_G": "gmjmcmc", "DBRM_R": "rgmjmcmc"}
SETS = ("paper-g1", "paper-g2")

RESPONSES = {"mass": "PlanetaryMassJpt", "kepler": "SemiMajorAxisAU"}
TRUE_FEATURES = {
    "mass": ("RadiusJpt*RadiusJpt*RadiusJpt*PlanetaryDensJpt",),
    "kepler": (
        "troot(PeriodDays*PeriodDays*HostStarMassSlrMass)",
        "troot(PeriodDays*PeriodDays*HostStarRadiusSlrRad)",
        "troot(PeriodDays*PeriodDays*HostStarTempK)",
    ),
}
CHAINS = {"mass": (1, 4, 16), "kepler": (1, 16, 64)}


@final
@dataclass(frozen=True, slots=True)
class Law(AbstractStudy):
    """How often a law is found, with one and with many chains.

    Results: the inclusion probabilities of the true features, under any equivalent
    spelling, and the other features detected.
    """

    law: str

    @property
    def name(self) -> str:
        return self.law

    @property
    def key_columns(self) -> tuple[str, ...]:
        return ("preset", "transforms", "method", "chains", "populations", "seed")

    @property
    def value_columns(self) -> tuple[str, ...]:
        return ("inclusion", "others", "seconds")

    def plan(self, options: Options, methods: tuple[str, ...] | None = None) -> list[Key]:
        chains = CHAINS[self.law] if options.chains is None else (options.chains,)
        return [
            {
                "preset": preset,
                "transforms": transforms,
                "method": method,
                "chains": str(n_chains),
                "populations": options.populations_text,
                "seed": str(seed),
            }
            for seed in range(options.runs)
            for preset in options.presets
            for transforms in SETS
            for method in methods or ALGORITHMS
            for n_chains in chains
        ]

    def run(self, key: Key) -> dict[str, str]:
        settings = dict(LAWS)
        if key["populations"]:
            settings["n_populations"] = int(key["populations"])
        planets = datasets.load_exoplanets()
        y = planets.pop(RESPONSES[self.law])
        posterior = fit_completely(
            planets,
            y,
            preset=key["preset"],
            transforms=key["transforms"],
            algorithm=ALGORITHMS[key["method"]],
            n_chains=int(key["chains"]),
            random_state=int(key["seed"]),
            **settings,
        )
        true = TRUE_FEATURES[self.law]
        inclusion = [posterior.inclusion(feature) for feature in true]
        others = [text for text in _detected(posterior) if not _is_one_of(text, true, posterior)]
        return {
            "inclusion": " ".join(f"{value:.4f}" for value in inclusion),
            "others": "; ".join(others),
        }


@final
@dataclass(frozen=True, slots=True)
class SigmoidOnly(AbstractStudy):
    """Appendix B: Kepler's law with the sigmoid as the only function, in three settings.

    Result: the features detected, with the paper's names of the covariates.
    """

    @property
    def name(self) -> str:
        return "appendix-b"

    @property
    def key_columns(self) -> tuple[str, ...]:
        return ("preset", "setting", "chains", "populations", "seed")

    @property
    def value_columns(self) -> tuple[str, ...]:
        return ("detected", "greatest_complexity", "seconds")

    def plan(self, options: Options, methods: tuple[str, ...] | None = None) -> list[Key]:
        return [
            {
                "preset": preset,
                "setting": setting,
                "chains": str(options.chains or 64),
                "populations": options.populations_text,
                "seed": str(seed),
            }
            for seed in range(options.runs)
            for preset in options.presets
            for setting in methods or SIGMOID
        ]

    def run(self, key: Key) -> dict[str, str]:
        settings = {**LAWS, **SIGMOID[key["setting"]]}
        if key["populations"]:
            settings["n_populations"] = int(key["populations"])
        planets = datasets.load_exoplanets()
        y = planets.pop("SemiMajorAxisAU")
        planets.columns = [f"x{number}" for number in range(1, 11)]
        posterior = fit_completely(
            planets,
            y,
            preset=key["preset"],
            transforms=["sigmoid"],
            n_chains=int(key["chains"]),
            random_state=int(key["seed"]),
            **settings,
        )
        detected = posterior.features_above(DETECTED)
        return {
            "detected": "; ".join(feature.canonical for feature in detected),
            "greatest_complexity": str(max((one.complexity for one in detected), default=0)),
        }


def _detected(posterior: Posterior) -> list[str]:
    return [str(feature) for feature in posterior.features_above(DETECTED)]


def _is_one_of(text: str, true: tuple[str, ...], posterior: Posterior) -> bool:
    """Whether a feature is a true one, or another spelling of it."""
    return any(
        text == one or text in posterior.aliases(one) or one in posterior.aliases(text)
        for one in true
    )
