"""Does the family fit the response? Checks for `dbrm.data.check`.

Only a Gaussian response is checked: other families refuse what they cannot be fitted to.
"""

from collections.abc import Iterator

import numpy as np

from dbrm._typing import Column
from dbrm.data.columns import RawColumn
from dbrm.data.level_checks import Finding

__all__ = ["check_response_values"]

# Counts are small if their mean is below this, and no count is above.
_SMALL_MEAN, _MOST_COUNT = 10.0, 100.0
# Grades are few, and small.
_MOST_GRADES, _MOST_GRADE = 7, 10.0


def check_response_values(response: RawColumn, family: str) -> Iterator[Finding]:
    """Yield what a Gaussian family does not fit."""
    if family != "gaussian":
        return
    values = response.values.astype(np.float64)
    seen = _two_values(response, values) or _counts(values)
    if seen is not None:
        yield Finding("response", "", *seen)


def _two_values(response: RawColumn, values: Column) -> tuple[str, str] | None:
    low, high = values.min(), values.max()
    if low == high or not bool(np.all((values == low) | (values == high))):
        return None
    if response.kind == "boolean":
        return (
            "The response holds True and False, and is modelled as a number",
            "For the probability of True use family='binomial'.",
        )
    if (low, high) == (0.0, 1.0):
        return (
            "The response holds only 0 and 1, and is modelled as a number",
            "For the probability of 1 use family='binomial'.",
        )
    return (
        f"The response holds only {low:g} and {high:g}, and is modelled as a number",
        f"If these are two classes use DBRMClassifier, or y == {high:g} with family='binomial'.",
    )


def _counts(values: Column) -> tuple[str, str] | None:
    low, high, mean = values.min(), values.max(), values.mean()
    if low == high or low < 0.0 or high > _MOST_COUNT or mean >= _SMALL_MEAN:
        return None
    if not bool(np.all(values == np.rint(values))):
        return None
    graded = high <= _MOST_GRADE and np.unique(values).size <= _MOST_GRADES
    if low > 0.0 and not graded:
        return None
    advice = []
    if low == 0.0:
        family = "negative_binomial" if values.var() > 2.0 * mean else "poisson"
        advice.append(f"If these are counts, use family={family!r}.")
    if graded:
        advice.append("If these are ordered grades, use family='ordinal'.")
    seen = f"The response holds whole numbers from {low:g} to {high:g} (mean {mean:.3g})"
    return seen, " ".join(advice)
