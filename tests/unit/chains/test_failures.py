"""Tests of chains that fail and workers that die: tried again, or told; never made up."""

import os
import signal
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import dbrm
from dbrm.errors import ChainError, DBRMWarning, InvalidSettingError
from dbrm.evolution import ALGORITHMS, AbstractChain
from dbrm.evolution.algorithms.gmjmcmc import Gmjmcmc


class Flaky(AbstractChain):
    """GMJMCMC whose third population fails, as often as it is told to."""

    failures: dict[int, int] = {}  # noqa: RUF012
    layout = staticmethod(Gmjmcmc.layout)
    total = staticmethod(Gmjmcmc.total)

    def __init__(self, rng, problem):
        self._run = Gmjmcmc(rng, problem)
        self._chain = rng.bit_generator.seed_seq.spawn_key[-1]

    def advance(self, most):
        if self._run.n_done == 2 and self.failures.get(self._chain, 0) > 0:
            self.failures[self._chain] -= 1
            raise ZeroDivisionError("a population that cannot be")
        self._run.advance(most)

    @property
    def finished(self):
        return self._run.finished

    @property
    def n_done(self):
        return self._run.n_done

    def progress(self):
        return self._run.progress()

    def get_state(self):
        return self._run.get_state()

    def set_state(self, snapshot):
        self._run.set_state(snapshot)

    def result(self):
        return self._run.result()


@pytest.fixture
def flaky(monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "gmjmcmc", Flaky)
    monkeypatch.setattr(Flaky, "failures", {})
    return Flaky.failures


def test_a_chain_that_fails_is_tried_again_with_the_same_seed(flaky, data, settings, whole, same):
    flaky[1] = 2
    posterior = dbrm.fit(*data, **settings)
    assert flaky == {1: 0}
    assert posterior.record.failures == {}
    same(posterior, whole)


def test_a_chain_that_keeps_failing_is_told_and_left_out(flaky, data, settings, whole):
    flaky[1] = 99
    with pytest.warns(DBRMWarning, match=r"1 of 3 chains failed.*\(ZeroDivisionError: a popul"):
        posterior = dbrm.fit(*data, **settings)
    record = posterior.record
    assert record.n_chains == record.n_finished == 2
    assert list(record.failures) == [1]
    masses = whole.record.chain_log_mass
    assert record.chain_log_mass == (masses[0], masses[2])
    text = " ".join(posterior.summary().split())
    assert "One chain failed. " in text
    assert "chain 1: ZeroDivisionError: a population" in text


def test_failures_are_kept_in_files(flaky, data, settings, tmp_path):
    flaky[2] = 99
    with pytest.warns(DBRMWarning, match="1 of 3 chains failed"):
        posterior = dbrm.fit(*data, **settings)
    posterior.save(tmp_path / "run.dbrm")
    assert dbrm.load(tmp_path / "run.dbrm").record.failures == posterior.record.failures


def test_if_all_fail_there_is_no_posterior(flaky, data, settings):
    flaky.update({0: 99, 1: 99, 2: 99})
    with pytest.raises(ChainError, match=r"All 3 chains failed(.|\n)*ZeroDivisionError: a popul"):
        dbrm.fit(*data, **settings)


def deadly(folder, n):
    """An evidence that kills its process when it meets a model of two features; `n` times."""
    # Inside a function, so that it travels to the workers by value.
    folder, driver = Path(folder), os.getpid()

    def evidence(X, y):
        marks = len(list(folder.iterdir()))
        if X.shape[1] == 2 and marks < n and os.getpid() != driver:
            (folder / str(marks)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        left = y - y.mean()
        return float(1e-3 * np.sum(X.T @ left) - 0.5 * len(y) * np.log(np.sum(left**2)))

    return evidence


@pytest.fixture
def small(data):
    X, y = data
    options = {"n_chains": 3, "n_populations": 3, "population_size": 4, "random_state": 5}
    return (X[:, :3], y), options | {"transforms": ["sin"], "sweep": 0}


@pytest.mark.posix
def test_a_worker_that_dies_costs_nothing(small, tmp_path, same):
    """joblib gives up all work of the round; the chains are run again and end the same."""
    rows, options = small
    healthy = dbrm.fit(*rows, **options, evidence=deadly(tmp_path, 0))
    posterior = dbrm.fit(*rows, **options, evidence=deadly(tmp_path, 1), n_jobs=2)
    assert len(list(tmp_path.iterdir())) == 1
    assert posterior.record.failures == {}
    same(posterior, healthy)


@pytest.mark.posix
@pytest.mark.slow
def test_a_chain_that_kills_every_worker_is_told(small, tmp_path):
    rows, options = small
    options |= {"n_chains": 2}
    with pytest.raises(ChainError, match="All 2 chains failed"):
        dbrm.fit(*rows, **options, evidence=deadly(tmp_path, 999), n_jobs=2)


def test_any_executor_will_do(data, settings, whole, same):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        same(dbrm.fit(*data, **settings, executor=executor), whole)


def test_other_executors_are_refused(data, settings):
    with pytest.raises(InvalidSettingError, match=r"executor must be a dask\.distributed\.Client"):
        dbrm.fit(*data, **settings, executor="spark")
