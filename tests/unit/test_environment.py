"""The package where it may not write, without assertions, and compiled by two at once."""

import ast
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import dbrm
from dbrm._kernels import bits

PACKAGE = Path(find_spec("dbrm").origin).parent
FIT = """
import json, sys
import numpy as np
import dbrm

draw = np.random.default_rng(1)
X = draw.normal(size=(60, 3))
y = np.sin(X[:, 0]) + 0.1 * draw.normal(size=60)
posterior = dbrm.fit(X, y, transforms=["sin"], n_chains=2, n_populations=3, random_state=1)
print(json.dumps(posterior.models["log_evidence"].tolist()))
"""
# One small kernel, and where its compiled code was kept.
KERNEL = """
import os
import numpy as np
from dbrm._kernels import bits

print(bits.mix(np.ones(1, dtype=np.uint64)), os.environ.get("NUMBA_CACHE_DIR"))
"""


def python(program, *options, **environment):
    """Run a program; variables that are None are taken away."""
    variables = {**os.environ, **environment}
    variables = {name: value for name, value in variables.items() if value is not None}
    command = [sys.executable, *options, "-c", program]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables
    )


def printed(program):
    out, told = program.communicate(timeout=300)
    assert program.returncode == 0, told
    return out, told


def mixed():
    """What `KERNEL` prints, uncompiled."""
    with np.errstate(over="ignore"):
        return bits.mix.py_func(np.ones(1, dtype=np.uint64))


def models_here():
    """What `FIT` prints, computed in this process."""
    draw = np.random.default_rng(1)
    X = draw.normal(size=(60, 3))
    y = np.sin(X[:, 0]) + 0.1 * draw.normal(size=60)
    posterior = dbrm.fit(X, y, transforms=["sin"], n_chains=2, n_populations=3, random_state=1)
    return posterior.models["log_evidence"].tolist()


@pytest.fixture
def unwritable(tmp_path):
    """A copy of the package and a home that nobody can write to, the administrator included."""
    copy = tmp_path / "packages" / "dbrm"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    # A file where a folder should be.
    (copy / "_kernels" / "__pycache__").touch()
    nowhere = str(tmp_path / "file" / "home")
    (tmp_path / "file").touch()
    (tmp_path / "temporary").mkdir()
    return {
        "PYTHONPATH": str(copy.parent),
        "HOME": nowhere,
        "XDG_CACHE_HOME": nowhere,
        "NUMBA_CACHE_DIR": None,
        "TMPDIR": str(tmp_path / "temporary"),
    }


@pytest.mark.posix
def test_without_a_place_for_compiled_code(unwritable, tmp_path):
    """It is kept in a temporary folder, which is gone in the end."""
    out, told = printed(python(KERNEL, **unwritable))
    assert out.startswith(f"{mixed()} {unwritable['TMPDIR']}")
    assert "Set NUMBA_CACHE_DIR to a folder that can be written" in told
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.posix
@pytest.mark.slow
def test_a_fit_without_a_place_for_compiled_code(unwritable):
    """With workers, who compile into the same folder."""
    with_workers = FIT.replace("random_state", "n_jobs=2, random_state")
    out, _ = printed(python(with_workers, **unwritable))
    assert json.loads(out) == models_here()


@pytest.mark.slow
def test_without_assertions():
    """`python -O` gives the same numbers."""
    out, _ = printed(python(FIT, "-O"))
    assert json.loads(out) == models_here()


def is_for_types_only(test):
    """Whether an assertion says no more than what type a name has."""
    if isinstance(test, ast.Call):
        return isinstance(test.func, ast.Name) and test.func.id == "isinstance"
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.IsNot)
        and not any(isinstance(node, ast.Call) for node in ast.walk(test))
    )


def test_assertions_are_for_the_type_checker_only():
    """Under `python -O` they are gone, and nothing may depend on them."""
    places = [
        f"{path.name}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Assert) and not is_for_types_only(node.test)
    ]
    assert places == []


def compile_at_once(program, folder):
    """Two processes begin with an empty cache at the same time; a third finds theirs."""
    variables = {"NUMBA_CACHE_DIR": str(folder)}
    both = [python(program, **variables) for _ in range(2)]
    return [printed(one)[0] for one in both] + [printed(python(program, **variables))[0]]


def test_two_processes_compile_a_kernel_at_once(tmp_path):
    outs = compile_at_once(KERNEL, tmp_path)
    assert outs == [f"{mixed()} {tmp_path}\n"] * 3
    assert len(list(tmp_path.rglob("bits.mix-*.nbc"))) == 1


@pytest.mark.slow
def test_two_processes_compile_a_fit_at_once(tmp_path):
    outs = [json.loads(out) for out in compile_at_once(FIT, tmp_path)]
    assert outs == [models_here()] * 3
