"""Latent effects and their posteriors as arrays and JSON, and back."""

from collections.abc import Sequence
from dataclasses import Field, fields, replace
from functools import partial
from typing import Any

import numpy as np

from dbrm.data.archive import Arrays
from dbrm.data.schema import (
    AbstractField,
    AnyOf,
    ArrayOf,
    Flag,
    ListOf,
    Nullable,
    Real,
    Record,
    Text,
    Whole,
)
from dbrm.errors import InvalidFileError, InvalidSettingError
from dbrm.evidence import BoundEffect, Latent, LatentFit, ModelFit
from dbrm.evidence.latent import HYPERPRIORS, LATENT_EFFECTS

__all__ = [
    "EFFECT",
    "MissingEffectError",
    "latent_arrays",
    "latent_names",
    "pack_effects",
    "pack_latent",
    "read_effects",
    "spell_effects",
    "unpack_latent",
]

# The largest number whose square is finite.
_LARGEST = 1e150
_ARRAYS = ("mean", "band", "dense_mean", "dense_covariance", "cross", "psi", "shares")
_PRIOR = AnyOf(
    tuple(
        Record({"prior": Text((name,)), **{part.name: Real() for part in fields(kind)}})
        for name, kind in HYPERPRIORS.items()
    )
)


_BY_TYPE: dict[Any, AbstractField] = {bool: Flag(), int: Whole(low=-(2**63)), float: Real()}


def _option(part: Field[Any]) -> AbstractField:
    if part.name.endswith("_prior"):
        return _PRIOR
    return _BY_TYPE.get(part.type, Nullable(Text()))


#: A latent effect with the names of its groups.
EFFECT = Record(
    {
        "name": Text(),
        "levels": ListOf(AnyOf((Flag(), Text(), Real()))),
        "own": Flag(),
        "centre": Real(),
        "scale": Real(low=1e-150),
        "effect": AnyOf(
            tuple(
                Record(
                    {
                        "kind": Text((name,)),
                        **{part.name: _option(part) for part in fields(kind)},
                    }
                )
                for name, kind in LATENT_EFFECTS.items()
            )
        ),
    },
    optional=frozenset({"own", "effect", "centre", "scale"}),
)


def latent_arrays(name: str) -> dict[str, ArrayOf]:
    """Arrays of the latent effects of some models."""
    stem = f"{name}_latent_#"
    banded, dense, points = f"{stem} banded", f"{stem} dense", f"{stem} points"
    numbers = partial(ArrayOf, "<f8", low=-_LARGEST, high=_LARGEST)
    return {
        f"{stem}_mean": numbers((banded,)),
        f"{stem}_band": numbers((banded, None)),
        f"{stem}_dense_mean": numbers((dense,)),
        f"{stem}_dense_covariance": numbers((dense, dense)),
        f"{stem}_cross": numbers((banded, dense)),
        # Logarithms and logits, whose exponentials must be finite.
        f"{stem}_psi": ArrayOf("<f8", (points, None), low=-300.0, high=300.0),
        f"{stem}_shares": ArrayOf("<f8", (points,), low=0.0, high=1.0 + 1e-6),
        f"{stem}_effects": ArrayOf("<i8", (None,), low=0, below="effects"),
        f"{stem}_unit": ArrayOf("<f8", (1,), low=1e-150, high=_LARGEST),
        f"{stem}_places_#": ArrayOf("<i8", (None,), low=0),
    }


class MissingEffectError(InvalidSettingError):
    """The run used a latent effect of the user's own that was not passed to `load`."""


def spell_effects(effects: Sequence[BoundEffect]) -> list[dict[str, Any]]:
    """The effects and the names of their groups."""
    return [
        {
            "name": bound.effect.name,
            "levels": list(bound.levels),
            "centre": bound.centre,
            "scale": bound.scale,
            **_spell(bound.effect),
        }
        for bound in effects
    ]


def _spell(effect: Latent) -> dict[str, Any]:
    own = LATENT_EFFECTS.get(type(effect).__name__) is not type(effect)
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
        elif "effect" not in item:
            msg = (
                f"The run used a latent effect of your own: {item['name']}. A file holds no code: "
                "pass it, as in dbrm.load(path, latent=[...])."
            )
            raise MissingEffectError(msg)
        else:
            effect = _read(item["effect"])
        levels = tuple(item["levels"])
        positions = arrays.get(f"effect_{k}_positions", np.zeros(0))
        ordered = positions.size > 0 and bool(np.all(np.diff(positions) > 0))
        per_group = effect.bandwidth + 1 if effect.kind == "slopes" else 1
        grouped = effect.kind in ("grouped", "slopes") and effect.column is not None
        if not ordered or (grouped and per_group * len(set(levels)) != positions.size):
            msg = f"the nodes of {item['name']} do not fit together"
            raise InvalidFileError(msg)
        no_rows = np.zeros((0, 1), dtype=np.int64), np.zeros((0, 1))
        standard = item.get("centre", 0.0), item.get("scale", 1.0)
        bounds.append(BoundEffect(effect, positions, *no_rows, levels, *standard))
    return tuple(bounds)


def _read(content: dict[str, Any]) -> Latent:
    options = dict(content)
    kind = LATENT_EFFECTS[options.pop("kind")]
    for name, value in options.items():
        if isinstance(value, dict):
            parts = dict(value)
            options[name] = HYPERPRIORS[parts.pop("prior")](**parts)
    effect: Latent = kind(**options)
    return effect


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


def unpack_latent(
    name: str,
    arrays: Arrays,
    fits: list[ModelFit],
    numbers: Sequence[Sequence[int]],
    bounds: Sequence[BoundEffect],
) -> list[ModelFit]:
    """Put the posteriors of latent effects back into their models.

    Parameters
    ----------
    numbers
        For each model the numbers of its effects.
    bounds
        All effects of the run.
    """
    found = []
    for row, (fit, effects) in enumerate(zip(fits, numbers, strict=True)):
        stem = f"{name}_latent_{row}"
        if not effects:
            found.append(fit)
            continue
        latent = _read_latent(stem, arrays, tuple(effects))
        if not _fits_together(latent, arrays[f"{stem}_effects"].tolist(), fit, bounds):
            msg = f"{stem} does not fit its model"
            raise InvalidFileError(msg)
        found.append(replace(fit, latent=latent))
    return found


def latent_names(name: str, numbers: Sequence[Sequence[int]]) -> set[str]:
    """Names of the arrays of models with these latent effects."""
    parts = (*_ARRAYS, "effects", "unit")
    return {
        f"{name}_latent_{row}_{part}"
        for row, effects in enumerate(numbers)
        if effects
        for part in (*parts, *(f"places_{j}" for j in range(len(effects))))
    }


def _read_latent(stem: str, arrays: Arrays, effects: tuple[int, ...]) -> LatentFit:
    return LatentFit(
        effects=effects,
        places=tuple(arrays[f"{stem}_places_{j}"] for j in range(len(effects))),
        unit=float(arrays[f"{stem}_unit"][0]),
        **{part: arrays[f"{stem}_{part}"] for part in _ARRAYS},
    )


def _fits_together(
    latent: LatentFit, stored: list[int], fit: ModelFit, bounds: Sequence[BoundEffect]
) -> bool:
    chosen = [bounds[k] for k in latent.effects]
    n_variables = latent.mean.size + latent.dense_mean.size
    return (
        stored == list(latent.effects)
        and latent.dense_mean.size >= fit.coefficients.size
        and (latent.mean.size == 0 or latent.band.shape[1] > 0)
        and latent.psi.shape[1] == sum(len(bound.effect.hyperparameters) for bound in chosen)
        and abs(float(latent.shares.sum()) - 1.0) < 1e-6
        and all(
            places.size == bound.size and places.max() < n_variables
            for places, bound in zip(latent.places, chosen, strict=True)
        )
    )
