"""Tables too large to copy: rows stay in files, on a cluster or in the caller's array.

`open_batches` opens such a source as raw batches, `learn_from_batches` learns a recipe in three
passes, and returns rows that are visited block by block: `AbstractRows.map` applies a function
to every block, for instance to sum over all rows. No other package knows where rows are stored.
"""

from dbrm.data.out_of_core.arrow import ARROW_SUFFIXES, open_dataset
from dbrm.data.out_of_core.batches import AbstractBatches, MemoryBatches
from dbrm.data.out_of_core.learning import learn_from_batches
from dbrm.data.out_of_core.rows import (
    AbstractRows,
    Block,
    MemoryRows,
    choose_sample,
    read_extra,
    read_into_memory,
    take_sample,
)
from dbrm.data.out_of_core.sources import is_source, open_batches

__all__ = [
    "ARROW_SUFFIXES",
    "AbstractBatches",
    "AbstractRows",
    "Block",
    "MemoryBatches",
    "MemoryRows",
    "choose_sample",
    "is_source",
    "learn_from_batches",
    "open_batches",
    "open_dataset",
    "read_extra",
    "read_into_memory",
    "take_sample",
]
