"""Tests of `dbrm.evidence.device`, on JAX's CPU platform: the program of a graphics processor.

With ``DBRM_TEST_PLATFORM=gpu`` they run on one. Models must have the log evidence and the status
that the compiled path gives them.
"""

import os

import numpy as np
import pytest

import dbrm.evidence.device.halving as halving
import dbrm.evidence.device.platform as platforms
import dbrm.evidence.device.population as device
import dbrm.evidence.device.problem as problems
import dbrm.evidence.device.rows as device_rows
from dbrm._kernels.bits import unpack_index
from dbrm._kernels.glm_rows import linearise
from dbrm.data import Block
from dbrm.errors import InvalidSettingError
from dbrm.evidence import GlmEngine, resolve_prior
from dbrm.evidence.device import DevicePopulation, DeviceRows, choose_platform
from dbrm.evidence.families import FAMILIES
from dbrm.evidence.links import LINKS
from dbrm.status import Status

# One number of rows and of columns, so that nothing is compiled twice.
N, SIZE = 120, 5
EVERY = unpack_index(np.arange(1 << SIZE), SIZE)
CLOSE = 1e-7
PLATFORM = os.environ.get("DBRM_TEST_PLATFORM", "cpu")


@pytest.fixture(autouse=True)
def always_on_device(monkeypatch):
    """No batch is too small."""
    monkeypatch.setattr(device, "_LEAST_WORK", 0.0)


class Counting:
    """A population that counts how many models it is asked for."""

    def __init__(self, population):
        self._population = population
        self.n_models = 0

    def __getattr__(self, name):
        return getattr(self._population, name)

    def log_evidence(self, masks):
        self.n_models += len(masks)
        return self._population.log_evidence(masks)


def simulate(rng, family):
    X = rng.normal(size=(N, SIZE)) * [1.0, 2.0, 1.0, 5.0, 1.0]
    X[:, 1] += X[:, 0]
    eta = 0.3 + X[:, :3] @ [0.8, -0.4, 0.3]
    if family == "binomial":
        return X, (rng.random(N) < 1 / (1 + np.exp(-eta))).astype(float)
    if family == "poisson":
        return X, rng.poisson(np.exp(eta)).astype(float)
    if family == "gamma":
        return X, rng.gamma(2.0, np.exp(eta) / 2)
    if family == "negative_binomial":
        return X, rng.negative_binomial(3, 3 / (3 + np.exp(eta))).astype(float)
    return X, np.exp(0.3 * eta) + 0.2 * rng.normal(size=N)


def compare(engine, X, *, n_settled=0, left=0, limit=CLOSE):
    """Both ways through the device against the compiled path; `left` models may be left to it."""
    compiled = engine.prepare_beside(X, n_settled)
    counting = Counting(compiled)
    found = DevicePopulation(counting, PLATFORM)
    expected, status = compiled.log_evidence(EVERY)
    for values, statuses in (
        found.log_evidence_of_all(SIZE),
        found.log_evidence(EVERY),
    ):
        np.testing.assert_array_equal(statuses, status)
        np.testing.assert_allclose(values, expected, rtol=0, atol=limit)
    # One more, to see whether all columns separate the classes.
    assert counting.n_models <= 2 * left + 1
    return status


@pytest.mark.parametrize(
    ("family", "link"),
    [
        ("binomial", "logit"),
        ("poisson", "log"),
        ("gamma", "log"),
        ("negative_binomial", "log"),
        ("gaussian", "log"),
        ("binomial", "probit"),
    ],
)
def test_families_are_those_of_the_compiled_path(rng, family, link):
    X, y = simulate(rng, family)
    compare(GlmEngine(y, resolve_prior("jeffreys"), family, link), X)


@pytest.mark.parametrize("prior", ["zellner-siow", "hyper-g", "g-prior", "bic", "normal"])
def test_priors_are_those_of_the_compiled_path(rng, prior):
    X, y = simulate(rng, "binomial")
    compare(GlmEngine(y, resolve_prior(prior)), X)


def test_a_normal_prior_weighs_an_unknown_dispersion(rng):
    X, y = simulate(rng, "gamma")
    compare(GlmEngine(y, resolve_prior("normal"), "gamma"), X)


def test_rows_may_have_weights_offsets_trials_and_always_in_columns(rng):
    X, _ = simulate(rng, "binomial")
    trials = rng.integers(1, 5, N).astype(float)
    y = rng.binomial(trials.astype(int), 0.4).astype(float)
    engine = GlmEngine(
        y,
        resolve_prior("jeffreys"),
        weights=rng.integers(1, 4, N).astype(float),
        offset=0.3 * rng.normal(size=N),
        trials=trials,
        always=rng.normal(size=(N, 2)),
    )
    compare(engine, X)


@pytest.mark.parametrize("prior", ["jeffreys", "zellner-siow", "normal"])
def test_settled_columns_are_in_every_model(rng, prior):
    X, y = simulate(rng, "binomial")
    settled = rng.normal(size=(N, 2)) + 0.3 * y[:, None]
    engine = GlmEngine(y, resolve_prior(prior), always=rng.normal(size=(N, 1)))
    compare(engine, np.column_stack([settled, X]), n_settled=2)


def test_columns_that_depend_on_settled_ones_have_their_status(rng):
    X, y = simulate(rng, "binomial")
    X[:, 4] = X[:, 0] - 2.0 * X[:, 1]
    X = np.column_stack([X[:, :2], rng.normal(size=(N, 2)), X[:, 2:]])
    status = compare(GlmEngine(y, resolve_prior("jeffreys")), X, n_settled=2)
    assert np.count_nonzero(status == Status.RANK_DEFICIENT) == 1 << (SIZE - 1)


def test_populations_beside_settled_columns_use_the_device(rng):
    X, y = simulate(rng, "binomial")
    engine = GlmEngine(y, resolve_prior("jeffreys"), platform=PLATFORM)
    assert engine.settling_limit > 0
    prepared = engine.prepare_beside(X, 2)
    assert isinstance(prepared, DevicePopulation)
    assert prepared.size == SIZE - 2


@pytest.mark.parametrize(("prior", "left"), [("jeffreys", 0), ("zellner-siow", 20)])
def test_separated_classes_have_their_supremum_and_status(rng, prior, left):
    """Priors that look at coefficients get Firth's, from the compiled path."""
    X, y = simulate(rng, "binomial")
    X[:, 2] = X[:, 0] + 3.0 * y
    status = compare(GlmEngine(y, resolve_prior(prior)), X, left=left)
    assert np.count_nonzero(status == Status.SEPARATED) > 4


def test_fewer_models_are_enumerated_where_classes_are_separated(rng):
    """They take dozens of steps instead of one."""
    X, y = simulate(rng, "binomial")
    overlapping = GlmEngine(y, resolve_prior("jeffreys"), platform=PLATFORM).prepare(X)
    X[:, 2] = X[:, 0] + 3.0 * y
    separated = GlmEngine(y, resolve_prior("jeffreys"), platform=PLATFORM).prepare(X)
    assert separated.enumeration_limit < overlapping.enumeration_limit


def test_dependent_columns_have_their_status(rng):
    X, y = simulate(rng, "binomial")
    X[:, 4] = X[:, 0] - 2.0 * X[:, 1]
    status = compare(GlmEngine(y, resolve_prior("jeffreys")), X)
    assert np.any(status == Status.RANK_DEFICIENT)


def test_rows_in_blocks_give_the_same(rng, monkeypatch):
    X, y = simulate(rng, "binomial")
    monkeypatch.setattr(problems, "BATCHES", (16, 32))
    monkeypatch.setattr(problems, "_MOST_NUMBERS", 32 * 50)
    compare(GlmEngine(y, resolve_prior("jeffreys")), X)


def test_steps_are_halved_where_the_likelihood_falls(monkeypatch):
    """Rows far out: one step is not enough, and whole ones overshoot for seven models."""
    monkeypatch.setattr(halving, "_ENOUGH", 4)
    rng = np.random.default_rng(6)
    X = rng.standard_t(1.0, size=(N, SIZE))
    eta = np.clip(X[:, 0] - X[:, 1] + X[:, 2], -700.0, 700.0)
    y = (rng.random(N) < 1 / (1 + np.exp(-eta))).astype(float)
    engine = GlmEngine(y, resolve_prior("jeffreys"))
    *_, converged = halving.evaluate_all(problems.DeviceProblem(engine.prepare(X), PLATFORM), None)
    assert not converged.any()
    compare(engine, X)


def test_too_few_steps_are_noticed(rng, monkeypatch):
    """Negative control: without the check of what is left to gain, values would be off."""
    X, y = simulate(rng, "poisson")
    monkeypatch.setattr(halving, "_ACCURATE", np.inf)
    monkeypatch.setattr(problems, "_NEAR", np.inf)
    engine = GlmEngine(y, resolve_prior("jeffreys"), "poisson")
    with pytest.raises(AssertionError):
        compare(engine, X, limit=1e-9)


PAIRS = [
    ("binomial", link) for link in ("logit", "probit", "cloglog", "log", "identity", "inverse")
]
PAIRS += [
    (family, link)
    for family in ("gaussian", "poisson", "gamma", "negative_binomial")
    for link in ("identity", "log", "inverse")
]


@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_row_formulas_are_those_of_the_kernels(rng, family, link):
    import jax

    from dbrm.evidence.device.program import likelihood as program

    eta = rng.uniform(1.1, 9.0, 40) if link == "inverse" else rng.uniform(-3.0, -0.1, 40)
    eta = rng.uniform(0.1, 0.9, 40) if link == "identity" else eta
    mean, total = np.round(rng.random(40), 1), rng.integers(1, 4, 40).astype(float)
    mean[:2] = 0.0, 1.0
    score, weight = np.empty(40), np.empty(40)
    codes = FAMILIES[family].code, LINKS[link].code
    expected = linearise(*codes, 2.5, mean, total, eta, score, weight)
    likelihood = program.Likelihood(*codes, True)
    with jax.enable_x64(True):
        found = jax.jit(program.linearise, static_argnums=0)(likelihood, 2.5, mean, total, eta)
    found = [np.asarray(part) for part in found]
    assert found[0].sum() == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(found[1], score, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(found[2], weight, rtol=1e-11)


def test_small_batches_stay_on_the_cpu(rng, monkeypatch):
    X, y = simulate(rng, "binomial")
    monkeypatch.setattr(device, "_LEAST_WORK", 1e9)
    counting = Counting(GlmEngine(y, resolve_prior("jeffreys")).prepare(X))
    DevicePopulation(counting, PLATFORM).log_evidence(EVERY)
    assert counting.n_models == len(EVERY)


def test_what_has_no_program_stays_on_the_cpu(rng):
    X, y = simulate(rng, "binomial")
    engine = GlmEngine(y, resolve_prior("normal-loggamma"), platform=PLATFORM)
    assert not isinstance(engine.prepare(X), DevicePopulation)


@pytest.mark.parametrize("limit", ["_MOST_NUMBERS", "memory"])
def test_columns_used_last_stay_on_the_device(monkeypatch, limit):
    """Of two that fit, those of the last population; the others are read again."""
    n, asked = 8, []
    if limit == "memory":
        monkeypatch.setattr(platforms.load_program(), "memory_of", lambda _: 4 * 2 * 8 * n)
    else:
        monkeypatch.setattr(device_rows, limit, 2 * n)
    rows = DeviceRows("cpu", FAMILIES["binomial"].code, LINKS["logit"].code, n, n)

    def hold(*names):
        def read(positions):
            asked.append([names[j] for j in positions])
            columns, bad = np.ones((positions.size + 1, n)), np.zeros(positions.size, dtype=bool)
            return [Block(0, n, {}, {})], lambda block: (columns, np.ones((3, n)), bad)

        return rows.hold(names, read)

    hold("a", "b")
    hold("b", "c")
    hold("a")
    assert asked == [["a", "b"], ["c"], ["a"]]


def test_without_jax_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(platforms, "find_spec", lambda name: None)
    with pytest.raises(InvalidSettingError, match=r"pip install 'dbrm\[gpu\]'"):
        choose_platform("gpu", 10_000)
    assert choose_platform("auto", 200_000) is None
    assert choose_platform("cpu", 10_000) is None


@pytest.mark.parametrize(("devices", "platform"), [([], None), ([object()], "gpu")])
def test_a_graphics_processor_is_taken_where_there_is_one(monkeypatch, devices, platform):
    program = platforms.load_program()
    monkeypatch.setattr(program, "find_devices", lambda name: devices)
    monkeypatch.setattr(program, "keep_programs", lambda: None)
    assert choose_platform("auto", 200_000) == platform
    assert choose_platform("auto", 10_000) is None
    if platform is None:
        with pytest.raises(InvalidSettingError, match="JAX sees none"):
            choose_platform("gpu", 10_000)
