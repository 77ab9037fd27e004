"""A user's table becomes a checked matrix, and a frozen recipe that replays it on new data.

Everything that knows pandas, polars or pyarrow is in here; the rest of the package sees
a `Table`.
"""

from dbrm.data.learning import learn_recipe
from dbrm.data.recipe import Recipe
from dbrm.data.repeats import find_repeats
from dbrm.data.response import check_response, check_vector, check_weights
from dbrm.data.rules import ColumnRule
from dbrm.data.table import Table, fingerprint

__all__ = [
    "ColumnRule",
    "Recipe",
    "Table",
    "check_response",
    "check_vector",
    "check_weights",
    "find_repeats",
    "fingerprint",
    "learn_recipe",
]
