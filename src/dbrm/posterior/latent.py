"""Latent effects averaged over models: inclusion, hyperparameters, curves."""

from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.special import ndtri

from dbrm._typing import FloatArray
from dbrm.errors import InvalidSettingError, UnknownNameError
from dbrm.evidence import BoundEffect
from dbrm.posterior.new_data import check_level
from dbrm.posterior.prediction import AveragedModels

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LatentEffects"]


@final
class LatentEffects:
    """Tables of the latent effects of one posterior.

    Parameters
    ----------
    inclusion
        Posterior probability of each effect.
    """

    def __init__(self, averaged: AveragedModels, inclusion: FloatArray) -> None:
        self._averaged = averaged
        self._inclusion = inclusion

    @property
    def _bounds(self) -> tuple[BoundEffect, ...]:
        return self._averaged.effects

    def table(self) -> "pd.DataFrame":
        """Effects with inclusion and hyperparameters, most probable first."""
        import pandas as pd

        order = np.argsort(-self._inclusion, kind="stable")
        return pd.DataFrame(
            {
                "effect": [self._bounds[k].effect.name for k in order],
                "inclusion": self._inclusion[order],
                "nodes": [self._bounds[k].size for k in order],
                "hyperparameters": [self._hyperparameters(int(k)) for k in order],
            }
        )

    def _hyperparameters(self, number: int) -> dict[str, float]:
        """Natural hyperparameters at the posterior mean of psi, given the effect."""
        total, mass, unit = None, 0.0, 1.0
        for p, fit in zip(self._averaged.probability, self._averaged.fits, strict=True):
            latent = fit.latent
            if latent is None or number not in latent.effects:
                continue
            psi = latent.split_psi(self._bounds)[latent.effects.index(number)]
            mean = latent.shares @ psi
            total = p * mean if total is None else total + p * mean
            mass, unit = mass + p, latent.unit
        if total is None:
            return {}
        bound = self._bounds[number]
        values = bound.effect.natural(np.asarray(total / mass))
        scales = {"precision": 1.0, "slope_precision": bound.scale}
        return {
            name: v * (scales[name] / unit) ** 2 if name in scales else v
            for name, v in values.items()
        }

    def find(self, name: str) -> int:
        """Number of an effect by its name."""
        names = [bound.effect.name for bound in self._bounds]
        if name not in names:
            listed = ", ".join(names) or "none was offered"
            msg = f"There is no latent effect {name!r}. Latent effects: {listed}."
            raise UnknownNameError(msg)
        return names.index(name)

    def curve(self, name: str, level: float) -> "pd.DataFrame":
        """An effect at its nodes, averaged over the models that contain it."""
        import pandas as pd

        check_level(level)
        number = self.find(name)
        bound = self._bounds[number]
        mass, mean, second = 0.0, np.zeros(bound.size), np.zeros(bound.size)
        for p, fit in zip(self._averaged.probability, self._averaged.fits, strict=True):
            latent = fit.latent
            if latent is None or number not in latent.effects:
                continue
            location, spread = latent.effect(latent.effects.index(number))
            mass += p
            mean += p * location
            second += p * (spread**2 + location**2)
        if mass == 0.0:
            msg = (
                f"No model that predictions average over contains {name}: its inclusion "
                f"probability is {self._inclusion[number]:.2g}."
            )
            raise InvalidSettingError(msg)
        mean, second = mean / mass, second / mass
        spread = np.sqrt(np.maximum(second - mean**2, 0.0))
        half = float(ndtri(0.5 + level / 2)) * spread
        table = pd.DataFrame(
            {
                **_node_names(bound),
                "mean": mean,
                "sd": spread,
                "lower": mean - half,
                "upper": mean + half,
            }
        )
        if bound.effect.kind == "slopes":
            # Slopes come last in each group, per unit of the covariate.
            slopes = np.arange(bound.size) % bound.per_group == bound.per_group - 1
            table.loc[slopes, ["mean", "sd", "lower", "upper"]] /= bound.scale
        return table


def _node_names(bound: BoundEffect) -> dict[str, Any]:
    """Columns that tell which node a row is."""
    column = bound.effect.column or "row"
    if not bound.levels:
        return {column: bound.positions}
    groups = [level for level in bound.levels for _ in range(bound.per_group)]
    if bound.effect.kind != "slopes":
        return {column: groups}
    terms = ["intercept", bound.effect.columns[1]][2 - bound.per_group :]
    return {column: groups, "term": terms * len(bound.levels)}
