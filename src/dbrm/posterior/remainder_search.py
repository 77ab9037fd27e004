"""Models of features beside a remainder: which ones, and how plausible they are.

Models are subsets of the leading features. Those of a Gaussian response are found by adding and
dropping one feature at a time, for each kind of remainder and each of a few ratios of variances; of
other families fewer are tried. Every model that was met counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from dbrm._typing import FloatArray, IntArray, Mask, Masks, Matrix
from dbrm.evidence import GaussianEngine, GlmEngine, JointEngine
from dbrm.evidence.glm_remainder import GlmRemainder
from dbrm.evidence.joint.remainder import JointRemainder
from dbrm.evidence.remainder import Remainder
from dbrm.evidence.root_scale import RootScale
from dbrm.evolution import Problem
from dbrm.features import Feature, evaluate
from dbrm.posterior.merge import Merged
from dbrm.posterior.remainder_columns import Covariates
from dbrm.posterior.remainder_kinds import Kind, RemainderEngine, find_kinds

__all__ = ["Found", "Search", "add_and_drop", "thin_out"]

# Prior ratios of the variances of remainder and noise, equally plausible; for other families the
# prior variance of the remainder.
RATIOS = tuple(4.0**k for k in range(-2, 5))
# Of several classes, which may be far apart in combinations of columns that vary little.
CLASS_RATIOS = tuple(4.0**k for k in range(-2, 7))
# Ratios are tried from the likeliest on, until models are less plausible by this factor.
_LOG_FACTOR = 6.0
# Features of a model at most.
_MOST_IN_MODEL = 20

# Models, and the kind, ratio and log posterior of each.
_Part = tuple[Masks, IntArray, FloatArray, FloatArray]


@final
@dataclass(frozen=True, eq=False)
class Search:
    """Models over a few features, beside the remainder.

    Parameters
    ----------
    features, columns, log_prior
        The leading features of the posterior, their columns, and terms of the prior.
    best
        Which of them are in the best model.
    """

    problem: Problem
    covariates: Covariates
    features: tuple[Feature, ...]
    columns: Matrix
    log_prior: FloatArray
    best: Mask

    @classmethod
    def of(
        cls, problem: Problem, covariates: Covariates, merged: Merged, leading: IntArray
    ) -> "Search":
        """Models over these features of the posterior."""
        features = [merged.features[j] for j in leading]
        terms = [problem.model_prior.feature_log_prior(feature) for feature in features]
        return cls(
            problem,
            covariates,
            tuple(features),
            evaluate(features, problem.table)[0],
            np.array(terms, dtype=float),
            np.isin(leading, merged.models.features_of(0)),
        )

    @cached_property
    def nothing(self) -> Mask:
        """The model without features."""
        return np.zeros(len(self.features), dtype=np.bool_)

    def model_prior(self, masks: Masks) -> FloatArray:
        """Log prior of models; minus infinity for those that are too large."""
        sizes = masks.sum(axis=1)
        prior = masks @ self.log_prior + self.problem.model_prior.size_log_prior(sizes)
        most = min(_MOST_IN_MODEL, self.problem.max_model_size, len(self.features))
        return np.where(sizes <= most, prior, -np.inf)

    def kinds(self, engine: RemainderEngine, mask: Mask) -> list[Kind]:
        """Kinds of remainders, learnt beside this model."""
        return find_kinds(engine, self.covariates, self.columns[:, mask])


@final
@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Models with a remainder: features, kind and ratio of the remainder, log posterior."""

    kinds: Sequence[Kind]
    masks: Masks
    kind: IntArray
    ratio: FloatArray
    values: FloatArray

    def take(self, order: IntArray) -> "Found":
        """Some of them."""
        return replace(
            self,
            masks=self.masks[order],
            kind=self.kind[order],
            ratio=self.ratio[order],
            values=self.values[order],
        )


def add_and_drop(search: Search, engine: GaussianEngine) -> Found | None:
    """Gaussian models: climb from nothing, for every remainder; neighbours count, too.

    The models are of the response, or of its root where it has one; both are equally plausible.
    """
    root = RootScale.of(engine)
    kinds, parts = _kinds(search, engine), []
    scales = [(kinds, 0.0 if root is None else -float(np.log(2.0)))]
    if root is not None:
        own = [replace(kind, squared=True) for kind in _kinds(search, root.engine)]
        kinds = [*kinds, *own]
        scales.append((own, root.log_jacobian - float(np.log(2.0))))
    number = 0
    for alike, log_weight in scales:
        prior = log_weight - float(np.log(max(len(RATIOS) * len(alike), 1)))
        for kind in alike:
            parts += _climb_beside(search, kind, number, prior)
            number += 1
    if not parts:
        return None
    return Found(kinds, *(np.concatenate(own) for own in zip(*parts, strict=True)))


def _kinds(search: Search, engine: GaussianEngine) -> list[Kind]:
    """Learnt where there is nothing else, and beside the best model."""
    kinds = search.kinds(engine, search.nothing)
    return kinds + search.kinds(engine, search.best) if search.best.any() else kinds


def thin_out(search: Search, engine: GlmEngine | JointEngine) -> Found | None:
    """Other families: none of the features, those of the best model, and fewer.

    The best model loses the feature of the smallest Wald statistic, one after the other, beside the
    remainder that suits it best; the most probable of these models is tried beside all others.
    """
    kinds: list[Kind] = []
    rows: list[tuple[Mask, int, float, float]] = []

    def visit(mask: Mask, first: int) -> tuple[int, float]:
        """Beside the remainders from this one on; returns the one that suits this model best."""
        prior = float(search.model_prior(mask[None])[0])
        prior -= float(np.log(len(_ratios(engine)) * (len(kinds) - first)))
        begin = len(rows)
        for number in range(first, len(kinds)):
            for ratio, value in _modes_beside(search, kinds[number], mask, _ratios(engine)):
                rows.append((mask, number, ratio, prior + value))
        _, number, ratio, _ = max(rows[begin:], key=lambda row: row[3])
        return number, ratio

    kinds += search.kinds(engine, search.nothing)
    if kinds:
        visit(search.nothing, 0)
    if kinds and search.best.any():
        first = len(kinds)
        kinds += search.kinds(engine, search.best)
        number, ratio = visit(search.best, first)
        fewer = _fewer_features(search, kinds[number], ratio)
        if fewer is not None and not np.array_equal(fewer, search.best):
            visit(fewer, first)
    if not rows:
        return None
    return Found(
        kinds,
        np.array([mask for mask, *_ in rows], dtype=np.bool_),
        np.array([kind for _, kind, *_ in rows], dtype=np.int64),
        np.array([ratio for *_, ratio, _ in rows]),
        np.array([value for *_, value in rows]),
    )


def _ratios(engine: RemainderEngine) -> tuple[float, ...]:
    return CLASS_RATIOS if isinstance(engine, JointEngine) else RATIOS


def _try_ratios(
    visit: Callable[[float], float], likeliest: float, ratios: tuple[float, ...]
) -> None:
    """Visit ratios from the likeliest on, down and up, while they are plausible."""
    middle = int(np.argmin(np.abs(np.log(ratios) - np.log(likeliest))))
    best = visit(ratios[middle])
    for side in (ratios[:middle][::-1], ratios[middle + 1 :]):
        for ratio in side:
            value = visit(ratio)
            best = max(best, value)
            if not value > best - _LOG_FACTOR:
                break


def _climb_beside(search: Search, kind: Kind, number: int, prior: float) -> list[_Part]:
    """The models that are met beside a remainder, for all plausible ratios."""
    remainder, parts = kind.remainder, []
    assert isinstance(remainder, Remainder)

    def visit(ratio: float) -> float:
        masks, values = _climb(search, remainder, ratio)
        own = (masks, np.full(len(masks), number), np.full(len(masks), ratio))
        parts.append((*own, values + kind.log_weight + prior))
        return float(values.max())

    _try_ratios(visit, kind.ratio, RATIOS)
    return parts


def _modes_beside(
    search: Search, kind: Kind, mask: Mask, ratios: tuple[float, ...]
) -> list[tuple[float, float]]:
    """Plausible ratios of a remainder beside a model, and the log evidence of each."""
    remainder, found = kind.remainder, []
    assert isinstance(remainder, GlmRemainder | JointRemainder)
    start: FloatArray | None = None

    def visit(ratio: float) -> float:
        nonlocal start
        mode = remainder.find_mode(search.columns[:, mask], ratio, start)
        start = mode.parameters if np.isfinite(mode.log_evidence) else None
        found.append((ratio, mode.log_evidence + kind.log_weight))
        return mode.log_evidence

    _try_ratios(visit, kind.ratio, ratios)
    return found


def _climb(search: Search, remainder: Remainder, ratio: float) -> tuple[Masks, FloatArray]:
    """The models that are met, and their log posteriors."""
    size = len(search.features)
    prepared = remainder.prepare(search.columns, ratio)

    def score(masks: Masks) -> FloatArray:
        return remainder.log_evidence(prepared, masks, ratio) + search.model_prior(masks)

    here = search.nothing[None]
    masks, values = [here], [score(here)]
    best = float(values[0][0])
    while size:
        near = here ^ np.eye(size, dtype=np.bool_)
        found = score(near)
        masks.append(near)
        values.append(found)
        if not found.max() > best:
            break
        best, here = float(found.max()), near[[int(found.argmax())]]
    unique, first = np.unique(np.concatenate(masks), axis=0, return_index=True)
    return unique, np.concatenate(values)[first]


def _fewer_features(search: Search, kind: Kind, ratio: float) -> Mask | None:
    """The most probable of the models that lose one feature after the other."""
    remainder = kind.remainder
    assert isinstance(remainder, GlmRemainder | JointRemainder)
    path: list[tuple[float, Mask]] = []
    here = search.best
    while here.any():
        mode = remainder.find_mode(search.columns[:, here], ratio)
        if not np.isfinite(mode.log_evidence):
            break
        path.append((mode.log_evidence + float(search.model_prior(here[None])[0]), here))
        here = here.copy()
        here[np.flatnonzero(here)[int(mode.wald.argmin())]] = False
    return max(path, key=lambda item: item[0])[1] if path else None
