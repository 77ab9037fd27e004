"""Tests of `dbrm.evidence.out_of_core.gaussian` and `dbrm.evidence.out_of_core.glm`.

An engine that visits rows in blocks must say what the engine in memory says.
"""

import os
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import dbrm.data.out_of_core.batches as blocks
from dbrm.data import Block, MemoryRows, Table
from dbrm.evidence import (
    GaussianEngine,
    GlmEngine,
    Jeffreys,
    Observations,
    build_engine,
    build_out_of_core,
    resolve_prior,
)
from dbrm.evolution import FeatureColumns
from dbrm.features import covariate, evaluate, parse_feature
from dbrm.search import PriorTerms, enumerate_population, refine_population
from dbrm.status import Status

PLATFORM = os.environ.get("DBRM_TEST_PLATFORM", "cpu")
NAMES = ("a", "b", "c", "d")
FEATURES = tuple(parse_feature(text, NAMES) for text in ("a", "b", "a*b", "sin(c)", "c", "exp(a)"))
ALWAYS = (covariate("d"),)
EVERY = np.array([[bool(i >> j & 1) for j in range(6)] for i in range(64)])


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 173)


def simulate(rng, family, n=900):
    values = rng.normal(size=(n, 4)) * [1.0, 2.0, 1.0, 5.0] + [0.0, 0.0, 0.0, 1e4]
    eta = 0.5 * values[:, 0] * values[:, 1] - 0.8 * np.sin(values[:, 2])
    if family == "gaussian":
        response = 1e6 + eta + rng.normal(size=n)
    elif family == "binomial":
        response = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)
    else:
        response = rng.poisson(np.exp(np.minimum(eta, 3.0))).astype(float)
    return Table(NAMES, values), response


def peak(work):
    """Most memory that some work takes."""
    tracemalloc.start()
    work()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def engines(table, observations, *, family="gaussian", always=ALWAYS, prior="jeffreys", rows=None):
    """The engine in memory, and the one that visits blocks, with a sample of every third row."""
    given = observations.given
    columns = evaluate(always, table)[0] if always else None
    prior = resolve_prior(prior)
    whole = build_engine(observations, prior, family=family, always=columns)
    chosen = np.arange(0, table.n_rows, 3)
    sample = {name: table.column(name)[chosen] for name in NAMES}
    extras = {name: column[chosen] for name, column in given.items()}
    part = build_engine(
        Observations(**extras),
        prior,
        family=family,
        always=None if columns is None else columns[chosen],
    )
    rows = MemoryRows(table, given) if rows is None else rows
    block = Block(0, chosen.size, sample, extras)
    return whole, build_out_of_core(part, rows, block, FeatureColumns(always))


@pytest.mark.parametrize("prior", ["jeffreys", "bic", "hyper-g", "g-prior"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.usefixtures("small_blocks")
def test_gaussian_populations_are_those_in_memory(rng, prior, weighted):
    table, response = simulate(rng, "gaussian")
    weights = rng.integers(1, 4, table.n_rows).astype(float) if weighted else None
    observations = Observations(response, weights=weights, offset=rng.normal(size=table.n_rows))
    whole, tall = engines(table, observations, prior=prior)
    expected = whole.prepare(evaluate(FEATURES, table)[0]).log_evidence(EVERY)
    found = tall.prepare(FeatureColumns(FEATURES)).log_evidence(EVERY)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-10, atol=1e-8)
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("always", [(), ALWAYS])
@pytest.mark.usefixtures("small_blocks")
def test_gaussian_fits_are_those_in_memory(rng, always):
    table, response = simulate(rng, "gaussian")
    whole, tall = engines(table, Observations(response), always=always)
    masks = EVERY[::7]
    expected = whole.fit_many(evaluate(FEATURES, table)[0], masks)
    found = tall.fit_many(FeatureColumns(FEATURES), masks)
    for a, b in zip(expected, found, strict=True):
        assert b.log_evidence == pytest.approx(a.log_evidence, abs=1e-8)
        assert b.log_likelihood == pytest.approx(a.log_likelihood, abs=1e-8)
        assert b.dispersion == pytest.approx(a.dispersion, rel=1e-9)
        assert b.degrees_of_freedom == a.degrees_of_freedom
        np.testing.assert_allclose(b.coefficients, a.coefficients, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(b.covariance, a.covariance, rtol=1e-6, atol=1e-12)


@pytest.mark.usefixtures("small_blocks")
def test_a_lost_block_is_noticed(rng):
    """Negative control: the comparison above has the power to fail."""
    table, response = simulate(rng, "gaussian")

    class Forgetful(MemoryRows.__mro__[1]):
        names, n_rows, binary = NAMES, table.n_rows, table.binary

        def map(self, work, names):
            found = list(MemoryRows(table, {"response": response}).map(work, names))
            return iter(found[:-1])

    whole, tall = engines(table, Observations(response), rows=Forgetful())
    expected = whole.prepare(evaluate(FEATURES, table)[0]).log_evidence(EVERY)[0]
    found = tall.prepare(FeatureColumns(FEATURES)).log_evidence(EVERY)[0]
    assert np.max(np.abs(found - expected)) > 1.0


@pytest.mark.usefixtures("small_blocks")
def test_columns_that_are_not_finite_outside_the_sample_have_no_evidence(rng):
    """log_abs(b) has a pole in a row that is not in the sample; nothing else is spoiled."""
    table, response = simulate(rng, "gaussian")
    values = table.values.copy()
    values[1, 1] = 0.0
    table = Table(NAMES, values)
    features = (*FEATURES[:2], parse_feature("log_abs(b)", NAMES))
    for family in ("gaussian", "poisson"):
        y = response if family == "gaussian" else np.abs(np.round(response - response.mean()))
        whole, tall = engines(table, Observations(y), family=family, always=())
        masks = np.array([[1, 1, 0], [1, 0, 1], [0, 0, 1]], dtype=bool)
        found, statuses = tall.prepare(FeatureColumns(features)).log_evidence(masks)
        exact, _ = whole.prepare(evaluate(features[:2], table)[0]).log_evidence(masks[:1, :2])
        assert found[0] == pytest.approx(exact[0], abs=1e-6 if family == "gaussian" else 0.05)
        assert list(found[1:]) == [-np.inf, -np.inf]
        assert set(statuses[1:]) == {Status.RANK_DEFICIENT}
        fits = tall.fit_many(FeatureColumns(features), masks)
        assert [fit.status for fit in fits[1:]] == [Status.RANK_DEFICIENT] * 2
        assert np.isfinite(fits[0].log_evidence)


@pytest.mark.parametrize("family", ["binomial", "poisson"])
@pytest.mark.parametrize("always", [(), ALWAYS])
@pytest.mark.usefixtures("small_blocks")
def test_streamed_newton_is_newton(rng, family, always):
    table, response = simulate(rng, family)
    extras = {"weights": rng.integers(1, 3, table.n_rows).astype(float)}
    if family == "poisson":
        extras["exposure"] = rng.uniform(0.5, 2.0, table.n_rows)
    whole, tall = engines(table, Observations(response, **extras), family=family, always=always)
    masks = EVERY[::5]
    expected = whole.fit_many(evaluate(FEATURES, table)[0], masks)
    found = tall.fit_many(FeatureColumns(FEATURES), masks)
    for a, b in zip(expected, found, strict=True):
        assert b.status is Status.OK
        assert b.log_evidence == pytest.approx(a.log_evidence, abs=1e-6)
        assert b.log_likelihood == pytest.approx(a.log_likelihood, abs=1e-6)
        np.testing.assert_allclose(b.coefficients, a.coefficients, rtol=1e-4, atol=1e-4)
        spread = np.sqrt(np.diag(a.covariance))
        np.testing.assert_allclose(np.sqrt(np.diag(b.covariance)), spread, rtol=1e-3)


@pytest.mark.parametrize(("most_read", "block_rows"), [(0, 173), (10**6, 400)])
@pytest.mark.usefixtures("small_blocks")
def test_rows_on_a_device_give_the_same(rng, monkeypatch, most_read, block_rows):
    """On JAX's CPU platform, or that of ``DBRM_TEST_PLATFORM``, with rows in memory or not.

    A column of the population before is not read again.
    """
    monkeypatch.setattr("dbrm.evidence.out_of_core.glm._MOST_READ", most_read)
    monkeypatch.setattr("dbrm.evidence.out_of_core.glm._DEVICE_ROWS", 400)
    table, response = simulate(rng, "binomial")
    broken = table.column("a").copy()
    broken[1] = np.inf
    table = Table(NAMES, np.column_stack([broken, table.values[:, 1:]]))
    extras = {"weights": rng.integers(1, 3, table.n_rows).astype(float)}
    columns = FeatureColumns(FEATURES[1:2] + FEATURES[3:5])
    whole, tall = engines(table, Observations(response, **extras), family="binomial")
    on_device = replace(tall, platform=PLATFORM)
    masks = EVERY[:8, :3]
    expected = whole.prepare(evaluate(columns.features, table)[0]).log_evidence(masks)[0]
    found = [fit.log_evidence for fit in on_device.fit_many(columns, masks)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    # Column "a" is infinite in a row that is not in the sample: it counts as dependent.
    made = []
    make = FeatureColumns.make
    monkeypatch.setattr(
        FeatureColumns,
        "make",
        lambda self, block: (
            made.extend(self.features if block.n_rows == block_rows else ()),
            make(self, block),
        )[1],
    )
    values, statuses = on_device.prepare(FeatureColumns(FEATURES[:2])).log_evidence(EVERY[:4, :2])
    assert set(made) == {FEATURES[0]}
    np.testing.assert_array_equal(statuses[[1, 3]], Status.RANK_DEFICIENT)
    np.testing.assert_allclose(values[[0, 2]], expected[:2], rtol=0, atol=1e-3)


@pytest.mark.usefixtures("small_blocks")
def test_the_expansion_is_near_for_models_with_mass(rng):
    r"""Errors are of order :math:`\Delta^{3/2}/\sqrt n`; models far below may be far off."""
    table, response = simulate(rng, "binomial", n=4000)
    whole, tall = engines(table, Observations(response), family="binomial", always=())
    exact = whole.prepare(evaluate(FEATURES, table)[0]).log_evidence(EVERY)[0]
    prepared = tall.prepare(FeatureColumns(FEATURES))
    found, _ = prepared.log_evidence_of_all(6)
    behind = exact[-1] - exact
    near = behind < 10.0
    assert near.sum() >= 4
    assert np.max(np.abs(found - exact)[near]) < 0.05
    # Far from the expansion the approximation is one: what is reported must not come from it.
    assert np.max(np.abs(found - exact)) > 1.0
    # The same from all rows at once, and around another model, which is then most accurate.
    np.testing.assert_allclose(
        prepared.approximate_all(np.ones(6, dtype=bool), 6), found, atol=1e-2
    )
    centre = np.array([False, False, True, False, True, False])
    around, row = prepared.approximate_all(centre, 6), int(centre @ (1 << np.arange(6)))
    assert abs(around[row] - exact[row]) < 1e-3 < abs(found[row] - exact[row])


@pytest.mark.parametrize("family", ["binomial", "poisson"])
@pytest.mark.usefixtures("small_blocks")
def test_populations_in_blocks_are_refined_as_those_in_memory(rng, family):
    """The mass of all models, and exact values of those that hold it."""
    table, response = simulate(rng, family)
    whole, tall = engines(table, Observations(response), family=family)
    terms = PriorTerms(np.full(6, -3.0), np.zeros(7))
    limits = {"window": 20.0, "max_kept": 100}
    expected = enumerate_population(whole.prepare(evaluate(FEATURES, table)[0]), terms, **limits)
    found = refine_population(tall.prepare(FeatureColumns(FEATURES)), terms, **limits)
    assert found.log_mass == pytest.approx(expected.log_mass, abs=1e-3)
    np.testing.assert_allclose(found.inclusion, expected.inclusion, atol=1e-3)
    np.testing.assert_array_equal(found.last, expected.last)
    assert found.n_evaluated < 64


@pytest.mark.usefixtures("small_blocks")
def test_an_expansion_never_promises_more_than_there_is(rng):
    """Rare events and a feature that lives in a handful of rows: the sample says nothing of it."""
    n = 6_000
    values = rng.normal(size=(n, 4))
    table = Table(NAMES, values)
    eta = -5.0 + values[:, 0] * values[:, 1] + 0.8 * values[:, 2]
    response = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)
    spikes = [f"gauss(-6.0 + 0.7*c - 0.{k}*a*b*b)" for k in (1, 2, 3)]
    texts = ["a", "c", "a*b", "exp(a)*exp(b)", *spikes]
    features = tuple(parse_feature(text, NAMES) for text in texts)
    whole, tall = engines(table, Observations(response), family="binomial", always=())
    masks = np.array([[bool(i >> j & 1) for j in range(7)] for i in range(128)])
    exact = whole.prepare(evaluate(features, table)[0]).log_evidence(masks)[0]
    found = tall.prepare(FeatureColumns(features)).log_evidence(masks)[0]
    assert np.max(found) < np.max(exact) + 1.0
    plain = ~masks[:, 4:].any(axis=1) & (exact > np.max(exact) - 10.0)
    assert plain.any()
    assert np.max(np.abs(found - exact)[plain]) < 2.0


def test_a_pass_needs_less_memory_than_the_columns(rng):
    """Rows in blocks are never a matrix of rows by features; in memory they are."""
    n, features = 300_000, FEATURES * 3
    table = Table(NAMES, rng.normal(size=(n, 4)))
    response = rng.normal(size=n)
    tall = engines(table, Observations(response), always=())[1]
    tall.prepare(FeatureColumns(features))
    matrix = n * len(features) * 8
    whole = GaussianEngine(response, Jeffreys())
    assert peak(lambda: tall.prepare(FeatureColumns(features))) < matrix
    assert peak(lambda: whole.prepare(evaluate(features, table)[0])) > matrix


@pytest.mark.usefixtures("small_blocks")
def test_columns_that_are_held_change_the_evidence_little(rng, monkeypatch):
    """Single precision; what is reported does not come from it."""
    table, response = simulate(rng, "poisson")
    tall = engines(table, Observations(response), family="poisson")[1]
    held = tall.prepare(FeatureColumns(FEATURES))
    monkeypatch.setattr("dbrm.evidence.out_of_core.glm._MOST_HELD", 0)
    computed = tall.prepare(FeatureColumns(FEATURES))
    assert held.passes.held
    assert not computed.passes.held
    found, expected = (part.log_evidence(EVERY)[0] for part in (held, computed))
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-4)
    assert np.any(found != expected)


def test_columns_that_are_held_take_half_of_a_matrix(rng, monkeypatch):
    """Single precision; response, weights and offset beside them. Otherwise blocks are all."""
    n, features = 150_000, FEATURES * 2
    table = Table(NAMES, rng.normal(size=(n, 4)))
    response = (rng.random(n) < 0.5).astype(float)
    tall = engines(table, Observations(response), family="binomial", always=())[1]
    matrix = n * (len(features) + 1) * 8
    held = tall.prepare(FeatureColumns(features)).passes.held
    assert sum(part.nbytes for block in held for part in block) < 0.5 * matrix + 3.1 * 8 * n
    monkeypatch.setattr("dbrm.evidence.out_of_core.glm._MOST_HELD", 0)
    passes = tall.prepare(FeatureColumns(features)).passes
    point = np.arange(len(features) + 1), np.zeros(len(features) + 1)
    assert peak(lambda: passes.sums([point])) < 0.6 * matrix


@pytest.mark.usefixtures("small_blocks")
def test_a_sample_that_misleads_costs_passes_only(rng):
    """Its responses are turned round: the fit begins on the way from a constant predictor."""
    table, response = simulate(rng, "binomial")
    whole, tall = engines(table, Observations(response), family="binomial", always=())
    wrong = replace(tall.sample_engine, response=1.0 - tall.sample_engine.response)
    misled = replace(tall, sample_engine=wrong)
    expected = whole.prepare(evaluate(FEATURES, table)[0]).log_evidence(EVERY)[0]
    found = misled.prepare(FeatureColumns(FEATURES)).log_evidence(EVERY)[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)


@pytest.mark.usefixtures("small_blocks")
def test_responses_outside_the_domain_are_found_in_all_rows(rng):
    table, response = simulate(rng, "binomial")
    bad = response.copy()
    bad[1] = 2.0
    with pytest.raises(ValueError, match="needs y to be 0 or 1"):
        engines(
            table,
            Observations(response),
            family="binomial",
            rows=MemoryRows(table, {"response": bad}),
        )


def test_the_sample_engine_may_be_a_generalised_linear_model(rng):
    table, response = simulate(rng, "poisson")
    whole, tall = engines(table, Observations(response), family="poisson")
    assert isinstance(whole, GlmEngine)
    assert replace(tall, rows=tall.rows).n_rows == table.n_rows
