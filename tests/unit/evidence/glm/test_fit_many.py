"""Fitting many models at once gives what fitting each by itself gives."""

import numpy as np
import pytest

from dbrm.evidence.coefficient_priors import Jeffreys
from dbrm.evidence.design import share_columns
from dbrm.evidence.gaussian import GaussianEngine
from dbrm.evidence.glm import GlmEngine
from dbrm.status import Status

MASKS = np.array(
    [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 0], [1, 0, 0, 1]], dtype=np.bool_
)


def engines(rng):
    eta = rng.normal(size=60)
    yield GaussianEngine(eta, Jeffreys())
    yield GlmEngine((eta > 0).astype(float), Jeffreys(), "binomial")
    yield GlmEngine(rng.poisson(2.0, 60).astype(float), Jeffreys(), "poisson")
    yield GlmEngine(rng.gamma(2.0, size=60), Jeffreys(), "gamma", "log")


def test_many_fits_are_the_single_fits(rng):
    columns = rng.normal(size=(60, 4))
    columns[:, 3] = 2.0 * columns[:, 0] + 1.0
    for engine in engines(rng):
        for mask, fit in zip(MASKS, engine.fit_many(columns, MASKS), strict=True):
            alone = engine.fit(columns[:, mask])
            np.testing.assert_allclose(fit.coefficients, alone.coefficients, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(fit.covariance, alone.covariance, rtol=1e-5, atol=1e-9)
            assert fit.dispersion == pytest.approx(alone.dispersion, rel=1e-6)
            assert fit.status == alone.status
        assert fit.status is Status.RANK_DEFICIENT


def test_no_linear_programme_is_solved_for_averaging(rng, monkeypatch):
    from dbrm.evidence import glm

    columns = rng.normal(size=(40, 1))
    engine = GlmEngine((columns[:, 0] > 0).astype(float), Jeffreys())
    solved = []
    monkeypatch.setattr(glm, "classify_separation", lambda *_: solved.append(1))
    engine.fit_many(columns, np.array([[True], [False]]))
    assert solved == []
    engine.fit(columns)
    assert solved == [1]


def test_models_share_columns_while_there_are_few(rng):
    masks = rng.random((50, 90)) < 0.1
    masks[7] = True
    groups = share_columns(masks)
    assert sorted(row for rows, _ in groups for row in rows) == list(range(50))
    for rows, used in groups:
        np.testing.assert_array_equal(np.flatnonzero(masks[rows].any(axis=0)), used)
        assert used.size <= 40 or rows.tolist() == [7]
