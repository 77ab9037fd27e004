r"""Newton's method for many models of one population at once, in JAX.

All models share the rows. For :math:`B` models over :math:`k` columns one step is three matrix
products: linear predictors :math:`\eta = \beta X` (B x n), scores :math:`s X'` (B x k), and all
weighted Gram matrices at once, :math:`w Z'`, where the rows of :math:`Z` are the
:math:`k(k+1)/2` products of two columns. Rows come in blocks, and everything of size
B x n exists for one block at a time.

`halve` evaluates all :math:`2^s` subsets by leaving out one column after the other, each model
starting from the expansion of one that has a column more; `newton` evaluates any models.
Sees arrays only.
"""

from dbrm.evidence.device.program.all_models import halve, place_states
from dbrm.evidence.device.program.any_models import finish, newton, start_at
from dbrm.evidence.device.program.likelihood import Likelihood
from dbrm.evidence.device.program.negative_binomial import negative_binomial_shape
from dbrm.evidence.device.program.rows import Rows, place, place_rows, stack_rows, to_host
from dbrm.evidence.device.program.session import find_devices, keep_programs, memory_of
from dbrm.evidence.device.program.sums import sum_blocks

__all__ = [
    "Likelihood",
    "Rows",
    "find_devices",
    "finish",
    "halve",
    "keep_programs",
    "memory_of",
    "negative_binomial_shape",
    "newton",
    "place",
    "place_rows",
    "place_states",
    "stack_rows",
    "start_at",
    "sum_blocks",
    "to_host",
]
