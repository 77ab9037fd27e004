"""Head of a checkpoint folder: data, settings and seed of the run, and no code.

Settings that are plain values are written. Objects, such as a transform or a prior of the
user's own, are only named; whoever resumes the run passes them again.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from dbrm.chains import Checkpoint
from dbrm.data import Recipe, Table
from dbrm.data.recipe import RECIPE
from dbrm.data.schema import (
    FINITE,
    AnyOf,
    ArrayOf,
    Flag,
    ListOf,
    MappingOf,
    Nullable,
    Plain,
    Real,
    Record,
    Schema,
    Text,
    Whole,
)
from dbrm.errors import CheckpointError, FormulaError, InvalidSettingError
from dbrm.evidence import Observations
from dbrm.evolution import Problem
from dbrm.features import Feature, parse_feature, write_features
from dbrm.run.inputs import RunInputs
from dbrm.run.settings import Settings

__all__ = ["begin_run", "continue_run", "read_run"]

# Settings that a resumed run may change: where, how long and how visibly it works.
RESUMABLE = ("n_jobs", "executor", "progress", "time_budget")
_NOT_KEPT = (*RESUMABLE, "check", "checkpoint", "random_state")

_ENTROPY = Whole(high=2**4096)
_HEAD = Schema(
    Record(
        {
            "fingerprint": Text(),
            "settings": MappingOf(Plain()),
            "objects": MappingOf(ListOf(Text())),
            "how": Record({"time_budget": Nullable(Real())}),
            "seed": Record(
                {
                    "entropy": AnyOf((ListOf(_ENTROPY), _ENTROPY)),
                    "spawn_key": ListOf(Whole(high=2**32 - 1)),
                    "pool_size": Whole(4, 1024),
                    "n_children_spawned": Whole(),
                }
            ),
            "random_state": Nullable(_ENTROPY),
            "pool": Nullable(ListOf(Text())),
            "names": ListOf(Text(), "names"),
            "recipe": Nullable(RECIPE),
            "response": Text(),
            "formula": Text(),
            "given": ListOf(Text()),
            "n_rows": Whole(1),
            "tall": Flag(),
            "strata": ListOf(Text()),
        },
        optional=frozenset({"strata"}),
    ),
    {
        "table": ArrayOf("<f8", ("rows", "names"), low=-FINITE, high=FINITE),
        "column_response": ArrayOf("<f8", ("rows",), low=-FINITE, high=FINITE),
        "column_weights": ArrayOf("<f8", ("rows",), low=0.0, high=FINITE),
        "column_offset": ArrayOf("<f8", ("rows",), low=-FINITE, high=FINITE),
        "column_trials": ArrayOf("<f8", ("rows",), low=0.0, high=FINITE),
        "column_exposure": ArrayOf("<f8", ("rows",), low=0.0, high=FINITE),
        "column_event": ArrayOf("<f8", ("rows",), low=0.0, high=1.0),
        "column_entry": ArrayOf("<f8", ("rows",), low=0.0, high=FINITE),
        "column_strata": ArrayOf("<f8", ("rows",), low=0.0, high=FINITE),
        "place_*": ArrayOf("", ("rows",), low=-FINITE, high=FINITE),
    },
    optional=frozenset(
        f"column_{field.name}" for field in fields(Observations) if field.name != "response"
    ),
)


def begin_run(
    folder: Checkpoint,
    inputs: RunInputs,
    seed: np.random.SeedSequence,
    problem: Problem,
    *,
    swept: bool = True,
) -> None:
    """Write data, settings and seed; without the pool if the sweep was interrupted."""
    names, transforms = problem.table.names, problem.grammar.transforms
    try:
        recipe = inputs.recipe.to_dict()
    except FormulaError:
        recipe = None
    plain, objects = _split(inputs.settings)
    content = {
        "fingerprint": inputs.fingerprint,
        "settings": plain,
        "objects": objects,
        "how": {"time_budget": inputs.settings.time_budget},
        "seed": {
            "entropy": seed.entropy,
            "spawn_key": list(seed.spawn_key),
            "pool_size": seed.pool_size,
            "n_children_spawned": seed.n_children_spawned,
        },
        "random_state": _given_seed(inputs.settings),
        "pool": write_features(problem.pool, names, transforms) if swept else None,
        "recipe": recipe,
        "names": list(names),
        "response": inputs.response,
        "formula": inputs.formula,
        "given": list(inputs.given),
        "n_rows": inputs.n_rows,
        "tall": inputs.rows is not None,
        "strata": list(inputs.strata),
    }
    arrays = {f"column_{name}": column for name, column in inputs.observations.given.items()}
    arrays |= {f"place_{name}": values for name, values in inputs.table.index_columns.items()}
    folder.write_head(uuid.uuid4().hex, content, {"table": inputs.table.values, **arrays})


def continue_run(
    folder: Checkpoint, inputs: RunInputs, problem: Problem
) -> tuple[np.random.SeedSequence, list[Feature] | None]:
    """Seed of the run in the folder, if it is the same run, and the pool once swept."""
    content, _ = folder.read_head(_HEAD)
    where = str(folder.folder)
    if content["fingerprint"] != inputs.fingerprint:
        msg = (
            f"The checkpoint folder {where} belongs to a run on other data: their fingerprints "
            "differ. Resume with the same data, or choose another folder."
        )
        raise CheckpointError(msg)
    plain, objects = _split(inputs.settings)
    kept = content["settings"] | content["objects"]
    given = plain | objects
    changed = sorted(name for name in kept | given if kept.get(name) != given.get(name))
    seeds = content["random_state"], _given_seed(inputs.settings)
    if None not in seeds and seeds[0] != seeds[1]:
        changed.append("random_state")
    if changed:
        msg = (
            f"The checkpoint folder {where} belongs to a run with other settings: "
            f"{', '.join(changed)}. Only {', '.join(RESUMABLE)} may change. Choose another folder."
        )
        raise CheckpointError(msg)
    seed = np.random.SeedSequence(**content["seed"])
    if content["pool"] is None:
        return seed, None
    names, transforms = problem.table.names, problem.grammar.transforms
    pool = [parse_feature(text, names, transforms=transforms) for text in content["pool"]]
    return seed, pool


def read_run(folder: Checkpoint, given: Mapping[str, Any]) -> RunInputs:
    """Inputs of the run in the folder; `given` holds the objects that it only names."""
    if not folder.begun:
        msg = f"There is no run to resume in {folder.folder}: it has no run.dbrm."
        raise CheckpointError(msg)
    content, arrays = folder.read_head(_HEAD)
    if content["recipe"] is None:
        msg = (
            f"The run in {folder.folder} has a formula with expressions, which are code, and "
            "files hold none. Call dbrm.fit with the same formula, data, settings and checkpoint="
            f"{str(folder.folder)!r}: it goes on from there."
        )
        raise CheckpointError(msg)
    if content.get("tall"):
        msg = (
            f"The run in {folder.folder} is on tall data, of which it keeps a sample only. Call "
            "dbrm.fit with the same data, settings and checkpoint="
            f"{str(folder.folder)!r}: it goes on from there."
        )
        raise CheckpointError(msg)
    missing = [name for name in content["objects"] if name not in given]
    if missing:
        listed = ", ".join(f"{name} (a {content['objects'][name][0]})" for name in missing)
        msg = (
            f"The run in {folder.folder} was given objects of yours, which files do not hold: "
            f"{listed}. Pass them again, as in dbrm.resume(folder, {missing[0]}=...)."
        )
        raise InvalidSettingError(msg)
    for name in given:
        if name not in (*RESUMABLE, *content["objects"]):
            msg = (
                f"dbrm.resume cannot change {name!r}: a run keeps its settings. It takes "
                f"{', '.join(RESUMABLE)}, and objects that the folder does not hold."
            )
            raise InvalidSettingError(msg)
    settings = content["settings"] | content["how"] | dict(given)
    settings |= {"random_state": content["random_state"], "checkpoint": str(folder.folder)}
    return RunInputs(
        table=Table(tuple(content["names"]), arrays["table"], _prefixed("place_", arrays)),
        observations=Observations(**_prefixed("column_", arrays)),
        recipe=Recipe.from_dict(content["recipe"]),
        settings=Settings.from_options(settings),
        response=content["response"],
        formula=content["formula"],
        given=tuple(content["given"]),
        n_rows=content["n_rows"],
        strata=tuple(content.get("strata", ())),
    )


def _prefixed(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays whose names begin so, by the rest of their names."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _split(settings: Settings) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings that are plain values, and descriptions of those that are objects."""
    plain, objects = {}, {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name in _NOT_KEPT or value is field.default:
            continue
        try:
            plain[field.name] = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError):
            objects[field.name] = _describe(value)
    return plain, objects


def _describe(value: Any) -> list[str]:
    """Type and, where it says something, text of an object."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ["sequence", *(part for item in value for part in _describe(item))]
    text = repr(value)
    return [type(value).__name__, "" if " at 0x" in text else text]


def _given_seed(settings: Settings) -> int | None:
    given = settings.random_state
    return int(given) if isinstance(given, int | np.integer) else None
