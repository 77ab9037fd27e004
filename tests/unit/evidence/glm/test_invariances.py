"""Invariances and extremes of the GLM engine: nothing about units, order or labels matters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from dbrm._kernels.bits import unpack_index
from dbrm._kernels.glm import evaluate_glm
from dbrm.errors import InvalidDataError, InvalidSettingError, UnknownNameError
from dbrm.evidence.coefficient_priors import BIC, GPrior, Jeffreys, Normal, NormalLogGamma
from dbrm.evidence.glm import GlmEngine
from dbrm.status import Status

PRIORS = [Jeffreys(), BIC(), GPrior(), Normal(10.0), NormalLogGamma(1.0, 0.1)]
FAMILIES = ["binomial", "poisson", "gamma", "negative_binomial"]
ALL = unpack_index(np.arange(16), 4)


def data(rng, family, n=60):
    columns = rng.standard_normal((n, 4))
    wave = 0.3 + columns @ [0.8, -0.5, 0.0, 0.0]
    if family == "binomial":
        return columns, (rng.random(n) < expit(wave)).astype(float)
    if family == "gamma":
        return columns, rng.gamma(2.0, np.exp(wave) / 2)
    if family == "poisson":
        return columns, rng.poisson(np.exp(wave)).astype(float)
    return columns, rng.poisson(rng.gamma(1.5, np.exp(wave) / 1.5)).astype(float)


def all_values(columns, y, prior, family, **options):
    values, statuses = GlmEngine(y, prior, family, **options).prepare(columns).log_evidence(ALL)
    assert np.all(np.isfinite(values))
    assert set(statuses) <= {Status.OK}
    return values


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: p.name)
@pytest.mark.parametrize("family", FAMILIES)
class TestInvariances:
    def test_rows_may_be_permuted(self, rng, family, prior):
        columns, y = data(rng, family)
        order = rng.permutation(y.size)
        np.testing.assert_allclose(
            all_values(columns[order], y[order], prior, family),
            all_values(columns, y, prior, family),
            rtol=1e-10,
        )

    def test_columns_may_be_permuted(self, rng, family, prior):
        columns, y = data(rng, family)
        engine = GlmEngine(y, prior, family)
        order = rng.permutation(4)
        np.testing.assert_allclose(
            engine.prepare(columns[:, order]).log_evidence(ALL[:, order])[0],
            engine.prepare(columns).log_evidence(ALL)[0],
            rtol=1e-10,
        )

    def test_weight_two_is_the_row_twice(self, rng, family, prior):
        columns, y = data(rng, family)
        weights = rng.integers(0, 4, y.size).astype(float)
        twice = np.repeat(np.arange(y.size), weights.astype(int))
        np.testing.assert_allclose(
            all_values(columns, y, prior, family, weights=weights),
            all_values(columns[twice], y[twice], prior, family),
            rtol=1e-10,
        )

    def test_offset_shift_is_the_intercept(self, rng, family, prior):
        columns, y = data(rng, family)
        offset = 0.3 * rng.standard_normal(y.size)
        np.testing.assert_allclose(
            all_values(columns, y, prior, family, offset=offset + 2.5),
            all_values(columns, y, prior, family, offset=offset),
            rtol=1e-10,
        )

    def test_values_do_not_depend_on_what_came_before(self, rng, family, prior):
        """Bit for bit: the engine keeps no memory of earlier masks."""
        columns, y = data(rng, family)
        population = GlmEngine(y, prior, family).prepare(columns)
        forward, _ = population.log_evidence(ALL)
        backward, _ = population.log_evidence(ALL[::-1])
        np.testing.assert_array_equal(forward, backward[::-1])
        single = [evaluate_glm(population.context, mask)[0] for mask in ALL]
        np.testing.assert_array_equal(forward, single)

    def test_population_does_not_matter(self, rng, family, prior):
        """A model has the same evidence inside any population, to 1e-9."""
        columns, y = data(rng, family)
        engine = GlmEngine(y, prior, family)
        inside, _ = engine.prepare(columns).log_evidence(ALL)
        alone = [engine.log_evidence(columns[:, mask])[0] for mask in ALL]
        np.testing.assert_allclose(inside, alone, rtol=0, atol=1e-8)

    def test_always_in_columns_are_columns(self, rng, family, prior):
        """Forcing a column in is the same as asking for it, up to how sizes are counted."""
        columns, y = data(rng, family)
        forced = GlmEngine(y, prior, family, always=columns[:, :1]).prepare(columns[:, 1:])
        values, _ = forced.log_evidence(unpack_index(np.arange(8), 3))
        masks = np.column_stack([np.ones(8, bool), unpack_index(np.arange(8), 3)])
        expected, _ = GlmEngine(y, prior, family).prepare(columns).log_evidence(masks)
        np.testing.assert_allclose(values, expected, rtol=1e-10)

    def test_equal_rows_may_be_merged(self, rng, family, prior):
        """Rounded covariates: merged rows give what a tiny distinguishing column prevents."""
        columns, y = data(rng, family, n=200)
        columns = np.sign(columns)
        engine = GlmEngine(y, prior, family)
        merged = engine.prepare(columns)
        assert merged.design.n_live <= 16
        apart = engine.prepare(np.column_stack([columns, rng.standard_normal(200)]))
        assert apart.design.n_live == 200
        wide = np.column_stack([ALL, np.zeros(16, bool)])
        np.testing.assert_allclose(
            merged.log_evidence(ALL)[0], apart.log_evidence(wide)[0], rtol=1e-10
        )


@pytest.mark.parametrize("prior", [Jeffreys(), BIC(), GPrior()], ids=lambda p: p.name)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("factor", [1e-300, 1e-6, 1e6, 1e300])
def test_units_of_a_column_do_not_matter(rng, family, prior, factor):
    columns, y = data(rng, family)
    scaled = columns * [factor, 1.0, 1.0, 1.0]
    np.testing.assert_allclose(
        all_values(scaled, y, prior, family), all_values(columns, y, prior, family), rtol=1e-10
    )


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: p.name)
@pytest.mark.parametrize("link", ["logit", "probit"])
def test_classes_may_be_relabelled(rng, prior, link):
    columns, y = data(rng, "binomial")
    np.testing.assert_allclose(
        all_values(columns, 1 - y, prior, "binomial", link=link),
        all_values(columns, y, prior, "binomial", link=link),
        rtol=1e-10,
    )


def test_trials_are_rows_up_to_the_binomial_constant(rng):
    columns = rng.standard_normal((30, 4))
    trials = rng.integers(0, 6, 30).astype(float)
    y = rng.binomial(trials.astype(int), expit(columns[:, 0])).astype(float)
    rows, ones = [], []
    for i in range(30):
        for t in range(int(trials[i])):
            rows.append(i)
            ones.append(float(t < y[i]))
    counted = all_values(columns, y, Jeffreys(), "binomial", trials=trials)
    single = all_values(columns[rows], np.array(ones), Jeffreys(), "binomial")
    gap = counted - single
    np.testing.assert_allclose(gap, gap[0], atol=1e-8)
    assert gap[0] > 0


def test_exposure_is_an_offset_of_its_logarithm(rng):
    columns, y = data(rng, "poisson")
    exposure = rng.uniform(0.5, 2.0, y.size)
    np.testing.assert_array_equal(
        all_values(columns, y, Jeffreys(), "poisson", exposure=exposure),
        all_values(columns, y, Jeffreys(), "poisson", offset=np.log(exposure)),
    )


NUMBERS = st.one_of(
    st.floats(-1e3, 1e3),
    st.sampled_from([0.0, 1e300, -1e300, 1e-300, 5e-324, 1.0]),
)


@settings(max_examples=150)
@given(
    n=st.integers(1, 8),
    size=st.integers(0, 4),
    family=st.sampled_from(FAMILIES),
    prior=st.sampled_from(PRIORS),
    draw=st.data(),
)
def test_nothing_strange_raises_warns_or_gives_nan(n, size, family, prior, draw):
    """Any finite columns and any legal response: a number or minus infinity, and a status."""
    cells = draw.draw(st.lists(NUMBERS, min_size=n * size, max_size=n * size))
    columns = np.array(cells, dtype=float).reshape(n, size)
    legal = {
        "binomial": st.sampled_from([0.0, 1.0]),
        "gamma": st.sampled_from([1e-300, 1e-3, 1.0, 2.0, 1e9, 1e300]),
    }.get(family, st.sampled_from([0.0, 1.0, 2.0, 50.0, 1e9]))
    y = np.array(draw.draw(st.lists(legal, min_size=n, max_size=n)))
    engine = GlmEngine(y, prior, family)
    values, statuses = engine.prepare(columns).log_evidence(
        unpack_index(np.arange(1 << size), size)
    )
    assert not np.any(np.isnan(values))
    assert not np.any(values == np.inf)
    assert np.all((values == -np.inf) == ~np.isin(statuses, [0, 11, 12, 13]))
    fit = engine.fit(columns)
    assert np.all(np.isfinite(fit.coefficients))
    assert not np.any(np.isnan(fit.covariance))
    assert engine.project(columns).shape == (size + 1,)
    assert np.all(np.isfinite(engine.score_test(columns).residual))


def test_dependent_columns_have_a_status(rng):
    columns, y = data(rng, "binomial")
    columns[:, 3] = 2 * columns[:, 0] - columns[:, 1] + 1
    values, statuses = GlmEngine(y, Jeffreys(), "binomial").prepare(columns).log_evidence(ALL)
    dependent = ALL[:, [0, 1, 3]].all(axis=1)
    np.testing.assert_array_equal(statuses == Status.RANK_DEFICIENT, dependent)
    assert np.all(values[dependent] == -np.inf)
    constant = np.ones((y.size, 1))
    assert GlmEngine(y, Jeffreys()).log_evidence(constant)[1] is Status.RANK_DEFICIENT


@pytest.mark.parametrize("family", FAMILIES)
def test_a_standardised_normal_prior_does_not_see_units(rng, family):
    columns, y = data(rng, family)
    units = np.array([1e-3, 0.2, 7.0, 400.0])
    prior = Normal(0.3, standardised=True)
    values = all_values(columns, y, prior, family)
    np.testing.assert_allclose(all_values(columns * units, y, prior, family), values, atol=1e-7)
    # It is the plain normal prior of columns that are standardised already.
    plain = all_values(columns / columns.std(axis=0), y, Normal(0.3), family)
    np.testing.assert_allclose(plain, values, atol=1e-7)
    # Negative control: the plain prior does see units.
    assert np.ptp(all_values(columns * units, y, Normal(0.3), family) - values) > 1.0


def test_dependent_columns_are_no_trouble_under_a_proper_prior(rng):
    """Two copies of a column with N(0, v) each are one column with N(0, 2v)."""
    columns, y = data(rng, "poisson")
    one = columns[:, :1]
    twice, status = GlmEngine(y, Normal(3.0), "poisson").log_evidence(np.hstack([one, one]))
    single, _ = GlmEngine(y, Normal(6.0), "poisson").log_evidence(one)
    assert status is Status.OK
    assert twice == pytest.approx(single, abs=1e-8)


@pytest.mark.parametrize(
    ("family", "y", "match"),
    [
        ("binomial", [0.0, 2.0], r"y to be 0 or 1 .*got y\[1\]=2.0"),
        ("poisson", [1.5, 0.0], r"whole numbers >= 0 .*got y\[0\]=1.5"),
        ("poisson", [-1.0, -1.0], r"got y\[0\]=-1.0 and 1 more"),
        ("gamma", [1.0, 0.0], r"needs y to be positive and finite; got y\[1\]=0.0"),
        ("negative_binomial", [np.nan, 1.0], r"got y\[0\]=nan"),
        ("gaussian", [np.inf, 1.0], r"finite; got y\[0\]=inf"),
    ],
)
def test_impossible_responses_are_named(family, y, match):
    with pytest.raises(InvalidDataError, match=match):
        GlmEngine(np.array(y), Jeffreys(), family)


def test_impossible_settings_are_named():
    y = np.array([0.0, 1.0, 1.0])
    with pytest.raises(InvalidDataError, match="between 0 and trials"):
        GlmEngine(y, Jeffreys(), "binomial", trials=np.zeros(3))
    with pytest.raises(InvalidDataError, match="trials belong to family='binomial'"):
        GlmEngine(y, Jeffreys(), "poisson", trials=np.ones(3))
    with pytest.raises(InvalidDataError, match="weights must be finite and not negative"):
        GlmEngine(y, Jeffreys(), weights=-np.ones(3))
    with pytest.raises(InvalidDataError, match="one value for each of the 3 rows"):
        GlmEngine(y, Jeffreys(), offset=np.ones(2))
    with pytest.raises(InvalidDataError, match="No row counts"):
        GlmEngine(y, Jeffreys(), weights=np.zeros(3))
    with pytest.raises(InvalidSettingError, match="exposure needs the log link"):
        GlmEngine(y, Jeffreys(), exposure=np.ones(3))
    with pytest.raises(UnknownNameError, match="Known: beta, binomial"):
        GlmEngine(y, Jeffreys(), "wald")
    with pytest.raises(UnknownNameError, match="Links: identity"):
        GlmEngine(y, Jeffreys(), link="loglog")
