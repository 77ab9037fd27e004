"""Fixtures that every test may use, and how the suite runs.

The default suite is the same in every run: Hypothesis derives its examples from the tests
themselves. ``pytest -m slow`` runs the long tests, and every property again with new examples.
"""

import hashlib
import os
import signal
import subprocess
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]

settings.register_profile("fixed", derandomize=True, deadline=None, database=None, max_examples=50)
settings.register_profile("random", derandomize=False, deadline=None, print_blob=True)


def pytest_configure(config):
    # Half the time to compile; read when JAX is imported.
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    settings.load_profile("random" if _is_slow_suite(config) else "fixed")
    # A shell starts what it runs in the background with SIGINT ignored, and a fit heeds that:
    # the tests of interrupts would wait for ever.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Properties belong to the slow suite too, where their examples are random."""
    for item in items:
        if _is_slow_suite(config) and getattr(item.obj, "is_hypothesis_test", False):
            item.add_marker("slow")
        if os.name == "nt" and item.get_closest_marker("posix"):
            item.add_marker(pytest.mark.skip(reason="needs POSIX"))


def _is_slow_suite(config):
    return config.option.markexpr == "slow"


def pytest_xdist_setupnodes(config):
    """Before the workers start: one thread for each, and kernels that are compiled once."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    kernels = Path(find_spec("dbrm").origin).parent / "_kernels"
    whole_suite = config.args_source is config.ArgsSource.TESTPATHS
    if whole_suite and not list(kernels.rglob("*.nbi")):
        programs = [[sys.executable, "-c", IMPORTS + fits] for fits in (GAUSSIAN_FITS, GLM_FITS)]
        for process in [subprocess.Popen(program) for program in programs]:
            process.wait()


# Two programs of about the same length that compile nearly everything, and little of it twice.
IMPORTS = """
import numpy as np
import dbrm

draw = np.random.default_rng(1)
X, t, y = draw.normal(size=(60, 3)), np.arange(60.0), draw.integers(2, size=60).astype(float)
quick = {"transforms": ["sin"], "n_chains": 1, "n_populations": 2, "n_iter": 20, "sweep": 0}
"""
GAUSSIAN_FITS = """
dbrm.fit(X, X[:, 0] + draw.normal(size=60), **quick)
dbrm.fit(X, X[:, 0] + draw.normal(size=60), algorithm="mjmcmc", n_chains=1, n_iter=20)
dbrm.fit({"x": X[:, 0], "t": t}, y, family="poisson", latent=dbrm.latent.RW1("t"), **quick)
"""
GLM_FITS = """
dbrm.fit(X, y, family="binomial", **quick).predict(X)
dbrm.fit(X, y, family="binomial", prior="zellner-siow", **quick)
dbrm.fit(X, y, family="negative_binomial", **quick).predict(X)
"""


def pytest_xdist_auto_num_workers(config):
    """``--trace`` needs the terminal, as ``--pdb`` does, for which pytest-xdist knows it."""
    return 0 if config.option.trace else None


@pytest.fixture
def rng(request):
    """A generator seeded from the test's own name: the same in every run and order."""
    digest = hashlib.sha256(request.node.nodeid.encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


@pytest.fixture(scope="session")
def reference():
    """Folder of numbers that others computed, and of small tables."""
    return ROOT / "tests" / "reference"


@pytest.fixture(scope="session")
def authors_files(reference, tmp_path_factory):
    """The data of the paper as its authors distribute them, for `DBRM_DATA`."""
    folder = tmp_path_factory.mktemp("authors")
    with tarfile.open(reference / "authors_files.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def raw(authors_files, monkeypatch):
    """The authors' files, where the loaders look for them."""
    monkeypatch.setenv("DBRM_DATA", str(authors_files))
    return authors_files
