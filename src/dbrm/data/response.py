"""Read the response, and other vectors with one value per row: weights, offset, trials, exposure.

Which values a family allows (counts, positive numbers, 0/1) is checked by the family.
"""

import sys
import warnings
from collections import Counter
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from dbrm._typing import Column
from dbrm.data.columns import name_rows, read_column, refuse_infinite, refuse_missing
from dbrm.data.intake import refuse_sparse, to_array
from dbrm.errors import InvalidDataError, quote

__all__ = [
    "Label",
    "check_response",
    "check_vector",
    "check_weights",
    "read_classes",
    "read_labels",
    "refuse_other_order",
    "split_survival",
]

#: The name of a class: text or a number.
Label = str | int | float

# Above this, adding one row does not change a double.
_MOST_COUNTED = 2.0**53
# Squares of larger numbers overflow.
_LARGEST_OFFSET = 1e150


def check_response(y: Any, n_rows: int, name: str = "y") -> Column:
    """Read the response: one finite number per row of the table.

    Booleans become 0 and 1. A column vector is flattened with scikit-learn's
    warning.

    Parameters
    ----------
    y
        List, NumPy array, or pandas / polars / pyarrow series.
    n_rows
        Number of rows of the table it belongs to.
    name
        What messages call it.
    """
    if y is None:
        msg = f"dbrm requires {name} to be passed, but the target {name} is None."
        raise InvalidDataError(msg)
    advice = "To model classes use DBRMClassifier; otherwise convert it to numbers."
    return _read(y, n_rows, name, if_text=advice)


def check_weights(sample_weight: Any, n_rows: int) -> Column:
    """Read observation weights; None stands for ones, a number for that weight in every row."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = check_vector(sample_weight, n_rows, name="sample_weight")
    negative = weights < 0
    if negative.any():
        msg = (
            f"sample_weight must not be negative; got {weights[negative][0]!s} "
            f"at {name_rows(negative)} (rows count from 0)."
        )
        raise InvalidDataError(msg)
    if not weights.any():
        msg = "sample_weight must not be zero everywhere: no row would have any weight."
        raise InvalidDataError(msg)
    _refuse_uncountable(weights, "sample_weight")
    return weights


def _refuse_uncountable(counts: Column, name: str) -> None:
    """Raise if weights or trials, which count rows, are too large to be added up exactly."""
    with np.errstate(over="ignore"):
        total = float(counts.sum())
    if total > _MOST_COUNTED:
        msg = (
            f"{name} must add to at most 2**53, beyond which double precision cannot count; its "
            f"sum is {total:.3g}, its largest value {counts.max():.3g} at "
            f"{name_rows(counts == counts.max())} (rows count from 0). "
            f"Try {name} / {name}.mean(), if only ratios matter."
        )
        raise InvalidDataError(msg)


def check_vector(value: Any, n_rows: int, *, name: str) -> Column:
    """Read an offset, numbers of trials or exposures; a single number is repeated."""
    if value is not None and np.ndim(_unwrap(value)) == 0:
        value = [value] * n_rows
    if value is None:
        msg = f"{name} must be a number, or one number per row; got None."
        raise InvalidDataError(msg)
    vector = _read(value, n_rows, name, if_text="Convert it to numbers.")
    if name == "trials":
        _refuse_uncountable(vector, name)
    huge = np.abs(vector) > _LARGEST_OFFSET
    if name == "offset" and huge.any():
        msg = (
            f"offset must lie within {_LARGEST_OFFSET:g} of zero, where its squares are finite; "
            f"got {vector[huge][0]!s} at {name_rows(huge)} (rows count from 0). Change the unit."
        )
        raise InvalidDataError(msg)
    return vector


def split_survival(y: Any) -> tuple[Column, Column] | None:
    """Time and event of a structured array as scikit-survival uses; ``None`` for other responses.

    Raises
    ------
    InvalidDataError
        Unless one field is boolean and the other one a number.
    """
    names = getattr(getattr(y, "dtype", None), "names", None)
    if not names:
        return None
    kinds = {name: y.dtype[name].kind for name in names}
    events = [name for name, kind in kinds.items() if kind == "b"]
    times = [name for name, kind in kinds.items() if kind in "fiu"]
    if len(names) != 2 or len(events) != 1 or len(times) != 1:
        got = ", ".join(f"{name} ({y.dtype[name]})" for name in names)
        msg = (
            "A structured y holds survival times: a boolean field (True where the event was seen) "
            f"and a field of times; got the fields {got}."
        )
        raise InvalidDataError(msg)
    return y[times[0]].astype(np.float64), y[events[0]].astype(np.float64)


def read_labels(value: Any, n_rows: int, name: str) -> tuple[tuple[str, ...], Column]:
    """The different labels of a vector, as text and sorted, and the number of each row's label."""
    content = _one_dimensional(_unwrap(value), name)
    if len(content) != n_rows:
        msg = (
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
            f"{name} has {len(content)} values."
        )
        raise InvalidDataError(msg)
    column = read_column(name, content)
    refuse_missing([column], owner=name, advice="Remove these rows.")
    if column.coded:
        texts = [str(column.levels[int(code)]) for code in column.values]
    else:
        texts = [f"{value:.15g}" for value in column.values.tolist()]
    labels, numbers = np.unique(texts, return_inverse=True)
    return tuple(map(str, labels)), numbers.astype(np.float64)


def read_classes(
    y: Any, n_rows: int, *, ordered: bool, name: str = "y"
) -> tuple[tuple[Label, ...], Column]:
    """The different classes of a response, in order, and the number of each row's class.

    Numbers and booleans are sorted, an ordered category (pandas, polars) keeps its order without
    levels that do not occur; text is sorted too, unless classes are to be `ordered`.
    """
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(y, pandas.Categorical):
        y = pandas.Series(y)
    refuse_sparse(y, name)
    content = _one_dimensional(_unwrap(y), name)
    if len(content) != n_rows:
        msg = (
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
            f"{name} has {len(content)} values."
        )
        raise InvalidDataError(msg)
    column = read_column(name, content)
    refuse_missing([column], owner=name, advice="Remove these rows.")
    if not column.coded:
        refuse_infinite([column], owner=name)
        values, numbers = np.unique(column.values, return_inverse=True)
        whole = bool(np.all(values == np.floor(values)) and np.all(np.abs(values) < 2**53))
        labels = [int(value) if whole else float(value) for value in values]
        return tuple(labels), numbers.astype(np.float64)
    has_order = column.kind == "ordered"
    if ordered and not has_order:
        msg = (
            f"{name} holds text without an order ({quote(column.levels, limit=5)}), and "
            f"family='ordinal' needs one. Give an ordered category, pd.Categorical({name}, "
            "categories=['low', 'high'], ordered=True), or numbers; classes without order are "
            "family='multinomial'."
        )
        raise InvalidDataError(msg)
    codes = column.values.astype(np.int64)
    present = np.flatnonzero(np.bincount(codes, minlength=len(column.levels)))
    texts = [str(column.levels[code]) for code in present]
    order = np.arange(len(texts)) if has_order else np.argsort(texts, kind="stable")
    place = np.empty(len(column.levels))
    place[present[order]] = np.arange(present.size)
    return tuple(texts[position] for position in order), place[codes]


def refuse_other_order(X: Any, **rows: Any) -> None:
    """Raise if a vector has the row labels of `X` in another order.

    Rows are matched by position, as in scikit-learn. pandas matches by label, so that users who
    shuffled only one of the two would expect labels to be matched.
    """
    # Nobody can hold a pandas object without having imported pandas.
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(X, pandas.DataFrame | pandas.Series):
        return
    for name, value in rows.items():
        labelled = isinstance(value, pandas.DataFrame | pandas.Series)
        if labelled and _is_other_order(X.index, value.index):
            msg = (
                f"{name} has the row labels of X in another order, and rows are matched by "
                f"position: its values would belong to other rows. Try {name}.loc[X.index]; or "
                f"{name}.to_numpy(), if the order is right and the labels are wrong."
            )
            raise InvalidDataError(msg)


def _is_other_order(first: Any, second: Any) -> bool:
    """Whether two pandas indexes hold the same labels, equally often, in different order."""
    if len(first) != len(second) or first.equals(second) or not first.isin(second).all():
        return False
    # Labels that are unique, and all among the others, are the others.
    return first.is_unique or Counter(first) == Counter(second)


def _read(value: Any, n_rows: int, name: str, *, if_text: str) -> Column:
    refuse_sparse(value, name)
    content = _one_dimensional(_unwrap(value), name)
    if len(content) != n_rows:
        msg = (
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
            f"{name} has {len(content)} values."
        )
        raise InvalidDataError(msg)
    column = read_column(name, content)
    if column.coded:
        msg = (
            f"{name} holds text or categories ({quote(column.levels, limit=5)}) where numbers are "
            f"needed. {if_text}"
        )
        raise InvalidDataError(msg)
    refuse_missing([column], owner=name, advice="Remove these rows.")
    refuse_infinite([column], owner=name)
    return np.array(column.values, dtype=np.float64, order="C")


def _unwrap(value: Any) -> Any:
    """Return a narwhals series, or an array of any dimension."""
    native = nw.from_native(value, pass_through=True, allow_series=True)
    if isinstance(native, nw.Series):
        return native
    if isinstance(native, nw.DataFrame):
        return native.to_numpy()
    return to_array(value)


def _one_dimensional(content: Any, name: str) -> Any:
    shape = content.shape
    if len(shape) == 1:
        return content
    if len(shape) == 2 and shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        msg = (
            f"A column-vector {name} was passed when a 1d array was expected. "
            f"Please change the shape of {name} to (n_samples,), for example using ravel()."
        )
        warnings.warn(msg, DataConversionWarning, stacklevel=5)
        return content[:, 0]
    msg = f"{name} should be a 1d array, got an array of shape {shape} instead."
    raise InvalidDataError(msg)
