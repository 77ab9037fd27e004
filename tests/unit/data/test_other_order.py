"""Tests of `dbrm.data.refuse_other_order`: labels in another order are no accident to pass over."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dbrm
from dbrm.data import refuse_other_order
from dbrm.errors import InvalidDataError

X = pd.DataFrame({"a": [0.1, 0.7, 0.3, 0.9, 0.5, 0.2]}, index=list("pqrstu"))
Y = pd.Series([1.0, 2.0, 1.5, 2.5, 1.2, 0.8], index=X.index)
SHUFFLED = Y.iloc[[1, 0, 2, 3, 4, 5]]


@pytest.mark.parametrize("name", ["y", "sample_weight", "offset", "trials", "exposure"])
def test_the_same_labels_in_another_order_are_refused(name):
    with pytest.raises(InvalidDataError, match=rf"{name} has the row labels .*{name}\.loc\[X\.in"):
        refuse_other_order(X, **{name: SHUFFLED})


@pytest.mark.parametrize(
    "other",
    [
        Y,
        Y.to_numpy(),
        Y.reset_index(drop=True),
        Y.rename(index={"p": "new"}),
        SHUFFLED.loc[X.index],
        SHUFFLED.iloc[:5],
        pl.Series(Y.to_numpy()),
        list(Y),
        3.0,
        None,
    ],
)
def test_everything_else_goes_by_position(other):
    refuse_other_order(X, y=other)


def test_labels_that_repeat_are_compared_as_often_as_they_occur():
    twice = X.set_axis([0, 0, 1, 2, 3, 4])
    with pytest.raises(InvalidDataError, match="in another order"):
        refuse_other_order(twice, y=Y.set_axis([0, 1, 0, 2, 3, 4]))
    refuse_other_order(twice, y=Y.set_axis([0, 1, 1, 2, 3, 4]))


def test_every_entrance_looks(rng):
    table = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    y = table["a"] + 0.1 * pd.Series(rng.normal(size=40))
    other = y.sample(frac=1.0, random_state=1)
    options = {"algorithm": "enumerate"}
    posterior = dbrm.fit(table, y, **options)
    calls = {
        "fit": lambda: dbrm.fit(table, other, **options),
        "formula": lambda: dbrm.fit("b ~ a", data=table, offset=other, **options),
        "log_evidence": lambda: dbrm.log_evidence(table, other),
        "regressor": lambda: dbrm.DBRMRegressor(**options).fit(table, other),
        "classifier": lambda: dbrm.DBRMClassifier(**options).fit(table, other > 0),
        "predict": lambda: posterior.predict(table, offset=other),
        "rows": lambda: posterior.rows(table, other),
    }
    for call in calls.values():
        with pytest.raises(InvalidDataError, match="in another order"):
            call()
    np.testing.assert_array_equal(
        dbrm.fit(table, other.loc[table.index], **options).predict(table), posterior.predict(table)
    )
