"""Tests of `dbrm.search.mjmcmc`: chains against enumeration. The kernels have exact tests."""

from dataclasses import dataclass, fields
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import chi2

from dbrm._kernels.bits import unpack_index
from dbrm.errors import InvalidSettingError
from dbrm.evidence import GaussianEngine, Jeffreys
from dbrm.search import (
    KERNEL_NAMES,
    KernelMix,
    Mjmcmc,
    OptimiserMix,
    PriorTerms,
    enumerate_population,
)

# One false alarm per million runs.
ALARM = 1e-6
SIZE = 6
THIN = 40


@pytest.fixture
def population(rng):
    """Weak signals: the posterior is spread over many models."""
    columns = rng.normal(size=(40, SIZE))
    columns[:, 1] += columns[:, 0]
    response = 0.4 * columns[:, 0] + 0.3 * columns[:, 3] + rng.normal(size=40)
    return GaussianEngine(response, Jeffreys()).prepare(columns)


def terms(penalty=1.0, size=SIZE, max_size=None):
    limit = size if max_size is None else max_size
    sizes = np.where(np.arange(size + 1) <= limit, 0.0, -np.inf)
    return PriorTerms(np.full(size, -penalty), sizes)


def frequency_pvalue(settings, population, prior, rng):
    """Chi-square of thinned visits against the exact posterior, top models and the rest.

    Thinned so far that neighbours are nearly independent: every run restarts where the
    last one stopped.
    """
    exact = enumerate_population(population, terms(), window=np.inf, max_kept=1 << SIZE)
    log_posterior = exact.log_evidence + exact.log_prior
    weights = np.exp(log_posterior - exact.log_mass)
    mask = np.zeros(SIZE, dtype=np.bool_)
    codes = []
    for _ in range(3000):
        mask = settings.explore(rng, population, prior, mask).last
        codes.append(int(mask @ (1 << np.arange(SIZE))))
    drawn = np.bincount(codes[20:], minlength=1 << SIZE)
    order = np.argsort(-weights)[:12]
    number = exact.masks[order] @ (1 << np.arange(SIZE))
    expected = np.append(weights[order], 1 - weights[order].sum()) * drawn.sum()
    observed = np.append(drawn[number], drawn.sum() - drawn[number].sum())
    return chi2.sf(np.sum((observed - expected) ** 2 / expected), 12)


def test_visits_follow_the_posterior(population, rng):
    settings = Mjmcmc(n_steps=THIN, adapt=0.0)
    assert frequency_pvalue(settings, population, terms(), rng) > ALARM


def test_a_chain_with_another_target_is_caught(population, rng):
    """Negative control: a prior that differs by half a nat per feature."""
    settings = Mjmcmc(n_steps=THIN, adapt=0.0)
    assert frequency_pvalue(settings, population, terms(penalty=0.5), rng) < ALARM


def test_a_long_walk_sees_every_model_and_then_is_exact(population, rng):
    """Renormalised over all models the estimate is the posterior itself."""
    exact = enumerate_population(population, terms(), window=np.inf, max_kept=1 << SIZE)
    found = Mjmcmc(n_steps=5000).explore(rng, population, terms(), np.zeros(SIZE, dtype=np.bool_))
    assert found.n_evaluated == 1 << SIZE
    assert found.log_mass == pytest.approx(exact.log_mass, abs=1e-10)
    np.testing.assert_allclose(found.inclusion, exact.inclusion, atol=1e-10)


def test_no_model_is_larger_than_allowed(rng):
    columns = rng.normal(size=(60, 30))
    population = GaussianEngine(columns.sum(axis=1), Jeffreys()).prepare(columns)
    found = Mjmcmc(n_steps=3000, window=np.inf).explore(
        rng, population, terms(0.1, 30, max_size=4), np.zeros(30, dtype=np.bool_)
    )
    assert found.masks.sum(axis=1).max() == 4
    assert np.all(np.isfinite(found.log_evidence))
    assert found.last.sum() <= 4


@pytest.mark.parametrize("size", [1, 63, 64, 65, 130])
def test_masks_survive_packing(size, rng):
    """Evidence kept beside a mask is that of the mask."""
    columns = rng.normal(size=(200, size))
    population = GaussianEngine(columns[:, -1] + rng.normal(size=200), Jeffreys()).prepare(columns)
    found = Mjmcmc(n_steps=500).explore(
        rng, population, terms(3.0, size), np.zeros(size, dtype=np.bool_)
    )
    again, _ = population.log_evidence(found.masks)
    np.testing.assert_allclose(found.log_evidence, again)
    np.testing.assert_allclose(found.log_prior, -3.0 * found.masks.sum(axis=1))


def test_what_is_not_kept_is_booked_as_lost(population, rng):
    settings = Mjmcmc(n_steps=5000, max_kept=20)
    found = settings.explore(rng, population, terms(), np.zeros(SIZE, dtype=np.bool_))
    assert len(found.masks) == 20
    assert found.n_evaluated == 1 << SIZE
    kept = np.logaddexp.reduce(found.log_evidence + found.log_prior)
    assert np.logaddexp(kept, found.log_lost) == pytest.approx(found.log_mass, abs=1e-9)


def test_models_that_found_no_room_are_booked_as_lost(population, rng):
    """Room for thirteen models of sixty-four: what is lost is bounded, not passed over."""
    exact = enumerate_population(population, terms(), window=np.inf, max_kept=1 << SIZE)
    settings = Mjmcmc(n_steps=5000, max_kept=3)
    found = settings.explore(rng, population, terms(), np.zeros(SIZE, dtype=np.bool_))
    kept = np.logaddexp.reduce(found.log_evidence + found.log_prior)
    assert np.logaddexp(kept, found.log_lost) >= exact.log_mass


def test_the_same_generator_gives_the_same_walk(population):
    walks = [
        Mjmcmc(n_steps=400).explore(
            np.random.default_rng(5), population, terms(), np.zeros(SIZE, dtype=np.bool_)
        )
        for _ in range(2)
    ]
    np.testing.assert_array_equal(walks[0].masks, walks[1].masks)
    np.testing.assert_array_equal(walks[0].walk.log_posterior, walks[1].walk.log_posterior)


def test_a_python_likelihood_runs_through_the_same_loop(population, rng):
    """The compiled engine, wrapped so that only its Python face shows."""

    class Wrapped:
        size, enumeration_limit = SIZE, 0

        @property
        def context(self):
            return self

        def evaluate(self, mask):
            values, statuses = population.log_evidence(mask[None, :])
            return values[0], statuses[0]

    start = np.zeros(SIZE, dtype=np.bool_)
    settings = Mjmcmc(n_steps=300)
    plain = settings.explore(np.random.default_rng(1), Wrapped(), terms(), start)
    compiled = settings.explore(np.random.default_rng(1), population, terms(), start)
    np.testing.assert_array_equal(plain.masks, compiled.masks)
    np.testing.assert_allclose(plain.inclusion, compiled.inclusion)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_steps": 0}, "n_steps of at least 1; got n_steps=0"),
        ({"max_change": 0}, "max_change of at least 1"),
        ({"n_tries": 0}, "n_tries of at least 1"),
        ({"rate": 0.0}, "rate strictly between 0 and 1"),
        ({"rate": 1.0}, "rate strictly between 0 and 1"),
        ({"epsilon": np.nan}, "epsilon strictly between 0 and 1"),
        ({"adapt": 1.0}, r"adapt in \[0, 1\); got adapt=1.0"),
        ({"jump_size": (4, 3)}, "jump_size"),
        ({"cooling": 1.0}, "cooling > 1"),
    ],
)
def test_settings_that_cannot_work_are_refused(options, message):
    with pytest.raises(InvalidSettingError, match=message):
        Mjmcmc(**options)


def test_kernels_that_never_change_the_size_are_refused():
    only_swap = {name: float(name == "swap") for name in KERNEL_NAMES}
    with pytest.raises(InvalidSettingError, match="besides swap"):
        Mjmcmc(kernels=KernelMix(**only_swap))
    with pytest.raises(InvalidSettingError, match="not be negative"):
        Mjmcmc(kernels=KernelMix(change=-1.0))


def test_enumeration_and_walk_agree_on_masks_of_all_sizes(population):
    """The bit order of enumeration is that of unpacked indices."""
    exact = enumerate_population(population, terms(), window=np.inf, max_kept=1 << SIZE)
    np.testing.assert_array_equal(exact.masks, unpack_index(np.arange(1 << SIZE), SIZE))


@dataclass(frozen=True)
class WiderMix(OptimiserMix):
    """The optimisers of another version, which has one more."""

    newest: float = 1.0


@pytest.mark.parametrize("mix", [OptimiserMix(), WiderMix(), OptimiserMix(0.0, 1.0, 0.0)])
def test_steepest_ascent_uses_no_other_optimiser(mix, population, rng, monkeypatch):
    """Whatever the mix, and however many optimisers there are, the greedy one alone."""
    weights = []

    def spy(self, rng, population, terms, start):
        weights.append(self.plan().optimiser_weights.tolist())
        return SimpleNamespace(last=start)

    monkeypatch.setattr(Mjmcmc, "maximize", spy)
    Mjmcmc(ascend=True, optimisers=mix).begin(rng, population, terms(), np.zeros(SIZE, bool))
    assert weights == [[1.0] + [0.0] * (len(fields(mix)) - 1)]


@pytest.mark.parametrize("name", [item.name for item in fields(OptimiserMix)])
def test_every_optimiser_by_itself_moves(name, population, rng):
    """A weight without a branch in the dispatch would leave the mask where it is."""
    settings = Mjmcmc(optimisers=OptimiserMix.only(name))
    starts = rng.random((20, SIZE)) < 0.5
    ends = [settings.maximize(rng, population, terms(), start.copy()).last for start in starts]
    values, _ = population.log_evidence(np.array([starts, ends]).reshape(-1, SIZE))
    gain = values[20:] + terms().of(np.array(ends)) - values[:20] - terms().of(starts)
    assert gain.mean() > 0.0


@pytest.mark.parametrize("name", [name for name in KERNEL_NAMES if name != "swap"])
def test_every_kernel_by_itself_moves(name, population, rng):
    kernels = KernelMix(**{other: float(other == name) for other in KERNEL_NAMES})
    found = Mjmcmc(n_steps=400, kernels=kernels).explore(
        rng, population, terms(), np.zeros(SIZE, bool)
    )
    assert found.walk.proposed == {other: 400 * (other == name) for other in KERNEL_NAMES}
    assert found.walk.accepted[name] > 0


def test_a_climb_among_dependent_columns_finds_nothing_and_says_so(rng):
    """Every model within reach holds two of the same column."""
    column = rng.normal(size=40)
    columns = np.column_stack([column] * 12)
    population = GaussianEngine(column + rng.normal(size=40), Jeffreys()).prepare(columns)
    settings = Mjmcmc(greedy_steps=2, n_steps=5)
    with np.errstate(invalid="raise"):
        found = [
            settings.maximize(rng, population, terms(size=12), np.ones(12, bool)) for _ in "123"
        ]
    lost = [one for one in found if one.log_mass == -np.inf]
    assert lost
    assert all(np.all(one.inclusion == 0.0) for one in lost)


def forward_selection(population, prior):
    """Add the best column as long as that helps, models evaluated one by one."""
    mask, best = np.zeros(population.size, dtype=np.bool_), -np.inf
    while True:
        masks = mask | np.eye(population.size, dtype=np.bool_)
        values = population.log_evidence(masks)[0] + prior.of(masks)
        if values.max() <= best:
            return mask
        mask, best = masks[values.argmax()], values.max()


def test_an_ascent_from_the_null_model_is_forward_selection(rng):
    columns = rng.normal(size=(80, 12))
    response = columns[:, [1, 4, 7]] @ [1.0, -0.8, 0.9] + rng.normal(size=80)
    population = GaussianEngine(response, Jeffreys()).prepare(columns)
    prior, null = terms(size=12), np.zeros(12, dtype=np.bool_)
    expected = forward_selection(population, prior)
    assert {1, 4, 7} <= set(np.flatnonzero(expected))
    begin = Mjmcmc(ascend=True).begin(rng, population, prior, null)
    np.testing.assert_array_equal(begin, expected)
    np.testing.assert_array_equal(Mjmcmc().begin(rng, population, prior, null), null)


def test_models_met_on_an_ascent_do_not_count(population, rng):
    """One step of a kernel that looks at one model: the start and that model."""
    steps = Mjmcmc(n_steps=1, ascend=True, kernels=KernelMix(1.0, 0.0, 0.0, 0.0, 0.0))
    found = steps.explore(rng, population, terms(), np.zeros(SIZE, dtype=np.bool_))
    assert found.n_evaluated <= 2
