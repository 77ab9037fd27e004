"""Names for the array types that cross module borders."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "Column",
    "FloatArray",
    "IntArray",
    "Mask",
    "Masks",
    "Matrix",
    "StatusArray",
    "TableLike",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# One column of a table, one value per row.
Column = npt.NDArray[np.float64]
# Rows by columns.
Matrix = npt.NDArray[np.float64]
# A model inside a population: True where the feature is in the model.
Mask = npt.NDArray[np.bool_]
# Several models, one per row.
Masks = npt.NDArray[np.bool_]
# One `dbrm.status.Status` per model.
StatusArray = npt.NDArray[np.uint8]

# What users hand over as a table: NumPy, pandas, polars, pyarrow, a mapping of columns.
TableLike = Any
