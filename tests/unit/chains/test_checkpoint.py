"""Tests of checkpoints: whatever happens, a resumed run is the run that was not interrupted."""

import logging
import shutil
import subprocess
import sys
import warnings
from itertools import count

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.chains import checkpoint as module
from dbrm.data.archive import read_archive, write_archive
from dbrm.errors import (
    CheckpointError,
    DBRMWarning,
    InvalidFileError,
    InvalidSettingError,
)
from dbrm.evolution.algorithms.gmjmcmc import Gmjmcmc


@pytest.fixture(autouse=True)
def every_population(monkeypatch):
    """Write after every population, however quick they are."""
    monkeypatch.setattr("dbrm.chains.driver._SHORTEST", 0.0)
    monkeypatch.setattr("dbrm.chains.driver._WRITING_SHARE", 0.0)


class PowerCutError(Exception):
    """The power fails."""


@pytest.fixture(scope="module")
def died(data, settings, tmp_path_factory):
    """A folder with a run that died in its 20th population, of 36 in all."""
    folder = tmp_path_factory.mktemp("died") / "run"
    save, calls = module.Checkpoint.save_chain, count(1)

    def fail(self, *arguments):
        if next(calls) > 20:
            raise PowerCutError
        save(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dbrm.chains.driver._SHORTEST", 0.0)
        patch.setattr("dbrm.chains.driver._WRITING_SHARE", 0.0)
        patch.setattr(module.Checkpoint, "save_chain", fail)
        with pytest.raises(PowerCutError):
            dbrm.fit(*data, **settings, checkpoint=folder)
    return folder


@pytest.fixture
def interrupted(died, tmp_path):
    """A copy of that folder, to do with as one likes."""
    return shutil.copytree(died, tmp_path / "run")


@pytest.fixture
def resumed_from(caplog):
    """Where the chains of the last resumed run began, by chain."""
    caplog.set_level(logging.INFO, "dbrm")

    def populations():
        records = [record for record in caplog.records if record.event == "resumed"]
        return {record.chain: record.population for record in records}

    return populations


def newest(folder, chain):
    """The newer and the older file of a chain."""
    files = list(folder.glob(f"chain-{chain:05d}.*.dbrm"))
    return sorted(files, key=lambda file: read_archive(file)[0]["turn"], reverse=True)


def test_a_run_with_checkpoints_is_the_run_without(data, settings, whole, same, tmp_path):
    same(dbrm.fit(*data, **settings, checkpoint=tmp_path), whole)


def test_a_resumed_run_is_the_run_without_interruption(interrupted, whole, same, resumed_from):
    same(dbrm.resume(interrupted), whole)
    assert resumed_from() == {0: 12, 1: 8}


def test_with_other_workers_too(interrupted, whole, same):
    same(dbrm.resume(interrupted, n_jobs=2), whole)


def test_the_same_call_goes_on(data, settings, interrupted, whole, same, resumed_from):
    same(dbrm.fit(*data, **settings, checkpoint=interrupted), whole)
    assert resumed_from() == {0: 12, 1: 8}


def test_a_finished_run_is_only_merged_again(data, settings, interrupted, whole, same, monkeypatch):
    dbrm.resume(interrupted)
    monkeypatch.setattr(Gmjmcmc, "advance", None)
    same(dbrm.resume(interrupted), whole)


@pytest.mark.parametrize("algorithm", ["rgmjmcmc", "pool-gibbs", "mjmcmc"])
def test_every_algorithm_resumes(algorithm, data, settings, tmp_path, monkeypatch, same):
    options = settings | {"algorithm": algorithm, "n_final": 40, "n_populations": 4, "n_chains": 2}
    save, calls = module.Checkpoint.save_chain, count(1)

    def fail(self, *arguments):
        if next(calls) > (1 if algorithm == "mjmcmc" else 20):
            raise PowerCutError
        save(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(module.Checkpoint, "save_chain", fail)
        with pytest.raises(PowerCutError):
            dbrm.fit(*data, **options, checkpoint=tmp_path)
    same(dbrm.resume(tmp_path), dbrm.fit(*data, **options))


def truncate(content):
    return content[: len(content) // 2]


def flip(content):
    middle = len(content) // 3
    return content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]


def empty(content):
    return b""


DAMAGE = {"truncated": truncate, "flipped": flip, "empty": empty}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_state_costs_one_population(damage, interrupted, whole, same, resumed_from):
    file = newest(interrupted, 1)[0]
    file.write_bytes(DAMAGE[damage](file.read_bytes()))
    with pytest.warns(DBRMWarning, match=r"chain-00001\..\.dbrm .* Chain 1 goes on from popul"):
        posterior = dbrm.resume(interrupted)
    assert resumed_from()[1] == 7
    same(posterior, whole)


def test_two_damaged_states_cost_the_chain_but_not_the_result(interrupted, whole, same):
    for file in newest(interrupted, 1):
        file.write_bytes(flip(file.read_bytes()))
    with pytest.warns(DBRMWarning, match="Chain 1 goes on from its beginning"):
        same(dbrm.resume(interrupted), whole)


def test_the_head_has_a_copy(interrupted, whole, same):
    head = interrupted / "run.dbrm"
    head.write_bytes(flip(head.read_bytes()))
    with pytest.warns(DBRMWarning, match=r"run\.dbrm is damaged.*copy is sound"):
        same(dbrm.resume(interrupted), whole)
    for name in ("run.dbrm", "run.copy.dbrm"):
        (interrupted / name).write_bytes(b"")
    with pytest.raises(InvalidFileError, match=r"run\.dbrm was not written by dbrm, or its end"):
        dbrm.resume(interrupted)


@pytest.mark.parametrize("field", ["version", "checkpoint"])
def test_another_version_is_refused(field, interrupted):
    for name in ("run.dbrm", "run.copy.dbrm"):
        content, arrays = read_archive(interrupted / name)
        write_archive(interrupted / name, content | {field: "9.9"}, arrays)
    with pytest.raises(CheckpointError, match=r"written by dbrm .*9\.9.*this is dbrm"):
        dbrm.resume(interrupted)


def test_other_data_are_refused(data, settings, interrupted):
    X, y = data
    other = y.copy()
    other[0] = np.nextafter(other[0], 9.0)
    with pytest.raises(CheckpointError, match="belongs to a run on other data"):
        dbrm.fit(X, other, **settings, checkpoint=interrupted)


@pytest.mark.parametrize(
    "changed",
    [{"n_populations": 13}, {"transforms": ["sin"]}, {"random_state": 12}, {"penalty": "aic"}],
    ids=lambda changed: next(iter(changed)),
)
def test_other_settings_are_refused(data, settings, interrupted, changed):
    with pytest.raises(CheckpointError, match=f"other settings: {next(iter(changed))}"):
        dbrm.fit(*data, **settings | changed, checkpoint=interrupted)


def test_states_of_another_run_are_refused(data, settings, interrupted, tmp_path):
    dbrm.fit(*data, **settings, checkpoint=tmp_path / "other")
    shutil.copy(tmp_path / "other" / "chain-00001.a.dbrm", interrupted)
    with pytest.raises(CheckpointError, match="chain 1 that belongs to another run"):
        dbrm.resume(interrupted)


def test_two_drivers_cannot_share_a_folder(interrupted):
    code = f"import dbrm; dbrm.resume({str(interrupted)!r})"
    with module.Checkpoint(interrupted, "any"):
        with pytest.raises(CheckpointError, match=r"in use by process \d+ on "):
            dbrm.resume(interrupted)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "Two runs cannot share a folder" in done.stderr


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"no run to resume .* has no run\.dbrm"):
        dbrm.resume(tmp_path)
    with pytest.raises(CheckpointError, match="cannot be used: No such file"):
        dbrm.resume(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_a_full_disk_is_told_and_costs_one_population(interrupted, whole, same, resumed_from):
    """A limit on the size of files: the last write fails halfway, as on a full disk."""
    resource = pytest.importorskip("resource", reason="no limits on files here")
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    largest = max(file.stat().st_size for file in interrupted.glob("chain-00001.*"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, usual[1]))
    try:
        with pytest.raises(CheckpointError, match=r"cannot be written: .*make room, then dbrm"):
            dbrm.resume(interrupted)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert not list(interrupted.glob(".*"))
    before = {chain: newest(interrupted, chain)[0] for chain in (0, 1)}
    reached = {chain: read_archive(file)[0]["n_done"] for chain, file in before.items()}
    same(dbrm.resume(interrupted), whole)
    assert {chain: n for chain, n in resumed_from().items() if chain < 2} == reached


def test_a_full_file_system_is_told(data, settings, whole, same, tmp_path):
    """A file system of 200 kB: too small for the run, large enough for its head."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=60k", "tmpfs", str(tmp_path)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system here ({mounted.stderr.decode().strip()})")
    try:
        with pytest.raises(CheckpointError, match="No space left on device"):
            dbrm.fit(*data, **settings, checkpoint=tmp_path / "run")
        subprocess.run(["mount", "-o", "remount,size=10m", str(tmp_path)], check=True)
        same(dbrm.resume(tmp_path / "run"), whole)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_what_a_kill_left_half_written_is_removed(interrupted, whole, same):
    """Only files that dbrm was writing: others that are hidden stay."""
    program = (
        "import os, signal, sys\n"
        "from dbrm.data.archive import write_archive\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_archive(sys.argv[1], {}, {})"
    )
    for name in ("run.dbrm", "chain-00001.a.dbrm", "mine.dbrm"):
        command = [sys.executable, "-c", program, str(interrupted / name)]
        assert subprocess.run(command).returncode != 0
    (interrupted / ".notes").write_text("mine")
    assert len(list(interrupted.glob(".*"))) == 4
    same(dbrm.resume(interrupted), whole)
    left = sorted(file.name.split(".")[1] for file in interrupted.glob(".*"))
    assert left == ["mine", "notes"]


def test_own_objects_are_asked_for(data, settings, tmp_path, same):
    wave = dbrm.Transform("wave", np.sin)
    options = settings | {"transforms": ["tanh", wave]}
    posterior = dbrm.fit(*data, **options, checkpoint=tmp_path)
    with pytest.raises(InvalidSettingError, match=r"objects of yours.*transforms"):
        dbrm.resume(tmp_path)
    same(dbrm.resume(tmp_path, transforms=["tanh", wave]), posterior)
    with pytest.raises(InvalidSettingError, match="cannot change 'n_populations'"):
        dbrm.resume(tmp_path, transforms=["tanh", wave], n_populations=3)


def test_a_formula_with_code_goes_on_by_the_same_call(data, settings, tmp_path, same):
    X, y = data
    table = pd.DataFrame({"y": y, **{f"x{j}": column for j, column in enumerate(X.T)}})
    call = {"data": table, "checkpoint": tmp_path, **settings}
    posterior = dbrm.fit("y ~ x0 + x1 + log(abs(x2))", **call)
    with pytest.raises(CheckpointError, match=r"expressions, which are code.*Call dbrm\.fit"):
        dbrm.resume(tmp_path)
    same(dbrm.fit("y ~ x0 + x1 + log(abs(x2))", **call), posterior)


def test_predictions_and_names_survive(data, settings, tmp_path):
    table = {f"x{j}": column for j, column in enumerate(data[0].T)} | {"site": ["a", "b"] * 40}
    posterior = dbrm.fit(table, data[1], **settings, checkpoint=tmp_path)
    again = dbrm.resume(tmp_path)
    np.testing.assert_array_equal(posterior.predict(table), again.predict(table))
    assert again.record.settings["random_state"] == "11"


def test_nothing_is_written_without_a_checkpoint(data, settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dbrm.fit(*data, **settings | {"n_chains": 1, "n_populations": 2})
    assert not list(tmp_path.iterdir())
