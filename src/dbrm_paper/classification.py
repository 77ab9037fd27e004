"""Examples 1 to 3 and Appendix A: near-Earth asteroids, breast cancer, spam."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from dbrm import datasets
from dbrm._typing import Column
from dbrm.features import Feature, covariate, get_transform, modify
from dbrm_paper.competitors import COMPETITORS, DETERMINISTIC, available
from dbrm_paper.runs import AbstractStudy, Key, Options, fit_completely
from dbrm_paper.settings import BEST, EXAMPLES, ClassificationExample

if TYPE_CHECKING:
    import pandas as pd

    from dbrm.posterior import Posterior

__all__ = ["OWN", "STRATEGIES", "Classification"]

# The paper's Q; in the scripts only the size of a population limits a model.
MOST_FEATURES = 20
# Features with a higher inclusion probability are reported (paper, Sec. 4.1).
REPORTED = 0.1

ALGORITHMS = {"G": "gmjmcmc", "R": "rgmjmcmc"}
OWN = ("DBRM_G", "DBRM_R", "DBRM_G_PAR", "DBRM_R_PAR", "LBRM", "DBRM_BEST")
STRATEGIES = tuple(f"DBRM_{letter}_{number}" for number in (2, 3, 4) for letter in "GR")


@final
@dataclass(frozen=True, slots=True)
class Classification(AbstractStudy):
    """One data set, by our methods and their competitors.

    Results: the confusion matrix of the test rows, the mean log score, and the features with
    inclusion above 0.1: how many of each complexity, and the nonlinear ones.
    """

    example: str

    @property
    def name(self) -> str:
        return self.example

    @property
    def key_columns(self) -> tuple[str, ...]:
        return ("preset", "method", "chains", "populations", "seed")

    @property
    def value_columns(self) -> tuple[str, ...]:
        return ("tp", "fn", "fp", "tn", "log_score", "complexities", "nonlinear", "seconds")

    @property
    def _settings(self) -> ClassificationExample:
        return EXAMPLES[self.example]

    def plan(self, options: Options, methods: tuple[str, ...] | None = None) -> list[Key]:
        wanted = (*OWN, *STRATEGIES, *COMPETITORS) if methods is None else methods
        wanted = tuple(one for one in wanted if self._is_available(one))
        return [
            key
            for seed in range(options.runs)
            for method in wanted
            for key in self._keys(method, seed, options)
        ]

    def _is_available(self, method: str) -> bool:
        return available(method) and (method != "DBRM_BEST" or self.example in BEST)

    def _keys(self, method: str, seed: int, options: Options) -> list[Key]:
        if seed > 0 and (method in DETERMINISTIC or (method == "LBRM" and self._enumerated)):
            return []
        presets = options.presets
        chains = populations = ""
        if method in COMPETITORS:
            presets = ("",)
        elif method == "DBRM_BEST":
            presets = ("",)
            chains = str(options.chains or BEST[self.example]["n_chains"])
            populations = options.populations_text
        elif method != "LBRM":
            parallel = method.endswith("_PAR")
            chains = str((options.chains or self._settings.chains) if parallel else 1)
            populations = options.populations_text
        return [
            {
                "preset": preset,
                "method": method,
                "chains": chains,
                "populations": populations,
                "seed": str(seed),
            }
            for preset in presets
        ]

    @property
    def _enumerated(self) -> bool:
        return bool(self._settings.linear["algorithm"] == "enumerate")

    def run(self, key: Key) -> dict[str, str]:
        own = key["method"] == "DBRM_BEST"
        train, y, test, truth = self._data(scaled=self._settings.scaled and not own)
        method, seed = key["method"], int(key["seed"])
        if method in COMPETITORS:
            columns = train.to_numpy(np.float64), y, test.to_numpy(np.float64)
            probability, threshold = COMPETITORS[method](*columns, seed)
            return {**_counts(probability >= threshold, truth), **_score(probability, truth)}
        settings = self._fit_settings(key)
        if own:
            train, test = np.log1p(train), np.log1p(test)
            settings["always"] = _main_effects(train)
        posterior = fit_completely(train, y, family="binomial", random_state=seed, **settings)
        probability = posterior.predict(test)
        return {
            **_counts(probability >= 0.5, truth),
            **_score(probability, truth),
            **_reported(posterior),
        }

    def _fit_settings(self, key: Key) -> dict[str, Any]:
        """Settings of `dbrm.fit` for one of our methods."""
        method, example = key["method"], self._settings
        if method == "DBRM_BEST":
            settings = {**BEST[self.example], "n_chains": int(key["chains"])}
        elif method == "LBRM":
            settings = {"population_size": _n_covariates(self.example), **example.linear}
            if key["preset"] == "paper_text":
                settings["max_model_size"] = MOST_FEATURES
            return {**settings, "preset": key["preset"]}
        else:
            _, letter, *rest = method.split("_")
            many = rest == ["PAR"]
            effort = (example.parallel if many else example.single)[key["preset"]]
            settings = {**example.limits, **effort, "algorithm": ALGORITHMS[letter]}
            if letter == "R":
                settings["n_final"] = example.reversible_steps[many]
            if key["preset"] == "paper_text":
                settings["max_model_size"] = MOST_FEATURES
            settings |= {"preset": key["preset"], "n_chains": int(key["chains"])}
            if rest and not many:
                settings["projection"] = int(rest[0])
        if key["populations"]:
            settings["n_populations"] = int(key["populations"])
        return settings

    def _data(self, *, scaled: bool) -> tuple[pd.DataFrame, Column, pd.DataFrame, Column]:
        split = getattr(datasets, self._settings.loader)()
        train, test = (part.drop(columns=split.response) for part in (split.train, split.test))
        if scaled:
            n = len(train) + len(test)
            centre = (train.sum() + test.sum()) / n
            scale = (
                (((train - centre) ** 2).sum() + ((test - centre) ** 2).sum()) / (n - 1)
            ) ** 0.5
            train, test = (train - centre) / scale, (test - centre) / scale
        y, truth = (part[split.response].to_numpy(np.float64) for part in (split.train, split.test))
        return train, y, test, truth


def _main_effects(train: pd.DataFrame) -> list[Feature]:
    """Every covariate, and the indicator that it is positive unless that is constant."""
    covariates = [covariate(str(name)) for name in train]
    positive = get_transform("step[0]")
    steps = [
        modify(positive, covariate(str(name)))
        for name, column in train.items()
        if np.ptp(positive(column.to_numpy(np.float64))) > 0.0
    ]
    return [*covariates, *steps]


def _n_covariates(example: str) -> int:
    return {"asteroids": 9, "breast-cancer": 30, "spam": 57}[example]


def _counts(predicted: Any, truth: Column) -> dict[str, str]:
    positive = truth == 1.0
    return {
        "tp": str(int(np.sum(predicted & positive))),
        "fn": str(int(np.sum(~predicted & positive))),
        "fp": str(int(np.sum(predicted & ~positive))),
        "tn": str(int(np.sum(~predicted & ~positive))),
        "complexities": "",
        "nonlinear": "",
    }


def _score(probability: Column, truth: Column) -> dict[str, str]:
    """Mean log score, with probabilities clipped away from 0 and 1."""
    kept = np.clip(probability, 1e-15, 1.0 - 1e-15)
    return {"log_score": f"{np.mean(np.where(truth == 1.0, np.log(kept), np.log1p(-kept))):.6f}"}


def _reported(posterior: Posterior) -> dict[str, str]:
    features = posterior.features_above(REPORTED)
    counts = Counter(feature.complexity for feature in features)
    listed = " ".join(f"{complexity}:{count}" for complexity, count in sorted(counts.items()))
    nonlinear = "; ".join(feature.canonical for feature in features if feature.complexity > 1)
    return {"complexities": listed, "nonlinear": nonlinear}
