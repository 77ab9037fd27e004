"""Tests of the data sets: the loaders give the published tables, value for value."""

import hashlib

import numpy as np
import pandas as pd
import pytest

from dbrm import datasets

# Of names and numbers of the tables, training and test rows, as they were read independently.
DIGESTS = {
    "neo_asteroids": ("5975befd5fabb22c", "e29a47e56ff73875"),
    "breast_cancer": ("40147b9040d7e2fa", "f1ef750a34d10540"),
    "spam": ("a91dd6c6e1fe4ebc", "23efa2b838c8d92e"),
}

pytestmark = pytest.mark.usefixtures("raw")


def digest(table):
    numbers = np.ascontiguousarray(table.to_numpy(dtype="<f8")).tobytes()
    return hashlib.sha256(repr(list(table.columns)).encode() + numbers).hexdigest()[:16]


def test_arabidopsis_is_exact(reference):
    tidy = pd.read_csv(reference / "arabidopsis.csv")
    pd.testing.assert_frame_equal(datasets.load_arabidopsis(), tidy, check_exact=True)


def test_the_planets_in_the_package_are_those_of_the_authors(raw):
    theirs = pd.read_csv(raw / "kepler and mass" / "exa1.csv")
    ours = datasets.load_exoplanets()
    assert len(ours) == 223
    pd.testing.assert_frame_equal(ours, theirs, check_exact=True, check_like=True)


@pytest.mark.parametrize(
    ("name", "response"),
    [("neo_asteroids", "neo"), ("breast_cancer", "malignant"), ("spam", "spam")],
)
def test_splits_are_exact(name, response):
    split = getattr(datasets, f"load_{name}")()
    assert split.response == response == split.train.columns[-1]
    assert (digest(split.train), digest(split.test)) == DIGESTS[name]
