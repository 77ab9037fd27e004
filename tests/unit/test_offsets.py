"""Tests of offsets, weights and exposures that no computation could follow."""

import numpy as np
import pytest

import dbrm
from dbrm.errors import InvalidDataError

N = 40


@pytest.fixture
def data(rng):
    X = rng.normal(size=(N, 2))
    return X, rng.poisson(np.exp(0.3 * X[:, 0])).astype(float)


@pytest.mark.parametrize(
    ("family", "rows", "message"),
    [
        ("gaussian", {"sample_weight": 1e300}, r"sample_weight must add to at most 2\*\*53"),
        ("poisson", {"sample_weight": 1e300}, r"sample_weight must add to at most 2\*\*53"),
        ("gaussian", {"offset": 1e300}, "offset must lie within 1e"),
        ("gaussian", {"offset": 1e20}, r"offset is as large as 1e\+20, the response only"),
        ("poisson", {"offset": -1e300}, "offset must lie within 1e"),
        ("poisson", {"offset": 701.0}, "offset must lie between -700 and 700"),
        ("poisson", {"exposure": 1e-306}, "logarithm of exposure must lie between"),
        ("negative_binomial", {"offset": -701.0}, "offset must lie between -700 and 700"),
    ],
)
def test_what_leaves_no_digits_is_refused(family, rows, message, data):
    X, y = data
    given = {name: np.r_[np.zeros(N - 1), value] for name, value in rows.items()}
    if "exposure" in given:
        given["exposure"] += np.r_[np.ones(N - 1), 0.0]
    for call in (dbrm.log_evidence, dbrm.enumerate_models):
        with pytest.raises(InvalidDataError, match=message):
            call(X, y, family=family, **given)


def test_large_offsets_in_the_unit_of_the_response_are_fine(data):
    """Negative control: what matters is the size beside the response."""
    X, y = data
    there = dbrm.log_evidence(X, 1e20 * y, offset=1e20 * X[:, 0])
    here = dbrm.log_evidence(X, y, offset=X[:, 0])
    assert there - here == pytest.approx(-N * np.log(1e20), rel=1e-9)


def test_offsets_of_some_hundred_are_fine(data):
    X, y = data
    shifted = dbrm.log_evidence(X, y, family="poisson", offset=np.full(N, 300.0))
    assert np.isfinite(shifted)
