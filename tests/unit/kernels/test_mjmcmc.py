"""Tests of `dbrm._kernels.mjmcmc`; its exact transition matrices are in `tests/statistical`."""

import numpy as np
import pytest

from dbrm._kernels import mjmcmc
from dbrm._kernels.compilation import plain
from dbrm._kernels.store import new_store
from dbrm.evidence import GaussianEngine, Jeffreys
from dbrm.search import KERNEL_NAMES, KernelMix, Mjmcmc

SIZE = 70


def only(kernel, n_steps=200, **options):
    weights = {name: float(name == kernel) for name in KERNEL_NAMES}
    if kernel == "swap":
        weights["change"] = 0.2
    return Mjmcmc(kernels=KernelMix(**weights), n_steps=n_steps, **options)


def run(loop, context, settings, start, size_prior=None):
    """The trace, the store and the last mask of one run."""
    size = start.size
    size_prior = np.zeros(size + 1) if size_prior is None else size_prior
    store = new_store(20_000, -(-size // 64))
    target = mjmcmc.Target(context, store, np.full(size, -1.0), size_prior)
    n_steps = settings.n_steps
    trace = mjmcmc.Trace(
        np.empty(n_steps),
        np.empty(n_steps, dtype=np.int32),
        np.empty(n_steps, dtype=np.int8),
        np.empty(n_steps, dtype=np.bool_),
        np.zeros(20_000, dtype=np.int64),
        np.zeros(5, dtype=np.int64),
        np.zeros(5, dtype=np.int64),
    )
    mask = start.copy()
    seed = np.random.Generator(np.random.PCG64(1))
    position = mjmcmc.new_position(mask, np.full(size, 0.5))
    loop(seed, target, settings.plan(), position, trace, n_steps)
    return trace, store, mask


@pytest.fixture
def context(rng):
    """Seventy columns: two words per model."""
    columns = rng.normal(size=(90, SIZE))
    response = columns[:, :3].sum(axis=1) + rng.normal(size=90)
    return GaussianEngine(response, Jeffreys()).prepare(columns).context


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_compiled_and_plain_take_the_same_steps(context, kernel):
    start = np.zeros(SIZE, dtype=np.bool_)
    # Every large jump is followed by an optimisation of its own.
    settings = only(kernel, n_steps=50 if kernel == "large_jump" else 200)
    compiled = run(mjmcmc.mjmcmc_loop, context, settings, start)
    uncompiled = run(plain(mjmcmc).mjmcmc_loop, context, settings, start)
    for one, other in zip(compiled[0], uncompiled[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)
    np.testing.assert_array_equal(compiled[1].words, uncompiled[1].words)
    np.testing.assert_array_equal(compiled[2], uncompiled[2])


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
def test_no_model_beyond_the_limit_is_evaluated(context, kernel):
    limit = np.where(np.arange(SIZE + 1) <= 4, 0.0, -np.inf)
    start = np.arange(SIZE) < 4
    trace, store, mask = run(mjmcmc.mjmcmc_loop, context, only(kernel), start, limit)
    met = np.unpackbits(store.words[: store.counts[0]].view(np.uint8), axis=1).sum(axis=1)
    assert met.max() == 4
    assert trace.size.max() <= 4
    assert mask.sum() <= 4


class Cliff:
    """A likelihood in Python with one model so good that all others weigh nothing beside it."""

    def evaluate(self, mask):
        return (0.0 if mask.all() else -2000.0), np.uint8(0)


class Impossible:
    """A likelihood that exists for one model only; chains may start elsewhere."""

    def evaluate(self, mask):
        return (0.0 if mask.all() else -np.inf), np.uint8(0)


@pytest.mark.parametrize("kernel", KERNEL_NAMES)
@pytest.mark.parametrize("likelihood", [Cliff(), Impossible()], ids=["cliff", "impossible"])
def test_weights_that_underflow_are_no_error(kernel, likelihood):
    """The multiple try once divided by the reference points, which weigh nothing here."""
    start = np.array([True, False])
    trace, _, mask = run(plain(mjmcmc).mjmcmc_loop, likelihood, only(kernel), start)
    assert mask.all()
    assert trace.log_posterior[-1] == -2.0
