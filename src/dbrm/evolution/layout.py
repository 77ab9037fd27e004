"""What the snapshot of a chain holds when it comes from a file: types, ranges and lengths.

The names are those of `get_state`. What parts mean together is checked by `set_state`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, final

from dbrm.data.schema import (
    AbstractField,
    ArrayOf,
    Flag,
    ListOf,
    MappingOf,
    Real,
    Record,
    Text,
    Whole,
)
from dbrm.evolution.problem import Operators, Problem

__all__ = [
    "Layout",
    "LayoutOf",
    "evolution_layout",
    "pool_gibbs_layout",
    "rgmjmcmc_layout",
    "walk_layout",
]

# Sums of probabilities are one up to rounding.
_ONE = 1.0 + 1e-6


@final
@dataclass(frozen=True, slots=True)
class Layout:
    """Fields of a snapshot, by name, as in `dbrm.evolution.snapshot.Snapshot`."""

    content: Mapping[str, AbstractField]
    arrays: Mapping[str, ArrayOf]
    features: Mapping[str, AbstractField] = field(default_factory=dict)

    def with_parts(self, other: "Layout") -> "Layout":
        """Both."""
        return Layout(
            {**self.content, **other.content},
            {**self.arrays, **other.arrays},
            {**self.features, **other.features},
        )


# Told the problem and the content of a snapshot.
LayoutOf = Callable[[Problem, Mapping[str, Any]], Layout]

_128_BITS = Whole(high=2**128 - 1)
_COUNTS = MappingOf(Whole())
_GENERATOR = Layout(
    {
        "generator.state": Record(
            {
                "bit_generator": Text(("PCG64",)),
                "state": Record({"state": _128_BITS, "inc": _128_BITS}),
                "has_uint32": Whole(high=1),
                "uinteger": Whole(high=2**32 - 1),
            }
        )
    },
    {},
)
_CHAIN = Layout(
    {
        "chain.own.n_evaluated": Whole(),
        "chain.own.n_settled": Whole(),
        "chain.own.n_dropped": Whole(),
        "chain.own.status_counts": MappingOf(Whole(), keys=Whole(high=255)),
        "chain.own.rejections": _COUNTS,
        "chain.own.proposed": _COUNTS,
        "chain.own.accepted": _COUNTS,
        "chain.own.best": Text(),
        "chain.own.seconds": Real(low=0.0),
        "evolution.own.n_done": Whole(),
        "evolution.own.finished": Flag(),
    },
    {
        "chain.own.numbers": ArrayOf("<f8", (2,), nan=True),
        "chain.own.trace": ArrayOf("<f8", (None,), nan=True),
        "chain.models.keys": ArrayOf("<u8", ("models", 2)),
        "chain.models.starts": ArrayOf("<i8", ("models+1",), low=0),
        "chain.models.members": ArrayOf("<i4", (None,), low=0, below="registered"),
        "chain.models.log_evidence": ArrayOf("<f8", ("models",), high=1e300),
        "chain.models.log_prior": ArrayOf("<f8", ("models",), high=1e300),
        "chain.models.statuses": ArrayOf("|u1", ("models",)),
        "chain.models.latent": ArrayOf("<u8", ("models",)),
        "chain.registry.keys": ArrayOf("<u8", ("registered", 2)),
        "chain.registry.marks": ArrayOf("|u1", ("registered", 16)),
        "chain.registry.owners": ArrayOf("<i8", ("aliases",), low=0, below="registered"),
        "chain.registry.drawn": ArrayOf("<u8", ("drawn", 2)),
        "chain.registry.draw_counts": ArrayOf("<i8", ("drawn",), low=1),
        "evolution.own.numbers": ArrayOf("<i4", ("population",), low=0, below="registered"),
        "evolution.own.inclusion": ArrayOf("<f8", ("population",), low=0.0, high=_ONE),
        "evolution.own.last": ArrayOf("|b1", (None,)),
    },
    {
        "chain.registry.names": ListOf(Text(), "registered"),
        "chain.registry.aliases": ListOf(Text(), "aliases"),
    },
)
_OPERATORS = len(fields(Operators))
_MEMORY = Layout(
    {},
    {
        "evolution.memory.made": ArrayOf("<f8", (_OPERATORS,), low=0.0, high=1e15),
        "evolution.memory.useful": ArrayOf("<f8", (_OPERATORS,), low=0.0, high=1e15),
        "evolution.memory.waiting": ArrayOf("<i8", (None, 2), low=0),
    },
)


def evolution_layout(problem: Problem, content: Mapping[str, Any]) -> Layout:  # noqa: ARG001
    """Of a chain of populations."""
    layout = _GENERATOR.with_parts(_CHAIN)
    return layout.with_parts(_MEMORY) if problem.grammar.adaptive else layout


def rgmjmcmc_layout(problem: Problem, content: Mapping[str, Any]) -> Layout:
    """Of the reversible algorithm."""
    # Latent effects have the numbers -1, -2, ... among the features of a model.
    space, first = "sampler.space", -len(problem.latent)
    return _sampling(problem, content, _reservoir(f"{space}.reservoir", "reservoir")).with_parts(
        Layout(
            {"sampler.state.model": ListOf(Whole(low=first, below="registered"))},
            {
                "sampler.state.visits": ArrayOf("<i8", (None, 2), low=0),
                f"{space}.own.spelled": ArrayOf("<i8", ("spelled",), low=0, below="registered"),
                f"{space}.own.named": ArrayOf("<i8", ("named",), low=0, below="registered"),
                f"{space}.own.log_priors": ArrayOf("<f8", ("named",), high=1e300),
                f"{space}.own.known_sizes": ArrayOf("<i8", ("known",), low=0, high=2**20),
                f"{space}.own.known_members": ArrayOf(
                    "<i8", (None,), low=first, below="registered"
                ),
                f"{space}.own.known_values": ArrayOf("<f8", ("known",), high=1e300),
            },
            {
                f"{space}.own.spelled": ListOf(Text(), "spelled"),
                f"{space}.own.named": ListOf(Text(), "named"),
            },
        )
        if _has_drawn(content)
        else Layout({}, {})
    )


def pool_gibbs_layout(problem: Problem, content: Mapping[str, Any]) -> Layout:
    """Of the sampler over a pool."""
    return _sampling(problem, content, _reservoir("sampler.pool.pool", "pool")).with_parts(
        Layout(
            {"sampler.state.model": ListOf(Whole(low=-len(problem.latent), below="pool"))},
            {"sampler.state.total": ArrayOf("<f8", ("pool",), low=0.0, high=1e15)},
            {"sampler.pool.own.names": ListOf(Text(), "pool")},
        )
        if _has_drawn(content)
        else Layout({}, {})
    )


def walk_layout(problem: Problem, content: Mapping[str, Any]) -> Layout:  # noqa: ARG001
    """Of one walk through the subsets of the covariates."""
    return _GENERATOR.with_parts(
        Layout(
            {"walker.seconds": Real(low=0.0)},
            {
                "walker.store_words": ArrayOf("<u8", ("models", None)),
                "walker.store_values": ArrayOf("<f8", ("models",), high=1e300),
                "walker.store_priors": ArrayOf("<f8", ("models",), high=1e300),
                "walker.store_statuses": ArrayOf("|u1", ("models",)),
                "walker.store_counts": ArrayOf("<i8", (3,), low=0),
                "walker.store_log_lost": ArrayOf("<f8", (1,), high=1e300),
                "walker.position_mask": ArrayOf("|b1", ("population",)),
                "walker.position_propensity": ArrayOf("<f8", ("population",), low=0.0, high=_ONE),
                "walker.position_seen": ArrayOf("<f8", ("population",), low=0.0, high=1e15),
                "walker.position_value": ArrayOf("<f8", (1,), high=1e300),
                "walker.position_entry": ArrayOf("<i8", (1,), low=-1, below="models"),
                "walker.position_step": ArrayOf("<i8", (1,), low=0),
                "walker.trace_log_posterior": ArrayOf("<f8", ("steps",), high=1e300),
                "walker.trace_size": ArrayOf("<i4", ("steps",), low=0),
                "walker.trace_kernel": ArrayOf("|i1", ("steps",), low=-1),
                "walker.trace_accepted": ArrayOf("|b1", ("steps",)),
                "walker.trace_visits": ArrayOf("<i8", ("models",), low=0),
                "walker.trace_proposed_by": ArrayOf("<i8", ("kernels",), low=0),
                "walker.trace_accepted_by": ArrayOf("<i8", ("kernels",), low=0),
            },
        )
    )


def _has_drawn(content: Mapping[str, Any]) -> bool:
    return "sampler.state.model" in content


def _sampling(problem: Problem, content: Mapping[str, Any], reservoir: Layout) -> Layout:
    """Of a chain that draws after its populations; before the first draw it has no sampler."""
    drawn = _has_drawn(content)
    draws = ArrayOf("<f8", ("draws" if drawn else 0, 2), high=1e300)
    layout = evolution_layout(problem, content).with_parts(Layout({}, {"draws.draws": draws}))
    return layout.with_parts(reservoir) if drawn else layout


def _reservoir(name: str, length: str) -> Layout:
    return Layout(
        {},
        {
            f"{name}.numbers": ArrayOf("<i4", (length,), low=0, below="registered"),
            f"{name}.weights": ArrayOf("<f8", (length,), low=0.0, high=1e15),
        },
        {f"{name}.spellings": ListOf(Text(), length)},
    )
