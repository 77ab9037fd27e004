"""Tests of where slices run: shared data, threads, progress and logs."""

import logging

import joblib
import numpy as np
import pytest

import dbrm
from dbrm.chains import run_chains
from dbrm.data import Table


def test_processes_share_large_tables(rng):
    """They see one memory map, read-only, where a copy for each would be 3 MB."""
    table = Table(tuple(f"x{j}" for j in range(20)), rng.normal(size=(20_000, 20)))

    def look(table):
        kind = type(table.values).__name__
        return kind, table.values.flags.owndata, table.values.flags.writeable

    seen = joblib.Parallel(n_jobs=2)(joblib.delayed(look)(table) for _ in range(2))
    assert seen == [("memmap", False, False)] * 2


def test_threads_give_the_same(data, settings, whole, same):
    with joblib.parallel_config(backend="threading"):
        same(dbrm.fit(*data, **settings, n_jobs=3), whole)


def test_progress_comes_from_workers_too(whole, monkeypatch):
    """After every slice, and at the end of every chain."""
    monkeypatch.setattr("dbrm.chains.driver._WATCHED_ROUND", 0.05)
    told, results = [], []

    def progress(chain, chain_progress):
        told.append((chain, chain_progress))

    with joblib.parallel_config(backend="threading"):
        sequence = np.random.SeedSequence(1)
        run_chains(whole._problem, 3, sequence, results.append, n_jobs=2, progress=progress)
    assert len(results) == 3
    assert sorted(chain for chain, chain_progress in told if chain_progress is None) == [0, 1, 2]
    assert any(
        0 < chain_progress.n_done < 12 for _, chain_progress in told if chain_progress is not None
    )


def test_results_come_in_the_order_of_the_chains(whole, monkeypatch):
    """Whatever the order in which they end: here the last one ends first."""
    from dbrm.chains import executors

    monkeypatch.setattr("dbrm.chains.driver.choose_executor", lambda *_, **__: Backwards())

    class Backwards(executors.AbstractExecutor):
        count = 3

        def share(self, problem):
            self._here = executors.InProcess(None)
            self._here.share(problem)

        def run(self, slices):
            return self._here.run(slices[::-1])

    results, expected = [], whole.record.chain_log_mass
    sequence = np.random.SeedSequence(11)
    run_chains(whole._problem, 3, sequence, results.append)
    masses = [
        float(np.logaddexp.reduce(result.models.log_evidence + result.models.log_prior))
        for result in results
    ]
    np.testing.assert_allclose(masses, expected, rtol=1e-12)


def test_logs_have_fields(data, settings, caplog):
    caplog.set_level(logging.INFO, "dbrm")
    dbrm.fit(*data, **settings | {"n_populations": 2})
    events = [(record.event, getattr(record, "chain", None)) for record in caplog.records]
    assert events == [("started", None), ("finished", 0), ("finished", 1), ("finished", 2)]
    assert {record.name for record in caplog.records} == {"dbrm.chains"}


def test_runs_that_differ_are_told_apart(data, settings, whole, same):
    """Negative control of the comparison that the tests of chains rest on."""
    with pytest.raises(AssertionError):
        same(dbrm.fit(*data, **settings | {"random_state": 12}), whole)
