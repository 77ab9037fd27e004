"""A user's table becomes a checked matrix, and a recipe that prepares new data in the same way.

Reading: `intake` (tables), `columns` (one column), `files` (with `delimited` and `text_numbers`),
`response` (vectors with one value per row). Looking for mistakes: `check`. Preparing: `rules`
(one column), `learning` (fit a recipe), `recipe` (apply it), `standardize`, `redundancy`.
Results: `table`. Tables that do not fit into memory: `out_of_core`. Saved files: `archive` and
`schema`.

Only this package knows pandas, polars or pyarrow; the rest of `dbrm` sees a `Table`.
"""

from dbrm.data.check import Finding, check_table, warn_findings
from dbrm.data.incomplete import columns_in_formula, drop_incomplete
from dbrm.data.intake import RawTable, read_numbers, read_table
from dbrm.data.learning import complete_tables, learn_recipe
from dbrm.data.number_ranges import sorted_number_ranges
from dbrm.data.out_of_core import (
    AbstractBatches,
    AbstractRows,
    Block,
    MemoryBatches,
    MemoryRows,
    choose_sample,
    is_source,
    learn_from_batches,
    open_batches,
    read_extra,
    read_into_memory,
    take_sample,
)
from dbrm.data.recipe import Recipe
from dbrm.data.redundancy import find_repeats
from dbrm.data.response import (
    Label,
    check_response,
    check_vector,
    check_weights,
    read_classes,
    read_labels,
    refuse_other_order,
    split_survival,
)
from dbrm.data.rules import ColumnRule
from dbrm.data.standardize import to_unit_length
from dbrm.data.table import Table, fingerprint

__all__ = [
    "AbstractBatches",
    "AbstractRows",
    "Block",
    "ColumnRule",
    "Finding",
    "Label",
    "MemoryBatches",
    "MemoryRows",
    "RawTable",
    "Recipe",
    "Table",
    "check_response",
    "check_table",
    "check_vector",
    "check_weights",
    "choose_sample",
    "columns_in_formula",
    "complete_tables",
    "drop_incomplete",
    "find_repeats",
    "fingerprint",
    "is_source",
    "learn_from_batches",
    "learn_recipe",
    "open_batches",
    "read_classes",
    "read_extra",
    "read_into_memory",
    "read_labels",
    "read_numbers",
    "read_table",
    "refuse_other_order",
    "sorted_number_ranges",
    "split_survival",
    "take_sample",
    "to_unit_length",
    "warn_findings",
]
