"""`Posterior.save` and `dbrm.load`: a posterior as arrays and JSON, and back.

Features are stored as text with all digits, user transforms by name. The fits of all
models that predictions average over are stored, so that a loaded posterior predicts
the same bits without the training data. To recognise other spellings of a feature it
keeps training columns: all rows while they are at most a million numbers, otherwise
an even sample of at least 256 rows.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from dbrm._typing import FloatArray, IntArray
from dbrm.data import Recipe, Table
from dbrm.data.archive import Arrays, read_archive, write_archive
from dbrm.data.schema import refuse_unless
from dbrm.errors import DBRMError, InvalidFileError, InvalidSettingError
from dbrm.evidence import (
    BoundEffect,
    ClassFamily,
    Family,
    JointFamily,
    Latent,
    Link,
    ModelFit,
    find_family,
    find_link,
)
from dbrm.evolution import Candidate
from dbrm.features import Feature, Ranges, Transform, covariate, parse_feature, write_features
from dbrm.features.sets import find_builtin
from dbrm.posterior.diagnostics import Diagnostics
from dbrm.posterior.dispersion import DispersionPosterior
from dbrm.posterior.joint_storage import pack_hazards, pack_joint, unpack_hazards, unpack_joint
from dbrm.posterior.lack_of_fit import known_lack_of_fit
from dbrm.posterior.latent_storage import (
    MissingEffectError,
    latent_names,
    pack_effects,
    pack_latent,
    read_effects,
    spell_effects,
    unpack_latent,
)
from dbrm.posterior.layout import POSTERIOR
from dbrm.posterior.merge import Merged
from dbrm.posterior.path import PathStep
from dbrm.posterior.posterior import Posterior
from dbrm.posterior.record import RunRecord
from dbrm.posterior.remainder import RemainderModels
from dbrm.posterior.source import AveragedFits, Glm, Source, StoredSource
from dbrm.search import ModelTable, effects_of
from dbrm.status import Status

__all__ = ["load", "save"]

_MOST_NUMBERS, _FEWEST_ROWS = 1_000_000, 256
_MODEL_ARRAYS = ("keys", "starts", "members", "log_evidence", "log_prior", "statuses", "latent")


def save(posterior: Posterior, path: str | os.PathLike[str]) -> None:
    """Write a posterior; see `Posterior.save`."""
    merged, source, glm = posterior._merged, posterior._source, posterior._source.glm
    reports = [posterior.best_model, posterior.median_probability_model]
    always = len(source.always)
    position = {feature.key: j for j, feature in enumerate(merged.features)}
    candidate = posterior.diagnostics.candidate
    content = {
        "recipe": posterior.recipe.to_dict(),
        "record": asdict(posterior.record) | {"chain_log_mass": None},
        "features": _spell(merged.features, source),
        "aliases": {j: _spell(others, source) for j, others in merged.aliases.items()},
        "always": _spell(source.always, source),
        "transforms": [transform.name for transform in source.transforms],
        "law": None if glm is None else [glm.family.text, glm.link.name],
        "n_refined": merged.n_refined,
        "names": list(source.table.names),
        "n_rows": source.n_rows,
        "reports": [[position[t.key] for t in model.terms[always:]] for model in reports],
        "report_effects": [list(m.fit.latent.effects) if m.fit.latent else [] for m in reports],
        "effects": spell_effects(source.effects),
        "unexplored": posterior.diagnostics.unexplored,
        "disagreements": posterior.diagnostics.disagreements,
        "latent_disagreements": posterior.diagnostics.latent_disagreements,
        "draws": list(posterior.diagnostics.rhat),
        "ranges": list(posterior._predictive.ranges),
        "candidate": candidate and asdict(candidate),
        "path": [step.to_dict() for step in posterior.path_steps],
        "lack_of_fit": known_lack_of_fit(posterior),
        "unvisited": merged.unvisited,
    }
    arrays: Arrays = {
        "probability": merged.probability,
        "chain_log_mass": np.array(posterior.record.chain_log_mass, dtype=np.float64),
        "mass": np.array([merged.log_mass, merged.log_lost]),
        "visited": np.concatenate(merged.visited),
        "visited_sizes": np.array([rows.size for rows in merged.visited]),
        "table": _sample(source.table),
        "chain_inclusion": posterior.diagnostics.chain_inclusion,
        "captured": posterior.diagnostics.captured,
        "rhat": np.array(list(posterior.diagnostics.rhat.values()), dtype=np.float64),
        "effective": np.array(list(posterior.diagnostics.effective_draws.values()), dtype=float),
        **{f"models_{name}": getattr(merged.models, name) for name in _MODEL_ARRAYS},
        **_pack("averaged", posterior._averaged.fits),
        "averaged_shifts": np.concatenate(posterior._averaged.shifts),
        "fitted_ranges": posterior._averaged.fitted,
        "ranges": np.array(list(posterior._predictive.ranges.values())).reshape(-1, 2),
        **_pack_dispersions(posterior._averaged.dispersions),
        **_pack("reports", [model.fit for model in reports]),
        **pack_effects(source.effects),
        **pack_latent("averaged", posterior._averaged.fits),
        **pack_latent("reports", [model.fit for model in reports]),
        **pack_joint("averaged", posterior._averaged.fits),
        **pack_joint("reports", [model.fit for model in reports]),
        **pack_hazards(posterior._averaged.hazards),
    }
    if merged.frequency is not None:
        arrays["frequency"] = merged.frequency
    if (remainder := posterior._remainder) is not None:
        content["remainder"] = _spell(remainder.features, source)
        arrays |= _pack_remainder(remainder)
    write_archive(path, content, arrays)


def load(
    path: str | os.PathLike[str],
    *,
    transforms: Iterable[Transform] = (),
    family: Family | None = None,
    link: Link | None = None,
    latent: Iterable[Latent] = (),
) -> Posterior:
    """Read a posterior that `Posterior.save` wrote.

    Parameters
    ----------
    path
        The file.
    transforms
        Your own transforms, if the run used any: files hold names, never code.
    family, link, latent
        Your own family, link or latent effects, likewise.

    Raises
    ------
    InvalidFileError
        If the file is damaged, was not written by dbrm or by a newer version of it.
    InvalidSettingError
        If a transform, family or link of your own is missing.
    """
    content, arrays = read_archive(path, lambda _: POSTERIOR)
    try:
        known = _known_transforms(content, tuple(transforms))
        effects = read_effects(content["effects"], arrays, tuple(latent))
        return _restore(content, arrays, known, _glm(content, family, link), effects)
    except (MissingEffectError, _MissingPartError):
        raise
    except DBRMError as error:
        msg = f"{path} does not hold a posterior: {str(error).rstrip('.')}."
        raise InvalidFileError(msg) from error


class _MissingPartError(InvalidSettingError):
    """The run used something of the user's own that was not passed to `load`."""


def _spell(features: Iterable[Feature], source: Source) -> list[str]:
    return write_features(features, source.table.names, source.transforms)


def _sample(table: Table) -> FloatArray:
    wanted = max(_FEWEST_ROWS, _MOST_NUMBERS // max(table.n_columns, 1))
    if table.n_rows <= wanted:
        return table.values
    return table.values[np.linspace(0, table.n_rows - 1, wanted).astype(np.int64)]


def _pack(name: str, fits: Sequence[ModelFit]) -> Arrays:
    numbers = [
        (fit.log_evidence, fit.log_likelihood, fit.dispersion, fit.degrees_of_freedom)
        for fit in fits
    ]
    return {
        f"{name}_sizes": np.array([fit.coefficients.size for fit in fits], dtype=np.int64),
        f"{name}_numbers": np.array(numbers, dtype=np.float64).reshape(-1, 4),
        f"{name}_statuses": np.array([fit.status for fit in fits], dtype=np.uint8),
        f"{name}_coefficients": np.concatenate([fit.coefficients for fit in fits]),
        f"{name}_covariances": np.concatenate([fit.covariance.ravel() for fit in fits]),
    }


def _unpack(name: str, arrays: Arrays) -> list[ModelFit]:
    sizes, statuses = arrays[f"{name}_sizes"], arrays[f"{name}_statuses"]
    numbers = arrays[f"{name}_numbers"]
    means = _split(f"{name}_coefficients", arrays, sizes)
    flat = _split(f"{name}_covariances", arrays, sizes**2)
    refuse_unless(np.isin(statuses, list(Status)).all(), f"{name}_statuses")
    sound = (numbers[:, 2] > 0) & (numbers[:, 2] < np.inf) & (numbers[:, 3] > 0)
    refuse_unless(sound.all(), f"{name}_numbers")
    fits = []
    for row, (evidence, likelihood, dispersion, df) in enumerate(numbers.tolist()):
        covariance = flat[row].reshape(sizes[row], sizes[row])
        status = Status(int(statuses[row]))
        fits.append(ModelFit(evidence, likelihood, means[row], covariance, dispersion, df, status))
    return fits


def _split(name: str, arrays: Arrays, sizes: IntArray) -> list[npt.NDArray[Any]]:
    """An array as parts of these sizes."""
    refuse_unless(arrays[name].size == sizes.sum(), name)
    return np.split(arrays[name], np.cumsum(sizes)[:-1])


def _pack_dispersions(posteriors: Sequence[DispersionPosterior]) -> Arrays:
    parts = [np.array([p.values, p.weights, p.factors]) for p in posteriors]
    return {
        "dispersions": np.concatenate(parts, axis=1),
        "dispersion_sizes": np.array([part.shape[1] for part in parts], dtype=np.int64),
    }


def _unpack_dispersions(arrays: Arrays) -> list[DispersionPosterior]:
    sizes = arrays["dispersion_sizes"]
    refuse_unless(arrays["dispersions"].shape[1] == sizes.sum(), "dispersions")
    parts = np.split(arrays["dispersions"], np.cumsum(sizes)[:-1], axis=1)
    return [DispersionPosterior(*part) for part in parts]


def _pack_remainder(remainder: RemainderModels) -> Arrays:
    return {
        **_pack("remainder", remainder.fits),
        **pack_joint("remainder", remainder.fits),
        "remainder_probability": remainder.probability,
        "remainder_members": np.concatenate(remainder.models),
        "remainder_fitted": remainder.fitted,
        "remainder_shifts": np.concatenate(remainder.shifts),
        **_pack_root(remainder),
    }


def _pack_root(remainder: RemainderModels) -> Arrays:
    if remainder.squares is None:
        return {}
    squares = remainder.squares.astype(np.uint8)
    return {"remainder_squares": squares, "remainder_origin": np.array([remainder.origin])}


def _unpack_remainder(
    features: Sequence[Feature], arrays: Arrays, ranges: Ranges
) -> RemainderModels | None:
    """The models with a remainder; none in files of older versions."""
    if not features:
        return None
    refuse_unless("remainder_sizes" in arrays, "remainder")
    fits = unpack_joint("remainder", arrays, _unpack("remainder", arrays))
    sizes = arrays["remainder_sizes"] - 1
    refuse_unless(bool(arrays["remainder_probability"].sum() <= 1.0 + 1e-6), "remainder")
    inputs = {name for feature in features for name in feature.covariates}
    refuse_unless(all(covariate(name).text in ranges for name in inputs), "ranges")
    _check_ranges(arrays["remainder_fitted"], None)
    shifts = [np.zeros_like(fit.coefficients) for fit in fits]
    if "remainder_shifts" in arrays:
        shifts = _split("remainder_shifts", arrays, arrays["remainder_sizes"])
    squares, origin = None, 0.0
    if "remainder_squares" in arrays:
        refuse_unless("remainder_origin" in arrays, "remainder_origin")
        squares = arrays["remainder_squares"] == 1
        origin = float(arrays["remainder_origin"][0])
    return RemainderModels(
        probability=arrays["remainder_probability"],
        features=tuple(features),
        models=_split("remainder_members", arrays, sizes),
        fits=fits,
        shifts=shifts,
        ranges=ranges,
        fitted=arrays["remainder_fitted"],
        squares=squares,
        origin=origin,
    )


def _known_transforms(
    content: dict[str, Any], given: tuple[Transform, ...]
) -> tuple[Transform, ...]:
    own = {transform.name: transform for transform in given}
    names = content["transforms"]
    missing = [name for name in names if name not in own and find_builtin(name) is None]
    if missing:
        listed = ", ".join(repr(name) for name in missing)
        msg = (
            f"The run used transforms of your own: {listed}. A file holds no code: pass them, "
            "as in dbrm.load(path, transforms=[...])."
        )
        raise _MissingPartError(msg)
    found = [own.get(name) or find_builtin(name) for name in names]
    return tuple(transform for transform in found if transform is not None)


def _glm(content: dict[str, Any], family: Family | None, link: Link | None) -> Glm | None:
    names = content["law"]
    if names is None:
        return None
    try:
        glm = Glm(find_family(family or names[0]), find_link(link or names[1]))
        if isinstance(glm.family, JointFamily):
            glm = Glm(glm.family.with_link(names[1]), glm.link)
    except DBRMError as error:
        msg = f"{error} Pass your own to dbrm.load as family= or link=."
        raise _MissingPartError(msg) from error
    return glm


def _restore(
    content: dict[str, Any],
    arrays: Arrays,
    transforms: tuple[Transform, ...],
    glm: Glm | None,
    effects: tuple[BoundEffect, ...],
) -> Posterior:
    names = tuple(content["names"])
    refuse_unless(len(arrays["table"]) > 0, "table")
    refuse_unless(content["recipe"]["names"] == content["names"], "recipe")

    def read(texts: Iterable[str]) -> list[Feature]:
        return [parse_feature(text, names, transforms=transforms) for text in texts]

    features = read(content["features"])
    models = ModelTable(**{name: arrays[f"models_{name}"] for name in _MODEL_ARRAYS})
    _check_models(models, arrays["probability"], len(effects))
    merged = Merged(
        features=features,
        aliases={int(j): read(texts) for j, texts in content["aliases"].items()},
        models=models,
        probability=arrays["probability"],
        log_mass=float(arrays["mass"][0]),
        log_lost=float(arrays["mass"][1]),
        n_refined=content["n_refined"],
        visited=_split("visited", arrays, arrays["visited_sizes"]),
        frequency=arrays.get("frequency"),
        unvisited=content.get("unvisited", 0.0),
    )
    averaged, reports = (
        unpack_joint(name, arrays, _unpack(name, arrays)) for name in ("averaged", "reports")
    )
    pairs = zip(content["ranges"], arrays["ranges"].tolist(), strict=True)
    ranges: Ranges = {text: (low, high) for text, (low, high) in pairs}
    remainder = _unpack_remainder(read(content.get("remainder", ())), arrays, ranges)
    if glm is not None and isinstance(glm.family, ClassFamily):
        n_classes = len(content["record"].get("classes", ()))
        beside = () if remainder is None else remainder.fits
        known = [fit.joint for fit in (*averaged, *reports, *beside)]
        refuse_unless(all(j and glm.family.n_classes(j) == n_classes for j in known), "classes")
    refuse_unless(0 < len(averaged) <= len(models), "averaged_sizes")
    _check_ranges(arrays["fitted_ranges"], glm)
    if glm is not None:
        _check_predictor((*averaged, *reports))
    masks = effects_of(models.latent[: len(averaged)], len(effects))
    numbers = [np.flatnonzero(mask).tolist() for mask in masks]
    _check_latent_names(arrays, numbers, content["report_effects"], len(effects))
    always = read(content["always"])
    used = {number for row in range(len(averaged)) for number in models.features_of(row)}
    inputs = {name for f in (*always, *(features[j] for j in used)) for name in f.covariates}
    refuse_unless(all(covariate(name).text in ranges for name in inputs), "ranges")
    source = StoredSource(
        table=Table(names, arrays["table"]),
        n_rows=content["n_rows"],
        transforms=transforms,
        always=tuple(always),
        glm=glm,
        effects=effects,
        averaged=AveragedFits(
            fits=unpack_latent("averaged", arrays, averaged, numbers, effects),
            shifts=_split("averaged_shifts", arrays, arrays["averaged_sizes"]),
            dispersions=_unpack_dispersions(arrays),
            ranges=ranges,
            fitted=arrays["fitted_ranges"],
            hazards=unpack_hazards(arrays, averaged, glm and glm.family),
        ),
        path=[PathStep.from_dict(step) for step in content.get("path", ())],
        lack_of_fit=content.get("lack_of_fit"),
        remainder=remainder,
        reports=dict(
            zip(
                _reported(content, features),
                unpack_latent("reports", arrays, reports, content["report_effects"], effects),
                strict=True,
            )
        ),
    )
    diagnostics = Diagnostics(
        chain_inclusion=arrays["chain_inclusion"],
        captured=arrays["captured"],
        unexplored=content["unexplored"],
        rhat=dict(zip(content["draws"], arrays["rhat"].tolist(), strict=True)),
        effective_draws=dict(zip(content["draws"], arrays["effective"].tolist(), strict=True)),
        disagreements=content["disagreements"],
        latent_disagreements=content["latent_disagreements"],
        candidate=Candidate(**found) if (found := content["candidate"]) else None,
    )
    recipe = Recipe.from_dict(content["recipe"])
    record = _record(content["record"], arrays["chain_log_mass"])
    posterior = Posterior(merged, source, recipe, record, diagnostics)
    _check_fits(posterior, source)
    return posterior


def _reported(content: dict[str, Any], features: Sequence[Feature]) -> list[tuple[int, ...]]:
    """Keys by which `StoredSource.fit` finds its models."""
    return [
        (*(features[j].key for j in members), *numbers)
        for members, numbers in zip(content["reports"], content["report_effects"], strict=True)
    ]


def _check_models(models: ModelTable, probability: FloatArray, n_effects: int) -> None:
    """Raise unless these are models, the most probable first."""
    refuse_unless(len(models) > 0 and models.is_sound(n_effects), "models")
    falling = bool(np.all(np.diff(probability) <= 0))
    refuse_unless(falling and abs(float(probability.sum()) - 1.0) < 1e-6, "probability")


def _check_predictor(fits: Iterable[ModelFit]) -> None:
    """Raise unless linear predictors of a family have finite means, variances and precisions."""
    for fit in fits:
        sound = 1e-150 < fit.dispersion < 1e150
        sound = sound and bool(np.all(np.abs(fit.coefficients) < 1e150))
        refuse_unless(sound and np.all(np.abs(fit.covariance) < 1e150), "A fit of a model")


def _check_ranges(ranges: FloatArray, glm: Glm | None) -> None:
    """Raise unless these are ranges of means, of which the higher end is a possible mean."""
    low, high = ranges.T
    least = -np.inf if glm is None else glm.link.mean_interval[0]
    refuse_unless(np.all((low <= high) & (low < np.inf) & (high > least)), "fitted_ranges")


def _check_latent_names(
    arrays: Arrays, averaged: Sequence[list[int]], reports: Sequence[list[int]], n_effects: int
) -> None:
    """Raise unless there are the latent effects of the models, and no others."""
    wanted = latent_names("averaged", averaged) | latent_names("reports", reports)
    wanted |= {f"effect_{k}_positions" for k in range(n_effects)}
    found = {name for name in arrays if "_latent_" in name or name.startswith("effect_")}
    odd = sorted(wanted ^ found)
    refuse_unless(not odd, odd[0] if odd else "")


def _check_fits(posterior: Posterior, source: StoredSource) -> None:
    """Raise unless there is a fit, of the right size, for every model that needs one."""
    fits, models, fixed = source.averaged.fits, posterior._merged.models, 1 + len(source.always)
    sizes = models.sizes[: len(fits)] + fixed
    refuse_unless(sizes.tolist() == [fit.coefficients.size for fit in fits], "averaged_sizes")
    for members, effects in (posterior._best, posterior._median):
        features = [posterior._merged.features[j] for j in members]
        refuse_unless(source.has_fit(features, effects, fixed + len(features)), "reports")


def _record(content: dict[str, Any], chain_log_mass: FloatArray) -> RunRecord:
    changed = {
        "status_counts": {int(code): count for code, count in content["status_counts"].items()},
        "moves": {name: (tried, passed) for name, (tried, passed) in content["moves"].items()},
        "chain_log_mass": tuple(chain_log_mass.tolist()),
        "failures": {int(chain): text for chain, text in content.get("failures", {}).items()},
        "given": tuple(content.get("given", ())),
        "strata": tuple(content.get("strata", ())),
        "classes": tuple(content.get("classes", ())),
    }
    return RunRecord(**(content | changed))
