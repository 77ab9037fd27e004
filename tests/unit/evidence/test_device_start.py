"""JAX starts, and compiles what most fits need, beside other work."""

import os
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import dbrm
import dbrm.evidence.device.platform as platform
from dbrm._kernels.glm_rows import BINOMIAL, LOGIT
from dbrm.errors import InvalidDataError
from dbrm.evidence.device import DeviceRows, start_device
from dbrm.evidence.device.program import sums

PLATFORM = os.environ.get("DBRM_TEST_PLATFORM", "cpu")


def wait_for(name):
    """Wait for threads of this name; how many there were."""
    threads = [thread for thread in threading.enumerate() if thread.name == name]
    for thread in threads:
        thread.join()
    return len(threads)


@pytest.fixture
def asked(monkeypatch):
    """Platforms that JAX is asked for, by threads of these names."""
    found = []

    def find_devices(name):
        found.append((name, threading.current_thread().name))
        return []

    program = SimpleNamespace(find_devices=find_devices)
    monkeypatch.setattr(platform, "load_program", lambda: program)
    return found


def test_jax_starts_in_a_thread(asked):
    start_device()
    wait_for("dbrm-device-start")
    assert asked == [("gpu", "dbrm-device-start")]


def test_without_jax_nothing_starts(asked, monkeypatch):
    monkeypatch.setattr(platform, "find_spec", lambda name: None)
    start_device()
    assert wait_for("dbrm-device-start") == 0
    assert asked == []


@pytest.mark.parametrize(("device", "n_starts"), [("cpu", 0), ("auto", 0), ("gpu", 1)])
def test_fits_that_ask_for_a_device_start_it_before_they_read(asked, device, n_starts):
    """Even if the data turn out to be unusable."""
    with pytest.raises(InvalidDataError):
        dbrm.fit([[1.0], [2.0]], [0.0, np.nan], family="binomial", device=device)
    wait_for("dbrm-device-start")
    assert asked == [("gpu", "dbrm-device-start")] * n_starts


# Of the size of a population, of the end of a fit, and of neither.
@pytest.mark.parametrize(
    ("n_columns", "n_models", "n_compiled"),
    [(15, 16, 0), (9, 1, 0), (40, 16, 0), (33, 99, 0), (25, 1, 1)],
)
def test_usual_populations_find_their_programs_compiled(rng, n_columns, n_models, n_compiled):
    n_rows = 333
    rows = DeviceRows(PLATFORM, int(BINOMIAL), int(LOGIT), n_rows, n_rows)
    assert wait_for("dbrm-device-compile") == 1
    before = sums._add_block._cache_size()
    X, y = rng.normal(size=(n_columns, n_rows)), rng.integers(0, 2, n_rows).astype(float)
    ones, zeros = np.ones(n_rows), np.zeros(n_rows)

    def read(positions):
        bad = np.zeros(positions.size, dtype=bool)
        return [None], lambda block: (np.vstack([ones, X[positions]]), [y, ones, zeros], bad)

    population = rows.hold(range(n_columns), read)
    found = population.sums([(np.array([0, 1]), np.array([0.1, 0.2]))] * n_models)
    assert sums._add_block._cache_size() - before == n_compiled
    eta = 0.1 + 0.2 * X[0]
    expected = np.sum(y * eta - np.logaddexp(0.0, eta))
    np.testing.assert_allclose([total[-1, -1] for total in found], expected, rtol=1e-12)
