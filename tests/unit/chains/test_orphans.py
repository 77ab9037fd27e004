"""Tests of workers whose driver is killed: they do not hold its folder, and they end."""

import os
import signal
import subprocess
import sys
import time

import pytest

from dbrm.chains import Checkpoint

pytestmark = pytest.mark.posix
# Two workers, each in a population that takes for ever.
DRIVER = """
import os, sys, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
import numpy as np
import dbrm

marks, run, workers = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
driver = os.getpid()

def evidence(X, y):
    if os.getpid() != driver:
        (marks / str(os.getpid())).touch()
        time.sleep(600)
    return 0.0

draw = np.random.default_rng(1)
where = {"n_jobs": 2}
if workers == "fork":
    where = {"executor": ProcessPoolExecutor(2, mp_context=get_context("fork"))}
options = {"n_chains": 2, "sweep": 0, "evidence": evidence, "checkpoint": run, **where}
dbrm.fit(draw.normal(size=(30, 2)), draw.normal(size=30), **options)
"""


@pytest.fixture
def orphans(tmp_path):
    """Kill a driver while its two workers are at work; the pipe is open until all have ended."""
    drivers = []

    def orphans(workers):
        (tmp_path / "marks").mkdir()
        command = [sys.executable, "-c", DRIVER, tmp_path / "marks", tmp_path / "run", workers]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        driver = subprocess.Popen(command, **pipes, start_new_session=True)
        drivers.append(driver)
        while len(list((tmp_path / "marks").iterdir())) < 2:
            assert driver.poll() is None, driver.stdout.read()
            time.sleep(0.02)
        driver.kill()
        driver.wait()
        return driver

    yield orphans
    for driver in drivers:
        driver.stdout.close()
        try:
            os.killpg(driver.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


@pytest.mark.parametrize("workers", ["fork", pytest.param("joblib", marks=pytest.mark.slow)])
def test_orphans_end_and_hold_no_folder(workers, orphans, tmp_path):
    driver = orphans(workers)
    # The lock is free at once, before the orphans have noticed.
    with Checkpoint(tmp_path / "run", "any", make=False):
        driver.communicate(timeout=30)
