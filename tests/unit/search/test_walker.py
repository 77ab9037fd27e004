"""Tests of `dbrm.search.walker`: in how many pieces a walk is made changes nothing."""

from itertools import pairwise

import numpy as np
import pytest

from dbrm.evidence import GaussianEngine, GlmEngine, Jeffreys
from dbrm.search import Mjmcmc, PriorTerms, Walker

SIZE = 30
ENGINES = {"gaussian": 2000, "binomial": 120, "python": 120}


def prepare(kind, rng):
    columns = rng.normal(size=(60, SIZE))
    response = columns[:, 0] + rng.normal(size=60)
    if kind == "binomial":
        engine = GlmEngine((response > 0).astype(float), Jeffreys(), "binomial")
    else:
        engine = GaussianEngine(response, Jeffreys())
    population = engine.prepare(columns)
    return Uncompiled(population) if kind == "python" else population


class Uncompiled:
    """A likelihood in Python."""

    def __init__(self, population):
        self._population = population
        self.size = population.size

    @property
    def context(self):
        return self

    def evaluate(self, mask):
        values, statuses = self._population.log_evidence(mask[None])
        return float(values[0]), statuses[0]


def terms():
    return PriorTerms(np.full(SIZE, -1.0), np.zeros(SIZE + 1))


def assert_same(one, other):
    for name in ("masks", "log_evidence", "log_prior", "statuses", "inclusion", "last"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.n_evaluated, one.log_lost) == (other.n_evaluated, other.log_lost)
    assert one.status_counts == other.status_counts
    for name in ("frequency", "visits", "log_posterior", "size"):
        np.testing.assert_array_equal(getattr(one.walk, name), getattr(other.walk, name))
    assert one.walk.proposed == other.walk.proposed
    assert one.walk.accepted == other.walk.accepted


@pytest.mark.parametrize("kept", [100_000, 20], ids=["room", "full store"])
@pytest.mark.parametrize("kind", ENGINES)
def test_a_walk_in_pieces_is_the_walk_in_one(kind, kept, rng):
    """Each piece begins in a fresh walker that was told nothing but the arrays."""
    n_steps = ENGINES[kind]
    settings = Mjmcmc(n_steps=n_steps, max_kept=kept)
    population, start = prepare(kind, rng), np.arange(SIZE) < 2
    whole = settings.explore(np.random.default_rng(4), population, terms(), start)
    draws = np.random.default_rng(4)
    cuts = [0, 1, n_steps // 5, n_steps // 2, n_steps - 1, 2 * n_steps]
    walker = Walker(settings, population, terms(), start)
    for first, second in pairwise(cuts):
        walker.walk(draws, second - first)
        fresh = Walker(settings, population, terms(), np.zeros(SIZE, dtype=np.bool_))
        fresh.restore({name: array.copy() for name, array in walker.to_arrays().items()})
        walker = fresh
    assert walker.n_done == n_steps
    assert (whole.n_evaluated > 4 * kept) == (kept == 20)
    assert_same(walker.found(), whole)


def test_a_walk_cut_short_reports_the_steps_it_made(rng):
    settings = Mjmcmc(n_steps=1000, adapt=0.3)
    walker = Walker(settings, prepare("gaussian", rng), terms(), np.zeros(SIZE, dtype=np.bool_))
    walker.walk(rng, 500)
    walk = walker.found().walk
    assert walk.log_posterior.size == walk.size.size == 200
    assert sum(walk.proposed.values()) == 500
    assert walk.visits.sum() == 200
