"""Tests on a real Dask cluster of two worker processes on this machine."""

import logging
import os
import threading
import time

import joblib
import pytest

import dbrm

distributed = pytest.importorskip("distributed", reason="Dask is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_on_a_client(client, data, settings, whole, same):
    same(dbrm.fit(*data, **settings, executor=client), whole)


def test_through_joblib(client, data, settings, whole, same):
    with joblib.parallel_config(backend="dask"):
        same(dbrm.fit(*data, **settings), whole)


def test_with_a_checkpoint(client, data, settings, whole, same, tmp_path):
    """Workers send their states; only this process writes."""
    same(dbrm.fit(*data, **settings, executor=client, checkpoint=tmp_path), whole)
    same(dbrm.resume(tmp_path), whole)


@pytest.mark.slow
@pytest.mark.posix
@pytest.mark.parametrize("failures", [0, pytest.param(3, marks=pytest.mark.slow)])
def test_a_worker_that_is_killed_costs_nothing(
    failures, client, data, settings, same, monkeypatch, caplog
):
    """Whether Dask gives up its tasks, or runs them again by itself."""
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", failures)
    client.wait_for_workers(2)
    caplog.set_level(logging.WARNING, "dbrm")
    options = settings | {"n_populations": 30, "n_chains": 4}
    healthy = dbrm.fit(*data, **options)
    pids = client.run(os.getpid)
    address, victim = next(iter(pids.items()))
    killed = threading.Event()

    def kill():
        while not client.processing().get(address):
            time.sleep(0.01)
        os.kill(victim, 9)
        killed.set()

    thread = threading.Thread(target=kill)
    thread.start()
    posterior = dbrm.fit(*data, **options, executor=client)
    assert killed.is_set()
    thread.join()
    assert posterior.record.failures == {}
    told = {record.event for record in caplog.records if record.name == "dbrm.chains"}
    assert ("worker_lost" in told) == (failures == 0)
    same(posterior, healthy)


@pytest.mark.slow
def test_kepler_with_64_chains(client, same):
    """The law is found, and the cluster's numbers are joblib's to the last bit."""
    planets = dbrm.datasets.simulate_planets(seed=1)
    X, y = planets.drop(columns="SemiMajorAxisAU"), planets["SemiMajorAxisAU"]
    options = {"transforms": ["troot"], "n_chains": 64, "random_state": 1}
    posterior = dbrm.fit(X, y, **options, executor=client)
    assert posterior.inclusion("troot(PeriodDays*PeriodDays*HostStarMassSlrMass)") > 0.99
    same(posterior, dbrm.fit(X, y, **options, n_jobs=2))
