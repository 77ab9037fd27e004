"""Data out of core: when rows are visited in blocks, and the subsample that represents them.

Features are built, compared and screened on a subsample of the rows, the same in every run; the
evidence of models comes from all rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from dbrm._typing import Column, TableLike
from dbrm.data import (
    AbstractRows,
    Block,
    MemoryBatches,
    Table,
    choose_sample,
    find_repeats,
    read_numbers,
    take_sample,
)
from dbrm.data.out_of_core import ARROW_SUFFIXES, open_dataset
from dbrm.errors import InvalidFileError, InvalidSettingError
from dbrm.evidence import Observations, find_family, resolve_prior, unsupported_out_of_core
from dbrm.run.settings import Settings

__all__ = [
    "column_names_if_tall",
    "is_tall",
    "may_repeat",
    "numbers_in_place",
    "unsupported_reason",
    "wants_blocks",
    "weighted_subsample",
]

# Rows of the subsample. Tables with at least as many rows are visited in blocks: the work of
# building features grows no further, so that no fit takes longer than one with more rows.
SAMPLE_ROWS = TALL_ROWS = 50_000
# Equal rows are merged only if at least this share of a sample repeats.
_FEW_REPEATS = 0.05


def is_tall(n_rows: int, settings: Settings) -> bool:
    """Whether there are very many rows, or more than the user wants to search on."""
    return n_rows >= TALL_ROWS if settings.subsample is None else n_rows > settings.subsample


def column_names_if_tall(path: Path) -> list[str] | None:
    """Column names of a file that is to be read in blocks; ``None`` for any other file."""
    if path.suffix.lower() not in ARROW_SUFFIXES or find_spec("pyarrow") is None:
        return None
    try:
        dataset = open_dataset(path)
    except InvalidFileError:
        return None
    return list(dataset.schema.names) if dataset.count_rows() >= TALL_ROWS else None


def wants_blocks(n_rows: int, settings: Settings) -> bool:
    """Whether to visit rows that are in memory in blocks.

    Settings that need all rows at once get them, as long as they are in memory.
    """
    if not is_tall(n_rows, settings):
        return False
    reason = unsupported_reason(settings)
    if reason and settings.subsample is not None:
        msg = f"subsample= cannot be used here: {reason}."
        raise InvalidSettingError(msg)
    return not reason


def unsupported_reason(settings: Settings) -> str:
    """Which setting needs all rows in memory, and what to try; empty if none does."""
    if settings.latent_effects:
        return "latent= needs all rows in memory; leave it out, or fit a sample of the rows"
    if settings.missing == "impute":
        return "missing='impute' needs all rows in memory; missing='indicator' does not"
    if settings.monotone or settings.signs:
        what = "monotone=" if settings.monotone else "signs="
        return f"{what} needs all rows in memory; leave it out, or fit a sample of the rows"
    if settings.has_special_terms:
        what = "always= with priors" if settings.intercept else "intercept=False"
        return f"{what} needs all rows in memory; leave it out, or fit a sample of the rows"
    if settings.evidence is not None:
        return "evidence= needs all rows in memory; leave it out, or fit a sample of the rows"
    if settings.traits.needs_all_rows:
        return f"algorithm={settings.algorithm!r} needs all rows in memory; try algorithm='gmjmcmc'"
    family = find_family(settings.family)
    if settings.preset == "paper_code" and family.exact_link is None:
        return "preset='paper_code' fits models as the scripts did, in memory; leave it out"
    prior = settings.resolved(family, 1e6, in_blocks=True).prior
    assert prior is not None
    return unsupported_out_of_core(family, settings.link, resolve_prior(prior))


def numbers_in_place(X: TableLike) -> MemoryBatches | None:
    """A tall table of numbers in memory, to be used without a copy; ``None`` for others."""
    first = next(iter(X.values()), ()) if isinstance(X, Mapping) else X
    shape = getattr(first, "shape", ())
    if not shape or shape[0] < TALL_ROWS:
        return None
    raw = read_numbers(X)
    return None if raw is None else MemoryBatches(raw, {})


def may_repeat(columns: Sequence[Column], observations: Observations) -> bool:
    """Whether to look for equal rows: always if there are few rows, else if a sample has some."""
    n_rows = observations.response.size
    if n_rows < TALL_ROWS:
        return True
    rows = choose_sample(n_rows, SAMPLE_ROWS)
    extras = [column for name, column in observations.given.items() if name != "weights"]
    found = find_repeats([column[rows].astype(np.float64) for column in (*columns, *extras)])
    return found is not None and found[0].size < (1.0 - _FEW_REPEATS) * rows.size


def weighted_subsample(rows: AbstractRows, settings: Settings) -> tuple[Table, Observations]:
    """A subsample of the rows, weighted to represent all of them."""
    drawn = choose_sample(rows.n_rows, settings.subsample or SAMPLE_ROWS)
    table, extras = take_sample(rows, drawn)
    sample = Observations(**extras)
    if drawn.size == rows.n_rows:
        return table, sample
    total = float(np.sum(list(rows.map(_count, ()))))
    weights = np.ones(drawn.size) if sample.weights is None else sample.weights
    return table, replace(sample, weights=weights * (total / sample.n))


def _count(block: Block) -> float:
    return Observations(**block.extras).n
