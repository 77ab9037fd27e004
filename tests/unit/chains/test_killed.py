"""Tests of runs whose process is killed: at any moment, and resumed, they end the same."""

import multiprocessing
import time

import numpy as np
import pytest

import dbrm

SETTINGS = {"n_chains": 4, "n_populations": 60, "transforms": ["sin", "tanh"], "random_state": 4}


def data():
    draw = np.random.default_rng(3)
    columns = draw.normal(size=(60, 6))
    return columns, np.sin(columns[:, 0] * columns[:, 1]) + 0.4 * draw.normal(size=60)


@pytest.fixture(scope="module")
def whole():
    return dbrm.fit(*data(), **SETTINGS)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """Start a run in a process of its own; and how long one takes once its head is written."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["dbrm.fitting"])

    def start(folder, n_jobs=1):
        options = SETTINGS | {"checkpoint": folder, "n_jobs": n_jobs}
        process = context.Process(target=dbrm.fit, args=data(), kwargs=options)
        process.start()
        while not (folder / "run.copy.dbrm").exists():
            assert process.is_alive()
            time.sleep(0.005)
        return process

    process = start(tmp_path_factory.mktemp("timed") / "run")
    began = time.perf_counter()
    process.join()
    return start, time.perf_counter() - began


def kill_and_resume(driver, folder, share, n_jobs, whole, same):
    """Kill the run after a share of its time, and compare what becomes of it."""
    start, seconds = driver
    process = start(folder, n_jobs)
    time.sleep(share * seconds)
    process.kill()
    process.join()
    same(dbrm.resume(folder), whole)


@pytest.mark.parametrize("moment", range(3))
def test_killed_and_resumed(moment, driver, whole, same, rng, tmp_path):
    kill_and_resume(driver, tmp_path / "run", 0.9 * rng.random(), 1, whole, same)


def test_killed_twice(driver, whole, same, tmp_path):
    """A resumed run can be killed and resumed as well."""
    start, seconds = driver
    for _ in range(2):
        process = start(tmp_path / "run")
        time.sleep(0.3 * seconds)
        process.kill()
        process.join()
    same(dbrm.resume(tmp_path / "run"), whole)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("moment", range(20))
def test_killed_at_twenty_moments(moment, n_jobs, driver, whole, same, rng, tmp_path):
    kill_and_resume(driver, tmp_path / "run", 1.1 * rng.random(), n_jobs, whole, same)
