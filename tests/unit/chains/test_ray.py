"""Tests on a real Ray of this machine; it takes long to start, so they are slow ones."""

import os
import threading
import time
from pathlib import Path

import joblib
import psutil
import pytest

import dbrm

ray = pytest.importorskip("ray", reason="Ray is not installed, or not for this Python")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def cluster():
    # Ray's own workers do not see the path that pytest set up for this process.
    path = str(Path(dbrm.__file__).parents[1])
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": path}},
    )
    yield
    ray.shutdown()


def test_on_ray(cluster, data, settings, whole, same):
    same(dbrm.fit(*data, **settings, executor="ray"), whole)


def test_through_joblib(cluster, data, settings, whole, same):
    from ray.util.joblib import register_ray

    register_ray()
    with joblib.parallel_config(backend="ray"):
        same(dbrm.fit(*data, **settings, n_jobs=2), whole)


def test_a_worker_that_is_killed_costs_nothing(cluster, data, settings, same):
    options = settings | {"n_populations": 200, "n_chains": 4}
    healthy = dbrm.fit(*data, **options)
    victims = []

    def kill():
        ends = time.monotonic() + 60
        while time.monotonic() < ends and not victims:
            for process in psutil.process_iter(["cmdline"]):
                if "ray::run_unit" in " ".join(process.info["cmdline"] or []):
                    time.sleep(0.3)
                    victims.append(process.pid)
                    os.kill(process.pid, 9)
                    return
            time.sleep(0.02)

    thread = threading.Thread(target=kill)
    thread.start()
    posterior = dbrm.fit(*data, **options, executor="ray")
    thread.join()
    assert victims
    assert posterior.record.failures == {}
    same(posterior, healthy)
