"""Checkpoints written on purpose: our error, or a run that comes to its end."""

import contextlib
import importlib.util
import shutil
import warnings
from itertools import islice
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import dbrm
from dbrm.chains import checkpoint as module
from dbrm.errors import ChainError, DBRMError, InvalidFileError

_spec = importlib.util.spec_from_file_location("crafted", Path(__file__).parents[1] / "crafted.py")
_made = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_made)

# Each with the number of states that are written before the power fails.
RUNS = {
    "gmjmcmc": (2, {"n_populations": 3, "adaptive_operators": True}),
    "rgmjmcmc": (4, {"n_populations": 2, "n_final": 4, "algorithm": "rgmjmcmc"}),
    "pool-gibbs": (4, {"n_populations": 2, "n_final": 4, "algorithm": "pool-gibbs"}),
    "mjmcmc": (1, {"algorithm": "mjmcmc"}),
}


class PowerCutError(Exception):
    """The power fails."""


@pytest.fixture(scope="module", params=RUNS)
def interrupted(request, tmp_path_factory):
    """A folder with one state of one chain, and its head without a copy."""
    states, options = RUNS[request.param]
    folder = tmp_path_factory.mktemp("run") / "run"
    draw = np.random.default_rng(2)
    X = draw.normal(size=(40, 3))
    y = np.sin(X[:, 0] * X[:, 1]) + 0.3 * draw.normal(size=40)
    save, written = module.Checkpoint.save_chain, []

    def fail(self, *arguments):
        if len(written) == states:
            raise PowerCutError
        save(self, *arguments)
        written.append(arguments[-1])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dbrm.chains.driver._SHORTEST", 0.0)
        patch.setattr("dbrm.chains.driver._WRITING_SHARE", 0.0)
        patch.setattr(module.Checkpoint, "save_chain", fail)
        with contextlib.suppress(PowerCutError):
            dbrm.fit(X, y, n_chains=1, n_iter=20, random_state=1, checkpoint=folder, **options)
    (folder / "run.copy.dbrm").unlink()
    *older, newest = sorted(folder.glob("chain-*"), key=lambda file: file.stat().st_mtime_ns)
    for file in older:
        file.unlink()
    return folder, newest.name


def members_of(path):
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def raw_errors(interrupted, name, folder, step):
    found = []
    for what, members in islice(_made.crafted(members_of(interrupted / name)), 0, None, step):
        # A setting may ask for any amount of work.
        if "'settings'" in what and any(str(huge) in what for huge in (2**31, 2**70)):
            continue
        shutil.copytree(interrupted, folder, dirs_exist_ok=True)
        _made.sign(folder / name, members)
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                dbrm.resume(folder, time_budget=1.0)
        except ChainError as error:
            found.append(f"{what}: {error}"[-300:])
        except DBRMError:
            pass
        except Exception as error:
            found.append(f"{what}: {type(error).__name__}: {error}"[:300])
    return found


@pytest.mark.parametrize("step", [499, pytest.param(3, marks=pytest.mark.slow)])
def test_crafted_states_give_our_error_or_a_posterior(step, interrupted, tmp_path):
    folder, state = interrupted
    assert raw_errors(folder, state, tmp_path / "crafted", step) == []


@pytest.mark.parametrize("step", [251, pytest.param(1, marks=pytest.mark.slow)])
def test_crafted_heads_give_our_error_or_a_posterior(step, interrupted, tmp_path):
    assert raw_errors(interrupted[0], "run.dbrm", tmp_path / "crafted", step) == []


def test_what_compiled_code_would_trust_is_checked(tmp_path, interrupted):
    """Positions beyond the end of an array are refused before any kernel sees them."""
    folder, state = interrupted
    members = members_of(folder / state)
    (name,) = {"walker.position_entry.npy", "evolution.own.numbers.npy"} & members.keys()
    array = np.lib.format.read_array(_made.BytesIO(members[name]))
    array[-1] = 10**6
    shutil.copytree(folder, tmp_path / "crafted")
    _made.sign(tmp_path / "crafted" / state, members | {name: _made.npy(array)})
    (tmp_path / "crafted" / "run.copy.dbrm").write_bytes((folder / "run.dbrm").read_bytes())
    with pytest.warns(dbrm.errors.DBRMWarning, match="must hold numbers from .* from its beginn"):
        dbrm.resume(tmp_path / "crafted")


def test_a_head_with_a_field_too_many_is_refused(tmp_path, interrupted):
    shutil.copytree(interrupted[0], tmp_path / "crafted")
    content, arrays = module.read_archive(tmp_path / "crafted" / "run.dbrm")
    module.write_archive(tmp_path / "crafted" / "run.dbrm", content | {"more": 1}, arrays)
    with pytest.raises(InvalidFileError, match="more is not known"):
        dbrm.resume(tmp_path / "crafted")
