"""The averaged models as plain data (numbers, text, lists), for predictions by another program.

An interpreter of a few hundred lines computes from it what `Posterior.predict` and
`Posterior.predict_interval` compute: the report's page is one, in
`report/templates/predictor.js`. Formulas are trees of operations, never program text. Arrays are
double precision in base64, so that no digit is lost.
"""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import betaln

from dbrm._typing import FloatArray
from dbrm.data import ColumnRule, Recipe, Table
from dbrm.errors import ExportError
from dbrm.evidence import ClassFamily, Family, JointFit, ModelFit
from dbrm.evidence.families.ordinal import NORMAL_RULE, Ordinal
from dbrm.evidence.joint.survival import SurvivalFamily
from dbrm.features import (
    REALS,
    Covariate,
    Feature,
    Modification,
    Product,
    Projection,
    Standardized,
    covariate,
    expression_tree,
    walk,
)
from dbrm.posterior.portable_survival import affordable_times, survival_data
from dbrm.posterior.prediction import AveragedModels

__all__ = ["Formula", "first_models", "portable_predictor"]

# Terms and coefficients, the intercept first.
Formula = tuple[Sequence[Feature], Sequence[float]]

# Families whose mean is the inverse link of the linear predictor, averaged over coefficients.
_FAMILIES = (
    "beta",
    "binomial",
    "gamma",
    "gaussian",
    "negative_binomial",
    "poisson",
    "student_t",
    "zero_inflated_poisson",
)
_LINKS = ("identity", "logit", "probit", "cloglog", "log")
# Of a number in base64.
_BYTES = 32 / 3
# A t distribution with more degrees of freedom is a normal one.
_NORMAL = 1e12


def portable_predictor(
    averaged: AveragedModels,
    recipe: Recipe,
    training: Table,
    most_bytes: int,
    formulas: Sequence[Formula] = (),
) -> dict[str, Any]:
    """The most probable of the averaged models, as many as fit into about so many bytes.

    Parameters
    ----------
    formulas
        Single models that predict by themselves: their terms and coefficients.

    Raises
    ------
    ExportError
        If a part of the prediction cannot be written as data.
    """
    _check(averaged)
    count, n_times = _count(averaged, most_bytes)
    kept = first_models(averaged, count)
    single = [term for terms, _ in formulas for term in terms]
    columns = sorted({n for f in (*kept.always, *kept.features, *single) for n in f.covariates})
    graph = _Graph(kept, columns)
    features = [graph.add(feature) for feature in (*kept.always, *kept.features)]
    singles = [
        {
            "terms": [graph.add(term) for term in terms],
            "coefficients": list(coefficients),
        }
        for terms, coefficients in formulas
    ]
    inputs = list(_inputs(recipe, training, columns))
    share = float(kept.probability.sum() / averaged.probability.sum())
    return {
        "inputs": [found for _, found in inputs],
        "columns": _columns(recipe, [rule for rule, _ in inputs], columns),
        "ranges": [kept.ranges.get(covariate(name).text) for name in columns],
        "transforms": graph.transforms,
        "nodes": graph.nodes,
        "features": features,
        "names": [str(feature) for feature in (*kept.always, *kept.features)],
        "centres": kept.evaluate(training).mean(axis=0).tolist(),
        "hold": kept.hold,
        "models": _models(kept, graph),
        "predictive": _predictive(kept, training, n_times),
        "formulas": singles,
        "n_models": len(kept.models),
        "n_averaged": len(averaged.models),
        "share": share,
    }


def first_models(averaged: AveragedModels, count: int) -> AveragedModels:
    """The most probable models, with the features that they use."""
    if count >= len(averaged.models):
        return averaged
    models = averaged.models[:count]
    used = np.unique(np.concatenate([*models, np.empty(0, dtype=np.int64)])).astype(np.int64)
    return replace(
        averaged,
        features=tuple(averaged.features[j] for j in used),
        models=[np.searchsorted(used, own) for own in models],
        probability=averaged.probability[:count],
        fits=averaged.fits[:count],
        shifts=averaged.shifts[:count],
        dispersions=averaged.dispersions[:count],
        fitted=averaged.fitted[:count],
        hazards=averaged.hazards and averaged.hazards.take(range(count)),
        straight=averaged.is_linear[:count],
        squares=None if averaged.squares is None else averaged.squares[:count],
    )


def _check(averaged: AveragedModels) -> None:
    if averaged.effects:
        msg = "The models have latent effects."
        raise ExportError(msg)
    if averaged.glm is None:
        return
    family, link = averaged.glm.family, averaged.glm.link
    if isinstance(family, ClassFamily | SurvivalFamily):
        return
    bounded = link.name == "log" and family.mean_interval[1] < np.inf
    if (
        not isinstance(family, Family)
        or family.name not in _FAMILIES
        or link.name not in _LINKS
        or bounded
    ):
        msg = f"The family is {family.label} with the {link.name} link."
        raise ExportError(msg)


def _count(averaged: AveragedModels, most_bytes: int) -> tuple[int, int]:
    """Models that fit: coefficients, half a covariance matrix, a few numbers more.

    Of survival times also how many times of each stratum.
    """
    sizes = np.array([1 + len(averaged.always) + own.size for own in averaged.models])
    numbers = 2 * sizes + 8 + (sizes * (sizes + 1) // 2 if averaged.integrates else 0)
    room = 0.8 * (most_bytes / _BYTES - float(numbers.sum()))
    n_times, every = affordable_times(averaged.hazards, sizes, room)
    if averaged.hazards is not None:
        numbers = numbers + every * (2 + sizes)
    elif averaged.fits[0].joint is not None:
        numbers = numbers + np.array([_joint_of(fit).covariance.size // 2 for fit in averaged.fits])
    return max(1, int(np.searchsorted(np.cumsum(numbers * _BYTES), most_bytes))), n_times


def _encode(values: Any) -> str:
    return b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode("ascii")


class _Graph:
    """Nodes of all features, each once, children before parents."""

    def __init__(self, averaged: AveragedModels, columns: Sequence[str]) -> None:
        self._ranges = averaged.ranges if averaged.hold else {}
        self._column = {name: position for position, name in enumerate(columns)}
        self._seen: dict[str, int] = {}
        self._transform: dict[str, int] = {}
        self.nodes: list[dict[str, Any]] = []
        self.transforms: list[dict[str, Any]] = []

    def column(self, feature: Feature) -> int:
        """The column that a feature is, or -1."""
        return self._column[feature.name] if isinstance(feature, Covariate) else -1

    def add(self, feature: Feature) -> int:
        for node in walk(feature):
            if node.text not in self._seen:
                self.nodes.append(self._describe(node))
                self._seen[node.text] = len(self.nodes) - 1
        return self._seen[feature.text]

    def _describe(self, node: Feature) -> dict[str, Any]:
        of = [self._seen[child.text] for child in node.children]
        clip = self._ranges.get(node.text)
        limits = {} if clip is None else {"clip": list(clip)}
        match node:
            case Covariate():
                return {"column": self._column[node.name], **limits}
            case Product():
                return {"product": of}
            case Standardized():
                return {"of": of[0], "centre": node.centre, "scale": node.scale}
            case Projection():
                function = {"apply": self._apply(node), "knot": node.knot, **limits}
                return {"sum": of, "weights": list(node.weights), "bias": node.bias, **function}
            case Modification():
                return {"apply": self._apply(node), "of": of[0], "knot": node.knot, **limits}
        raise AssertionError(node)

    def _apply(self, node: Modification | Projection) -> int:
        transform = node.transform
        if transform.expression is None:
            msg = f"The transform {transform.name!r} has no expression."
            raise ExportError(msg)
        if transform.name not in self._transform:
            self._transform[transform.name] = len(self.transforms)
            found: dict[str, Any] = {"tree": expression_tree(transform.expression)}
            if transform.domain is not REALS:
                domain = transform.domain
                found["domain"] = [
                    None if np.isinf(domain.low) else domain.low,
                    None if np.isinf(domain.high) else domain.high,
                    domain.low_closed,
                    domain.high_closed,
                ]
            self.transforms.append(found)
        return self._transform[transform.name]


def _inputs(
    recipe: Recipe, training: Table, columns: Sequence[str]
) -> Iterator[tuple[ColumnRule, dict[str, Any]]]:
    """The user's columns that are needed, with the values they can have."""
    for rule in recipe.columns:
        used = [name for name in rule.outputs if name in columns]
        if not used:
            continue
        if rule.coded:
            yield rule, {"name": rule.name, "levels": list(rule.choices)}
            continue
        if rule.kind == "boolean":
            yield rule, {"name": rule.name, "levels": ["false", "true"], "values": [0.0, 1.0]}
            continue
        values = _user_values(rule, recipe, training)
        marks = [float(values.min()), float(values.max()), float(np.median(values))]
        whole = bool(np.all(np.abs(values - np.round(values)) < 1e-9))
        low, high, middle = np.round(marks).tolist() if whole else marks
        yield (
            rule,
            {"name": rule.name, "low": low, "high": high, "start": middle, "whole": whole},
        )


def _user_values(rule: ColumnRule, recipe: Recipe, training: Table) -> FloatArray:
    for name in (rule.name, rule.log_column):
        if name in training.names:
            mean, sd = _unit(recipe, name)
            values = mean + sd * training.column(name)
            if name == rule.name or rule.log_scale is None:
                return np.asarray(values)
            return np.asarray(np.exp(values) - rule.log_scale.shift)
    return np.array([0.0 if rule.fill is None else rule.fill])


def _unit(recipe: Recipe, name: str) -> tuple[float, float]:
    if recipe.scale is None:
        return 0.0, 1.0
    j = recipe.names.index(name)
    return recipe.means[j], recipe.sds[j]


def _columns(
    recipe: Recipe, rules: Sequence[ColumnRule], columns: Sequence[str]
) -> list[dict[str, Any]]:
    """How each column of the table is computed from the inputs."""
    found: dict[str, dict[str, Any]] = {}
    for position, rule in enumerate(rules):
        for name in set(rule.outputs).intersection(columns):
            mean, sd = _unit(recipe, name)
            base = {"input": position, "mean": mean, "sd": sd}
            if rule.coded:
                levels = [rule.at_level(level)[name] for level in rule.choices.values()]
                found[name] = {"input": position, "values": [(v - mean) / sd for v in levels]}
            elif name == rule.missing_column:
                found[name] = {"constant": -mean / sd}
            elif name == rule.log_column:
                assert rule.log_scale is not None
                found[name] = {**base, "floor": rule.log_scale.floor, "shift": rule.log_scale.shift}
            else:
                found[name] = base
    return [found[name] for name in columns]


def _models(kept: AveragedModels, graph: _Graph) -> dict[str, Any]:
    found: dict[str, Any] = {
        "fixed": len(kept.always),
        "plain": [graph.column(feature) for feature in (*kept.always, *kept.features)],
        "sizes": [int(own.size) for own in kept.models],
        "members": [int(j) for own in kept.models for j in own],
        "linear": kept.is_linear.astype(int).tolist(),
        "probability": _encode(kept.probability),
        "modes": _encode(np.concatenate([fit.coefficients for fit in kept.fits])),
        "dispersion": _encode([fit.dispersion for fit in kept.fits]),
    }
    if kept.integrates:
        found["covariance"] = _encode(np.concatenate([_half(f.covariance) for f in kept.fits]))
        moves = np.concatenate(kept.shifts)
        if moves.any():
            found["moves"] = _encode(moves)
    if kept.glm is not None and isinstance(kept.glm.family, ClassFamily):
        found["joint"] = _joint(kept)
    if kept.hold and (kept.glm is None or kept.glm.link.mean_interval[1] == np.inf):
        # Infinite limits are those of models without any.
        found["fitted"] = _encode(kept.fitted)
    return found


def _joint_of(fit: ModelFit) -> JointFit:
    assert fit.joint is not None
    return fit.joint


def _joint(kept: AveragedModels) -> dict[str, Any]:
    """All parameters of models of classes; covariances as lower triangles, row by row."""
    fits = [_joint_of(fit) for fit in kept.fits]
    halves = [fit.covariance[np.tril_indices_from(fit.covariance)] for fit in fits]
    return {
        "counts": [fits[0].ancillary.size, fits[0].coefficients.shape[1]],
        "ancillary": _encode(np.concatenate([fit.ancillary for fit in fits])),
        "coefficients": _encode(np.concatenate([fit.coefficients.ravel() for fit in fits])),
        "covariance": _encode(np.concatenate(halves)),
    }


def _half(covariance: FloatArray) -> FloatArray:
    """The lower triangle, row by row, with the sum of both sides off the diagonal."""
    both = covariance + covariance.T
    both[np.diag_indices_from(both)] *= 0.5
    return np.asarray(both[np.tril_indices_from(both)])


def _predictive(kept: AveragedModels, training: Table, n_times: int) -> dict[str, Any]:
    if kept.hazards is not None:
        found = survival_data(kept, training, n_times)
        return {k: _encode(v) if isinstance(v, np.ndarray) else v for k, v in found.items()}
    if kept.glm is None:
        df = np.array([fit.degrees_of_freedom for fit in kept.fits])
        values, which = np.unique(df, return_inverse=True)
        known = [
            None if value >= _NORMAL else [float(value), float(betaln(0.5 * value, 0.5))]
            for value in values
        ]
        student = {"kind": "student", "mean": "x", "df": known, "of": which.tolist()}
        if kept.squares is not None:
            student |= {"squares": kept.squares.astype(int).tolist(), "origin": kept.origin}
        return student
    family, link = kept.glm.family, kept.glm.link
    if isinstance(family, ClassFamily):
        return _classes(family, kept)
    assert isinstance(family, Family)
    assert link.expression is not None
    models, shares, dispersions, factors = kept.components
    ends = family.clip_mean(np.array([-np.inf, np.inf]))
    return {
        "kind": "family",
        "family": family.name,
        "discrete": family.discrete,
        "dispersed": family.has_dispersion,
        "link": link.name,
        "mean": expression_tree(link.expression),
        "ends": _encode(ends),
        "integrate": kept.integrate,
        "parts": models.tolist(),
        "shares": _encode(shares),
        "factors": _encode(factors),
        "dispersions": _encode(dispersions),
    }


def _classes(family: ClassFamily, kept: AveragedModels) -> dict[str, Any]:
    found: dict[str, Any] = {
        "kind": "classes",
        "family": family.name,
        "integrate": kept.integrate,
        "n_classes": family.n_classes(_joint_of(kept.fits[0])),
    }
    if isinstance(family, Ordinal):
        found |= {"link": family.link, "rule": np.column_stack(NORMAL_RULE).tolist()}
    return found
