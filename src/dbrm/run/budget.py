"""How long a chain searches and how many models it keeps, from the settings."""

from collections.abc import Mapping
from dataclasses import fields, replace
from enum import IntEnum
from math import inf
from typing import Any, TypeVar

from dbrm.errors import InvalidSettingError
from dbrm.evolution import MAX_MERGED, MAX_MODELS, WINDOW, Filtration, Operators, SearchBudget, Stop
from dbrm.run.settings import Settings
from dbrm.search import KernelMix, Mjmcmc, OptimiserMix

__all__ = ["DefaultSteps", "build_part", "search_budget"]

Part = TypeVar("Part", Operators, Filtration, Mjmcmc, KernelMix, OptimiserMix)

# Models this many nats below the best are kept while they are compared on a subsample, whose
# noise moves them by tens of nats.
_SUBSAMPLE_WINDOW = 100.0
# Memory of one model of a few features in a table, with the work on it.
_BYTES_PER_MODEL = 200


class DefaultSteps(IntEnum):
    """Default steps per population that is not enumerated: fewer, the longer one takes."""

    EXACT = 20_000
    LAPLACE = 500
    LATENT = 200


def search_budget(settings: Settings, default_steps: int) -> SearchBudget:
    """The limits of one chain; `default_steps` where the settings leave them open."""
    mjmcmc = _mjmcmc(settings.mjmcmc)
    own = mjmcmc.n_steps if mjmcmc.n_steps != Mjmcmc().n_steps else None
    n_iter = settings.n_iter or own or default_steps
    per_chain, merged = _memory_limits(settings)
    return SearchBudget(
        population_size=settings.population_size,
        n_populations=settings.n_populations,
        mjmcmc=replace(mjmcmc, n_steps=n_iter, max_kept=min(mjmcmc.max_kept, per_chain)),
        n_init=settings.n_init or n_iter,
        n_final=settings.n_final or settings.traits.default_draws or n_iter,
        stop=Stop(
            seconds=settings.time_budget or inf,
            evaluations=settings.max_evaluations or inf,
            unique_models=_most_unique(settings),
            patience=None if settings.preset else settings.patience,
        ),
        max_models=per_chain,
        max_merged=merged,
        window=WINDOW if settings.subsample is None else _SUBSAMPLE_WINDOW,
        max_averaged=settings.max_averaged,
    )


def _memory_limits(settings: Settings) -> tuple[int, int]:
    """Most models of one chain and of the posterior: half of `max_memory` for either."""
    if settings.max_memory is None:
        return MAX_MODELS, MAX_MERGED
    models = int(settings.max_memory * 1e6 / _BYTES_PER_MODEL / 2)
    return (
        max(min(models // settings.n_first_chains, MAX_MODELS), 1),
        max(min(models, MAX_MERGED), 1),
    )


def _most_unique(settings: Settings) -> int | None:
    """Number of different models after which a chain ends."""
    limits = [] if settings.max_unique is None else [settings.max_unique]
    if settings.max_models is not None:
        limits.append(-(-settings.max_models // settings.n_first_chains))
    return min(limits, default=None)


def _mjmcmc(given: Mjmcmc | Mapping[str, Any] | None) -> Mjmcmc:
    if isinstance(given, Mapping):
        given = dict(given)
        for name, kind in (("kernels", KernelMix), ("optimisers", OptimiserMix)):
            if name in given:
                given[name] = build_part(name, kind, given[name])
    return build_part("mjmcmc", Mjmcmc, given)


def build_part(setting: str, kind: type[Part], given: Part | Mapping[str, Any] | None) -> Part:
    """An object of this kind from itself, from a mapping of its arguments, or by default."""
    if isinstance(given, kind):
        return given
    known = [item.name for item in fields(kind)]
    given = {} if given is None else given
    if not isinstance(given, Mapping) or any(name not in known for name in given):
        msg = (
            f"{setting} must map {', '.join(known)} to values, or be a {kind.__name__}; "
            f"got {given!r}."
        )
        raise InvalidSettingError(msg)
    return kind(**given)
