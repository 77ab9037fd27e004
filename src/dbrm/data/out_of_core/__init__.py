"""Tables too large to copy: rows stay in files, on a cluster or in the caller's array.

`open_batches` opens such a source as raw batches, `learn_from_batches` learns a recipe in three
passes, and the rows that it returns are visited block by block: whoever wants a sum over all
rows passes the work on one block to `AbstractRows.map`. No other module knows where rows are.
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
    "take_sample",
]
