"""Tests of runs whose process is killed: at any moment, and resumed, they end the same."""

import multiprocessing
import time
from functools import cache

import numpy as np
import pytest

import dbrm

pytestmark = pytest.mark.posix
SETTINGS = {"n_chains": 3, "n_populations": 30, "transforms": ["sin", "tanh"], "random_state": 4}
KINDS = {
    "gmjmcmc": SETTINGS,
    "pool-gibbs": SETTINGS
    | {"algorithm": "pool-gibbs", "n_chains": 2, "n_populations": 10, "n_final": 100},
    "latent": SETTINGS
    | {"latent": dbrm.latent.RW1("time"), "n_chains": 2, "n_populations": 6, "n_iter": 40},
}


def data(kind="gmjmcmc"):
    draw = np.random.default_rng(3)
    columns = draw.normal(size=(60, 6))
    response = np.sin(columns[:, 0] * columns[:, 1]) + 0.4 * draw.normal(size=60)
    if kind != "latent":
        return columns, response
    table = {f"x{j}": column for j, column in enumerate(columns.T)}
    return table | {"time": np.arange(60.0)}, response + np.cumsum(0.3 * draw.normal(size=60))


@pytest.fixture(scope="module")
def whole():
    """Runs of each kind that nobody kills, made once."""
    return cache(lambda kind: dbrm.fit(*data(kind), **KINDS[kind]))


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """Start a run in a process of its own; and how long one takes once its head is written."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["dbrm.fitting"])

    def start(folder, kind="gmjmcmc", n_jobs=1):
        options = KINDS[kind] | {"checkpoint": folder, "n_jobs": n_jobs}
        process = context.Process(target=dbrm.fit, args=data(kind), kwargs=options)
        process.start()
        while not (folder / "run.copy.dbrm").exists():
            assert process.is_alive()
            time.sleep(0.005)
        return process

    @cache
    def seconds(kind="gmjmcmc"):
        process = start(tmp_path_factory.mktemp("timed") / "run", kind)
        began = time.perf_counter()
        process.join()
        return time.perf_counter() - began

    return start, seconds


def kill_and_resume(driver, folder, share, whole, same, *, kind="gmjmcmc", n_jobs=1):
    """Kill the run after a share of its time, and compare what becomes of it."""
    start, seconds = driver
    most = share * seconds(kind)
    process = start(folder, kind, n_jobs)
    time.sleep(most)
    process.kill()
    process.join()
    options = {"latent": KINDS[kind]["latent"]} if kind == "latent" else {}
    same(dbrm.resume(folder, **options), whole(kind))


def test_killed_and_resumed(driver, whole, same, rng, tmp_path):
    kill_and_resume(driver, tmp_path / "run", 0.9 * rng.random(), whole, same)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pool-gibbs", pytest.param("latent", marks=pytest.mark.slow)])
def test_other_kinds_too(kind, driver, whole, same, rng, tmp_path):
    kill_and_resume(driver, tmp_path / "run", 0.9 * rng.random(), whole, same, kind=kind)


@pytest.mark.slow
def test_with_two_workers(driver, whole, same, tmp_path):
    """Killed once a chain is on the disk: workers take long to come up."""
    start, _ = driver
    process = start(tmp_path / "run", n_jobs=2)
    while not list((tmp_path / "run").glob("chain-*")):
        assert process.is_alive()
        time.sleep(0.005)
    process.kill()
    process.join()
    same(dbrm.resume(tmp_path / "run"), whole("gmjmcmc"))


@pytest.mark.slow
def test_killed_twice(driver, whole, same, tmp_path):
    """A resumed run can be killed and resumed as well."""
    start, seconds = driver
    for _ in range(2):
        process = start(tmp_path / "run")
        time.sleep(0.3 * seconds())
        process.kill()
        process.join()
    same(dbrm.resume(tmp_path / "run"), whole("gmjmcmc"))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "n_jobs"), [*((kind, 1) for kind in KINDS), ("gmjmcmc", 2)])
@pytest.mark.parametrize("moment", range(20))
def test_killed_at_twenty_moments(moment, kind, n_jobs, driver, whole, same, rng, tmp_path):
    share = 1.1 * rng.random()
    kill_and_resume(driver, tmp_path / "run", share, whole, same, kind=kind, n_jobs=n_jobs)
