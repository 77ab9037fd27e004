"""Exact transition matrices of the MJMCMC kernels, from the source that runs in production."""

import inspect
import re
from dataclasses import dataclass, field
from types import ModuleType

import numpy as np
import pytest
from tests.statistical.exhaustive import invariance_error, transition_matrix

from dbrm._kernels import mjmcmc as source
from dbrm._kernels.compilation import plain
from dbrm._kernels.store import new_store
from dbrm.search import KERNEL_NAMES, KernelMix, Mjmcmc, OptimiserMix

SIZE = 3
# Large jumps draw so many numbers that three components are enough to write out.
JUMP = {
    "jump_size": (1, 2),
    "rate": 0.2,
    "hottest": 2.0,
    "coldest": 2.0,
    "moves_per_temperature": 1,
    "local_moves": 1,
    "max_change": 2,
    "n_tries": 2,
    "n_steps": 1,
    "adapt": 0.0,
}


@dataclass(frozen=True)
class TableContext:
    """A likelihood given as a table over masks; it runs through the uncompiled loop."""

    values: np.ndarray

    def evaluate(self, mask):
        value = self.values[int(mask @ (1 << np.arange(mask.size)))]
        return value, np.uint8(0 if np.isfinite(value) else 10)


NOBODY = np.zeros((0, 0), dtype=bool), np.zeros(0, dtype=np.int64)
# The last of three features is the product of the other two.
FACTORS = np.array([[0, 0, 0], [0, 0, 0], [1, 1, 0]], dtype=bool)
NEEDED = {"strong": np.array([0, 0, 2]), "weak": np.array([0, 0, 1])}


@dataclass(frozen=True)
class Case:
    """A random target over the masks of a small population."""

    log_evidence: np.ndarray
    feature: np.ndarray
    size: np.ndarray
    parents: np.ndarray
    needed: np.ndarray
    latent: np.ndarray = field(default_factory=lambda: np.zeros(1))

    @property
    def masks(self):
        subsets = np.arange(len(self.log_evidence))[:, None]
        return (subsets >> np.arange(self.feature.size)) & 1 > 0

    @property
    def probability(self):
        n_features = self.feature.size - self.latent.size + 1
        counts = self.masks[:, :n_features].sum(axis=1), self.masks[:, n_features:].sum(axis=1)
        log_posterior = self.log_evidence + self.masks @ self.feature
        log_posterior = log_posterior + self.size[counts[0]] + self.latent[counts[1]]
        if self.needed.size:
            present = self.masks.astype(int) @ self.parents.T.astype(int)
            log_posterior[(self.masks & (present < self.needed)).any(axis=1)] = -np.inf
        mass = np.exp(log_posterior - log_posterior.max())
        return mass / mass.sum()


def make_case(rng, *, max_size=SIZE, dependent=False, heredity=None):
    log_evidence = 2.0 * rng.normal(size=1 << SIZE)
    if dependent:
        log_evidence[0b110] = -np.inf
    size = np.where(np.arange(SIZE + 1) <= max_size, rng.normal(size=SIZE + 1), -np.inf)
    kin = NOBODY if heredity is None else (FACTORS, NEEDED[heredity])
    return Case(log_evidence, rng.normal(size=SIZE), size, *kin)


def exact_matrix(case, settings, functions, propensity=(0.2, 0.5, 0.9)):
    """One step of the production loop from every mask of positive probability."""
    states = np.flatnonzero(case.probability > 0)
    position = {int(state): i for i, state in enumerate(states)}
    plan = settings.plan()

    def step(rng, index):
        mask = case.masks[states[index]].copy()
        store = new_store(64, 1)
        context = TableContext(case.log_evidence)
        target = source.Target(
            context, store, case.feature, case.size, case.parents, case.needed, case.latent
        )
        trace = source.Trace(
            np.empty(1),
            np.empty(1, dtype=np.int32),
            np.empty(1, dtype=np.int8),
            np.empty(1, dtype=np.bool_),
            np.zeros(64, dtype=np.int64),
            np.zeros(5, dtype=np.int64),
            np.zeros(5, dtype=np.int64),
        )
        start = source.new_position(mask, np.array(propensity))
        functions.mjmcmc_loop(rng, target, plan, start, trace, 1)
        return position[int(mask @ (1 << np.arange(SIZE)))]

    return transition_matrix(step, states.size), case.probability[states]


def settings_for(kernel, optimiser="greedy", **options):
    weights = {name: float(name == kernel) for name in KERNEL_NAMES}
    optimisers = {name: float(name == optimiser) for name in ("greedy", "annealing", "local")}
    mix = KernelMix(**weights) if kernel != "swap" else KernelMix(**weights | {"change": 0.5})
    return Mjmcmc(kernels=mix, optimisers=OptimiserMix(**optimisers), **JUMP | options)


KERNELS = [
    pytest.param(settings_for("change"), id="change"),
    pytest.param(settings_for("swap"), id="swap"),
    pytest.param(settings_for("add_delete"), id="add_delete"),
    # Of several tries each draws a change: changes of one component are enough to write out.
    pytest.param(settings_for("multiple_try", max_change=1), id="multiple_try"),
    *(
        pytest.param(
            settings_for("large_jump", optimiser, delayed=delayed), id=f"{optimiser}-{delayed}"
        )
        for optimiser in ("greedy", "annealing", "local")
        for delayed in (True, False)
    ),
]
# The same with more random numbers, which take longer to write out.
LONGER = [
    pytest.param(settings_for("multiple_try"), id="multiple_try"),
    pytest.param(settings_for("large_jump", "local", local_moves=2), id="local"),
    pytest.param(Mjmcmc(**JUMP, kernels=KernelMix(0.3, 0.2, 0.2, 0.2, 0.1)), id="mixture"),
]


@pytest.mark.parametrize("settings", KERNELS)
def test_kernel_moves_latent_effects(settings, rng):
    """One feature and two latent effects, of which a model has at most one."""
    values = 2.0 * rng.normal(size=1 << SIZE)
    latent = np.array([0.0, 0.3, -np.inf])
    case = Case(values, rng.normal(size=SIZE), rng.normal(size=2), *NOBODY, latent)
    assert (case.probability > 0).sum() == 6
    matrix, probability = exact_matrix(case, settings, plain(source))
    assert invariance_error(matrix, probability) < 1e-12
    reached = np.linalg.matrix_power(matrix + np.eye(len(matrix)), len(matrix))
    assert np.all(reached > 0)


@pytest.mark.parametrize("settings", KERNELS)
@pytest.mark.parametrize("variant", ["all models", "at most two features", "dependent columns"])
def test_kernel_leaves_the_posterior_alone(settings, variant, rng):
    case = make_case(
        rng,
        max_size=2 if variant == "at most two features" else SIZE,
        dependent=variant == "dependent columns",
    )
    matrix, probability = exact_matrix(case, settings, plain(source))
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    assert invariance_error(matrix, probability) < 1e-12
    if variant == "all models":
        reached = np.linalg.matrix_power(matrix + np.eye(len(matrix)), len(matrix)) > 0
        assert reached.all()


@pytest.mark.slow
@pytest.mark.parametrize("settings", LONGER)
def test_longer_kernels_leave_the_posterior_alone(settings, rng):
    matrix, probability = exact_matrix(make_case(rng), settings, plain(source))
    assert invariance_error(matrix, probability) < 1e-12


def test_a_mixture_is_the_weighted_sum_of_its_kernels(rng):
    """And so leaves alone what each of them does."""
    case = make_case(rng)
    names = ("change", "add_delete")
    parts = [exact_matrix(case, settings_for(name), plain(source))[0] for name in names]
    mixture = Mjmcmc(**JUMP, kernels=KernelMix(0.3, 0.0, 0.7, 0.0, 0.0))
    matrix, _ = exact_matrix(case, mixture, plain(source))
    np.testing.assert_allclose(matrix, 0.3 * parts[0] + 0.7 * parts[1], atol=1e-14)


@pytest.mark.parametrize("settings", KERNELS)
@pytest.mark.parametrize(("heredity", "n_models"), [("strong", 5), ("weak", 7)])
def test_kernel_keeps_to_heredity(settings, heredity, n_models, rng):
    """No step leads to a product without its factors, and the posterior is left alone."""
    matrix, probability = exact_matrix(make_case(rng, heredity=heredity), settings, plain(source))
    assert matrix.shape == (n_models, n_models)
    assert invariance_error(matrix, probability) < 1e-12
    reached = np.linalg.matrix_power(matrix + np.eye(n_models), n_models) > 0
    assert reached.all()


def mutant(original, planted):
    """The kernels with one line of their source replaced."""
    text = inspect.getsource(source)
    assert text.count(original) == 1, "the planted line must be found exactly once"
    text = re.sub(r"@nb\.njit\(.*\)\n", "", text.replace(original, planted))
    module = ModuleType("mutant")
    exec(compile(text, "mutant", "exec"), vars(module))
    return module


MUTANTS = [
    pytest.param(
        settings_for("large_jump", "annealing"),
        "np.log(plan.rate / (1.0 - plan.rate))",
        "np.log(plan.rate)",
        id="rho without 1 - rho",
    ),
    pytest.param(
        settings_for("large_jump", "greedy"),
        "distance += workspace.back[j] != mask[j]",
        "distance += workspace.back[j] != workspace.trial[j]",
        id="way back measured at the wrong model",
    ),
    pytest.param(
        settings_for("add_delete"),
        "return np.log(returning / back) - np.log(weights[j] / forth)",
        "return 0.0",
        id="add and delete with the forward probability",
    ),
    pytest.param(
        settings_for("multiple_try", max_change=1),
        "backward = np.exp(min(_LARGE, current - peak))",
        "backward = 0.0",
        id="multiple try without the current model",
    ),
    pytest.param(
        settings_for("large_jump", "local"),
        "if not plan.delayed:\n        log_ratio += proposed - current",
        "log_ratio += proposed - current",
        id="posterior ratio counted twice",
    ),
    pytest.param(
        settings_for("large_jump", "greedy"),
        "_flip_set(workspace.back, workspace.back_words, workspace.inside)",
        "_flip(workspace.back, workspace.back_words, 0)",
        id="another index set on the way back",
    ),
]


@pytest.mark.parametrize(("settings", "original", "planted"), MUTANTS)
def test_planted_mistakes_are_caught(settings, original, planted, rng):
    """Negative control: each wrong kernel misses its target by far more than rounding."""
    matrix, probability = exact_matrix(make_case(rng), settings, mutant(original, planted))
    assert invariance_error(matrix, probability) > 1e-4


def test_only_ever_flipping_the_first_component_is_not_irreducible(rng):
    """The mistake of a published implementation keeps invariance but not irreducibility."""
    broken = mutant("_flip(mask, words, scratch[i])", "_flip(mask, words, 0)")
    matrix, _ = exact_matrix(make_case(rng), settings_for("change"), broken)
    reached = np.linalg.matrix_power(matrix + np.eye(len(matrix)), len(matrix)) > 0
    assert not reached.all()
