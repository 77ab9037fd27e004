"""Tables of scores: interpolation, compiled loops, undefined sizes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbrm._kernels.bits import unpack_index
from dbrm._kernels.enumeration import score_of_all, score_one
from dbrm._kernels.piecewise import glm_score_one
from dbrm.evidence.coefficient_priors import (
    AIC,
    BIC,
    CCH,
    TCCH,
    BenchmarkBeta,
    BetaPrime,
    EBLocal,
    GaussianShape,
    GPrior,
    HyperG,
    HyperGN,
    Intrinsic,
    Jeffreys,
    JeffreysG,
    KnownVariance,
    Robust,
    ZellnerSiow,
)
from dbrm.evidence.coefficient_priors.mixture import gaussian_log_factors, glm_log_factors
from dbrm.evidence.coefficient_priors.tabulate import panels_per_unit, tabulate
from dbrm.evidence.gaussian import GaussianEngine
from dbrm.status import Status

MIXTURES = [
    HyperG(),
    HyperGN(),
    ZellnerSiow(r=0.1),
    BetaPrime(),
    Robust(),
    Intrinsic(),
    JeffreysG(),
    BenchmarkBeta(15),
    CCH(0.3, 0.5, -7.0),
    TCCH(1.5, 0.7, 2.5, 3.0, 2.0, 0.3),
]
TABULATED = [*MIXTURES, Jeffreys(), KnownVariance(), BIC(), AIC(), GPrior(), EBLocal()]


def without_constant(table):
    return type(table)(np.zeros(table.constant.size), *table.arguments[1:])


@pytest.mark.parametrize("prior", MIXTURES, ids=repr)
@pytest.mark.parametrize("n", [8.0, 223.0, 1e6])
def test_interpolation_error(prior, n, rng):
    """Tables agree with the quadrature to 1e-11 of a log Bayes factor, everywhere."""
    sizes = np.array([size for size in (0, 1, 2, 6, 20, 64, 100) if size + 2 <= n])
    table = without_constant(prior.score_table(sizes, GaussianShape(n, 1.0, 1e-12)))
    uniform = rng.random(60)
    for row, size in enumerate(sizes.tolist()[1:], start=1):
        near_one = 1 / (1 + uniform * 3 * size / n)
        fractions = np.concatenate([np.exp(-27.6 * uniform), near_one])
        odds = (1 - fractions) / fractions
        exact, _ = gaussian_log_factors(prior.mixing(size, n), size, n, odds)
        values = [table.value(f, row) for f in fractions]
        np.testing.assert_allclose(values, exact, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("prior", MIXTURES, ids=repr)
def test_interpolation_error_of_glm_tables(prior, rng):
    sizes = np.array([0, 1, 2, 6, 20, 64])
    table = prior.glm_table(sizes, 223.0)
    null = table.value(0.0, 0.0, 0.0, 0)
    for row, size in enumerate(sizes.tolist()[1:], start=1):
        wald = np.concatenate([np.expm1(29.0 * rng.random(50)), 3 * size * rng.random(50)])
        exact, _ = glm_log_factors(prior.mixing(size, 223.0), size, wald)
        values = [table.value(0.0, 0.0, w, row) - null for w in wald]
        np.testing.assert_allclose(values, exact, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("prior", TABULATED, ids=repr)
def test_compiled_scores_equal_their_plain_twins(prior, rng):
    sizes = np.arange(7)
    table = prior.score_table(sizes, GaussianShape(30.0, 2.5, 1e-12))
    fractions = np.concatenate([rng.random(60), [1e-12, 0.5, 1.0, np.nan]])
    fractions[5] = np.inf
    everything = score_of_all(fractions, 1e-12, *table.arguments)
    for subset, fraction in enumerate(fractions):
        row = subset.bit_count()
        if not fraction < np.inf:
            assert everything[subset] == -np.inf
            continue
        plain = table.value(fraction, row)
        assert everything[subset] == pytest.approx(plain, rel=1e-13, abs=1e-12)
        assert score_one(fraction, row, *table.arguments) == pytest.approx(plain, rel=1e-13)


@pytest.mark.parametrize(
    "prior", [p for p in TABULATED if not isinstance(p, KnownVariance)], ids=repr
)
def test_compiled_glm_scores_equal_their_plain_twins(prior):
    table = prior.glm_table(np.arange(5), 30.0)
    for row in range(5):
        for wald in (0.0, 0.5, 3.999, 4.001, 77.0, 1e15):
            plain = table.value(-12.0, 1.5, wald, row)
            assert np.isfinite(plain)
            compiled = glm_score_one(-12.0, 1.5, wald, row, *table.arguments)
            assert compiled == pytest.approx(plain, rel=1e-13)


@pytest.mark.parametrize("prior", TABULATED, ids=repr)
def test_three_routes_to_a_model_agree(prior, rng):
    """All at once, one mask at a time, and from the rows."""
    columns = rng.normal(size=(25, 5))
    response = columns[:, 0] - columns[:, 3] + rng.normal(size=25)
    engine = GaussianEngine(response, prior)
    population = engine.prepare(columns)
    masks = unpack_index(np.arange(32), 5)
    at_once, _ = population.log_evidence_of_all(5)
    one_by_one, _ = population.log_evidence(masks)
    from_rows = [engine.log_evidence(columns[:, mask])[0] for mask in masks]
    np.testing.assert_allclose(one_by_one, at_once, rtol=1e-11)
    np.testing.assert_allclose(from_rows, at_once, rtol=1e-11)


@pytest.mark.parametrize("prior", TABULATED, ids=repr)
def test_models_without_degrees_of_freedom_are_undefined(prior, rng):
    """p = n - 1 leaves no residual; p = n - 2 is the largest model with evidence."""
    constant = prior.score_table(np.arange(12), GaussianShape(10.0, 1.0, 1e-12)).constant
    assert np.isfinite(constant[:9]).all()
    assert (constant[9:] == -np.inf).all()
    engine = GaussianEngine(rng.normal(size=10), prior)
    masks = np.tril(np.ones((10, 10), dtype=bool), k=-1)
    values, statuses = engine.prepare(rng.normal(size=(10, 10))).log_evidence(masks)
    assert np.isfinite(values[:9]).all()
    assert values[9] == -np.inf
    assert statuses[9] == Status.UNDEFINED


def test_beta_prime_needs_its_second_parameter():
    """With weights n need not be whole: n - p - 1.5 > 0 is a limit of its own."""
    shape = GaussianShape(6.4, 1.0, 1e-12)
    sizes = np.array([4, 5])
    assert np.isfinite(BetaPrime().score_table(sizes, shape).constant).tolist() == [True, False]
    assert np.isfinite(HyperG().score_table(sizes, shape).constant).tolist() == [True, True]
    assert np.isfinite(BetaPrime().glm_table(sizes, 6.4).constant).tolist() == [True, False]


def test_estimated_g_ties_with_the_null_model_below_its_kink():
    table = EBLocal().score_table(np.arange(4), GaussianShape(21.0, 1.0, 1e-12))
    kink = (21 - 1 - 3) / (21 - 1)
    null = table.value(1.0, 0)
    assert table.value(1.0, 3) == pytest.approx(null, abs=1e-12)
    assert table.value(kink + 1e-3, 3) == pytest.approx(null, abs=1e-12)
    assert table.value(kink - 1e-2, 3) > null + 1e-5


@given(g=st.floats(1e-3, 1e5), fraction=st.floats(1e-6, 1.0), size=st.integers(1, 15))
@settings(max_examples=60)
def test_no_fixed_g_beats_the_estimated_one(g, fraction, size):
    shape, sizes = GaussianShape(20.0, 1.0, 1e-12), np.array([size])
    best = EBLocal().score_table(sizes, shape).value(fraction, 0)
    assert GPrior(g=g).score_table(sizes, shape).value(fraction, 0) <= best + 1e-9
    wald = 20.0 * (1 - fraction) / fraction
    best = EBLocal().glm_table(sizes, 20.0).value(0.0, 0.0, wald, 0)
    assert GPrior(g=g).glm_table(sizes, 20.0).value(0.0, 0.0, wald, 0) <= best + 1e-9


def test_tabulate_follows_a_kinked_function_as_far_as_it_can():
    """Panels shrink to the stored width around a kink and stay exact elsewhere."""
    rows = tabulate(lambda x: np.abs(x - 3.0), 8, 8)
    table = without_constant(HyperG().score_table(np.array([1]), GaussianShape(9.0, 1.0, 0.5)))
    table = type(table)(*table.arguments[:6], rows[None], 1.0, 8.0)
    for y in (0.0, 1.234, 2.9, 3.0, 3.1, 7.999):
        # With scale one the argument of the table is -log f.
        assert table.value(np.exp(-y), 0) == pytest.approx(abs(y - 3.0), abs=1e-12)


@pytest.mark.parametrize(("largest", "expected"), [(0, 8), (64, 8), (65, 16), (256, 16), (257, 32)])
def test_larger_models_get_narrower_panels(largest, expected):
    assert panels_per_unit(largest) == expected


def test_weights_and_scale_do_not_move_bayes_factors(rng):
    columns, response = rng.normal(size=(30, 3)), rng.normal(size=30)
    base, _ = GaussianEngine(response, HyperGN()).prepare(columns).log_evidence_of_all(3)
    other, _ = GaussianEngine(1e6 * response + 5, HyperGN()).prepare(columns).log_evidence_of_all(3)
    np.testing.assert_allclose(other - other[0], base - base[0], atol=1e-7)
