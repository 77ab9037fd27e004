"""Latent effects and their posteriors as arrays and JSON, and back."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dbrm.data.archive import Arrays
from dbrm.errors import InvalidFileError, InvalidSettingError
from dbrm.evidence import BoundEffect, Latent, LatentFit, ModelFit
from dbrm.evidence import latent as builtin

__all__ = [
    "MissingEffectError",
    "pack_effects",
    "pack_latent",
    "read_effects",
    "spell_effects",
    "unpack_latent",
]

_ARRAYS = ("mean", "band", "dense_mean", "dense_covariance", "cross", "psi", "shares")
_PRIORS = {
    kind.__name__: kind
    for kind in (builtin.ExponentialDeviation, builtin.LogGamma, builtin.NormalPrior)
}
_KINDS = {
    kind.__name__: kind
    for kind in (
        builtin.AR1,
        builtin.IID,
        builtin.OU,
        builtin.RW1,
        builtin.RW2,
        builtin.RandomIntercept,
    )
}


class MissingEffectError(InvalidSettingError):
    """The run used a latent effect of the user's own that was not passed to `load`."""


def spell_effects(effects: Sequence[BoundEffect]) -> list[dict[str, Any]]:
    """The effects and the names of their groups."""
    return [
        {"name": bound.effect.name, "levels": list(bound.levels), **_spell(bound.effect)}
        for bound in effects
    ]


def _spell(effect: Latent) -> dict[str, Any]:
    own = type(effect).__name__ not in _KINDS
    return {"own": True} if own else {"effect": effect.to_dict()}


def pack_effects(effects: Sequence[BoundEffect]) -> Arrays:
    """Positions of the nodes."""
    return {f"effect_{k}_positions": bound.positions for k, bound in enumerate(effects)}


def read_effects(
    content: Sequence[dict[str, Any]], arrays: Arrays, given: Sequence[Latent]
) -> tuple[BoundEffect, ...]:
    """The effects with their nodes; which row belongs to which is not in the file."""
    own = {effect.name: effect for effect in given}
    bounds = []
    for k, item in enumerate(content):
        if item["name"] in own:
            effect = own[item["name"]]
        elif item.get("own"):
            msg = (
                f"The run used a latent effect of your own: {item['name']}. A file holds no code: "
                "pass it, as in dbrm.load(path, latent=[...])."
            )
            raise MissingEffectError(msg)
        else:
            effect = _read(item["effect"])
        levels = tuple(item["levels"])
        none = np.zeros(0, dtype=np.int64)
        bounds.append(BoundEffect(effect, arrays[f"effect_{k}_positions"], none, levels))
    return tuple(bounds)


def _read(content: dict[str, Any]) -> Latent:
    options = dict(content)
    kind = _KINDS[options.pop("kind")]
    for name, value in options.items():
        if isinstance(value, dict):
            parts = dict(value)
            options[name] = _PRIORS[parts.pop("prior")](**parts)
    return kind(**options)


def pack_latent(name: str, fits: Sequence[ModelFit]) -> Arrays:
    """Posteriors of the latent effects of some models; nothing if none has any."""
    arrays: Arrays = {}
    for row, fit in enumerate(fits):
        if fit.latent is None:
            continue
        stem = f"{name}_latent_{row}"
        for part in _ARRAYS:
            arrays[f"{stem}_{part}"] = getattr(fit.latent, part)
        arrays[f"{stem}_effects"] = np.array(fit.latent.effects, dtype=np.int64)
        arrays[f"{stem}_unit"] = np.array([fit.latent.unit])
        for position, places in enumerate(fit.latent.places):
            arrays[f"{stem}_places_{position}"] = places
    return arrays


def unpack_latent(name: str, arrays: Arrays, fits: list[ModelFit]) -> list[ModelFit]:
    """Put the posteriors of latent effects back into their models."""
    found = []
    for row, fit in enumerate(fits):
        stem = f"{name}_latent_{row}"
        if f"{stem}_effects" not in arrays:
            found.append(fit)
            continue
        effects = tuple(int(k) for k in arrays[f"{stem}_effects"])
        latent = LatentFit(
            effects=effects,
            places=tuple(arrays[f"{stem}_places_{j}"] for j in range(len(effects))),
            unit=float(arrays[f"{stem}_unit"][0]),
            **{part: arrays[f"{stem}_{part}"] for part in _ARRAYS},
        )
        if latent.dense_mean.size < fit.coefficients.size:
            msg = "its latent effects do not fit its models"
            raise InvalidFileError(msg)
        found.append(replace(fit, latent=latent))
    return found
