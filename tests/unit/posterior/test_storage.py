"""Tests of `Posterior.save` and `dbrm.load`: nothing is lost, nothing is believed blindly."""

import hashlib
import json
import os
import pickle
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.data.archive import read_archive, write_archive
from dbrm.errors import InvalidFileError, InvalidSettingError

QUICK = {"n_chains": 2, "n_populations": 3, "random_state": 2, "n_iter": 100}
CASES = {
    "gaussian": {"transforms": ["sin", "step[q0.5]"]},
    "binomial": {"family": "binomial", "transforms": ["tanh"]},
    "poisson": {"family": "poisson", "always": ["a"], "transforms": ["tanh"]},
    "pool": {
        "algorithm": "pool-gibbs",
        "n_final": 100,
        "transforms": ["tanh"],
        "scale": "standard",
    },
}


def make_data(n=60):
    draw = np.random.default_rng(5)
    table = pd.DataFrame(draw.uniform(0.5, 3.0, size=(n, 3)), columns=["a", "b b", "sin"])
    table["site"] = np.where(draw.random(n) < 0.5, "north", "south")
    return table, 2.0 * np.sin(table["a"] * table["b b"]) + 0.3 * draw.normal(size=n)


def make_response(case, response):
    family = CASES[case].get("family", "gaussian")
    changed = {"binomial": response > 0, "poisson": np.floor(np.exp(0.5 * response))}
    return changed.get(family, response)


@pytest.fixture(scope="module", params=list(CASES))
def saved(request, tmp_path_factory):
    table, response = make_data()
    posterior = dbrm.fit(
        table, make_response(request.param, response), **QUICK, **CASES[request.param]
    )
    path = tmp_path_factory.mktemp("saved") / "run.dbrm"
    posterior.save(path)
    return table, posterior, path


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    draw = np.random.default_rng(5)
    path = tmp_path_factory.mktemp("small") / "run.dbrm"
    x = draw.normal(size=(20, 2))
    dbrm.enumerate_models(x, x[:, 0] + draw.normal(size=20)).save(path)
    return path


def test_a_loaded_posterior_says_the_same(saved):
    _, posterior, path = saved
    loaded = dbrm.load(path)
    pd.testing.assert_frame_equal(loaded.features, posterior.features)
    pd.testing.assert_frame_equal(loaded.models, posterior.models)
    assert loaded.summary() == posterior.summary()
    assert loaded.record == posterior.record
    assert loaded.recipe == posterior.recipe
    assert loaded.lost_mass == posterior.lost_mass
    assert loaded.averaged_share == posterior.averaged_share
    assert loaded.diagnostics.verdict() == posterior.diagnostics.verdict()
    assert loaded.diagnostics.rhat == pytest.approx(posterior.diagnostics.rhat, nan_ok=True)
    for one, two in (
        (loaded.best_model, posterior.best_model),
        (loaded.median_probability_model, posterior.median_probability_model),
    ):
        assert one.formula == two.formula
        assert one.fit.status == two.fit.status
        pd.testing.assert_frame_equal(one.coefficients(), two.coefficients())


def test_predictions_are_the_same_bits(saved):
    table, posterior, path = saved
    table, loaded = table[:15], dbrm.load(path)
    np.testing.assert_array_equal(loaded.predict(table), posterior.predict(table))
    np.testing.assert_array_equal(loaded.predict_interval(table), posterior.predict_interval(table))
    np.testing.assert_array_equal(
        loaded.sample_predictive(table, 5, 1), posterior.sample_predictive(table, 5, 1)
    )


@pytest.mark.parametrize(
    "saved",
    ["binomial", *(pytest.param(case, marks=pytest.mark.slow) for case in ("gaussian", "pool"))],
    indirect=True,
)
def test_predictions_are_the_same_bits_in_a_new_process(saved, tmp_path):
    table, posterior, path = saved
    table.to_pickle(tmp_path / "table.pkl")
    program = (
        "import sys, numpy, pandas, dbrm\n"
        "mean = dbrm.load(sys.argv[1]).predict(pandas.read_pickle(sys.argv[2]))\n"
        "sys.stdout.write(mean.tobytes().hex())"
    )
    command = [sys.executable, "-c", program, str(path), str(tmp_path / "table.pkl")]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert answer == posterior.predict(table).tobytes().hex()


def test_other_spellings_are_still_recognised(saved):
    _, posterior, path = saved
    loaded = dbrm.load(path)
    for feature, inclusion in posterior.features[["feature", "inclusion"]].values[:20]:
        assert loaded.inclusion(feature) == inclusion
        assert loaded.aliases(feature) == posterior.aliases(feature)
    for text in ("a*`b b`", "`b b`*a", "a*a", "tanh(a)"):
        assert loaded.inclusion(text) == posterior.inclusion(text)


def test_equal_posteriors_are_equal_files(saved, tmp_path):
    path = saved[2]
    dbrm.load(path).save(tmp_path / "again.dbrm")
    assert (tmp_path / "again.dbrm").read_bytes() == path.read_bytes()


def test_large_tables_are_sampled(saved, tmp_path, monkeypatch):
    from dbrm.posterior import storage

    posterior = saved[1]
    monkeypatch.setattr(storage, "_MOST_NUMBERS", 0)
    monkeypatch.setattr(storage, "_FEWEST_ROWS", 12)
    posterior.save(tmp_path / "thin.dbrm")
    thin = dbrm.load(tmp_path / "thin.dbrm")
    assert thin._source.table.n_rows == 12
    for feature, inclusion in posterior.features[["feature", "inclusion"]].values:
        assert thin.inclusion(feature) == inclusion


def test_transforms_of_your_own_are_passed_again(tmp_path, rng):
    wave = dbrm.Transform("wave", np.sin)
    x = rng.normal(size=(50, 2))
    posterior = dbrm.fit(
        x, 3 * np.sin(x[:, 0]) + 0.1 * rng.normal(size=50), transforms=[wave], **QUICK
    )
    path = tmp_path / "own.dbrm"
    posterior.save(path)
    with pytest.raises(InvalidSettingError, match="transforms of your own: 'wave'"):
        dbrm.load(path)
    loaded = dbrm.load(path, transforms=[wave])
    assert loaded.inclusion("wave(x1)") == posterior.inclusion("wave(x1)") > 0.9
    np.testing.assert_array_equal(loaded.predict(x), posterior.predict(x))


# ------------------------------------------------------------------- files not to believe


def test_200_damaged_files_give_our_own_error(small, tmp_path, rng):
    data = small.read_bytes()
    path = tmp_path / "damaged.dbrm"
    for trial in range(200):
        damaged = bytearray(data)
        if trial % 2:
            damaged = damaged[: rng.integers(0, len(data))]
        else:
            for place in rng.integers(0, len(data), size=rng.integers(1, 4)):
                damaged[place] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        with pytest.raises(InvalidFileError, match=r"damaged\.dbrm"):
            dbrm.load(path)


def resign(path, members):
    """A file with a checksum that holds, made by somebody who knows how."""
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = b" " * 76
    body = buffer.getvalue()[:-76]
    path.write_bytes(body + b"dbrm sha256 " + hashlib.sha256(body).hexdigest().encode())


def members_of(path):
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


class Payload:
    def __reduce__(self):
        return os.mkdir, (str(Path(os.environ["DBRM_TEST_PAYLOAD"])),)


def test_a_pickle_is_refused_without_running_it(small, tmp_path, monkeypatch):
    target = tmp_path / "it-ran"
    monkeypatch.setenv("DBRM_TEST_PAYLOAD", str(target))
    raw = BytesIO()
    np.lib.format.write_array(raw, np.array([Payload()], dtype=object), allow_pickle=True)
    payloads = {
        "probability.npy": raw.getvalue(),
        "mass.npy": pickle.dumps(Payload()),
        "content.json": pickle.dumps(Payload()),
    }
    for name, payload in payloads.items():
        resign(tmp_path / "evil.dbrm", members_of(small) | {name: payload})
        with pytest.raises(InvalidFileError, match="does not hold what"):
            dbrm.load(tmp_path / "evil.dbrm")
    assert not target.exists()


def test_a_newer_format_asks_for_an_upgrade(small, tmp_path):
    members = members_of(small)
    content = json.loads(members["content.json"]) | {"format": 99}
    resign(tmp_path / "new.dbrm", members | {"content.json": json.dumps(content)})
    with pytest.raises(InvalidFileError, match=r"format 99; .* newer dbrm: upgrade"):
        dbrm.load(tmp_path / "new.dbrm")


@pytest.mark.parametrize("version", ["-1", "0", "true", "NaN", "1.0", "null", '"1"', "1e400"])
def test_formats_that_never_were_are_refused(version, small, tmp_path):
    members = members_of(small)
    content = members["content.json"].replace(b'"format": 1', b'"format": ' + version.encode(), 1)
    resign(tmp_path / "odd.dbrm", members | {"content.json": content})
    with pytest.raises(InvalidFileError, match=r"its format must be a whole number|NaN is not"):
        dbrm.load(tmp_path / "odd.dbrm")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04" + b"\0" * 200])
def test_other_files_are_recognised(tmp_path, content):
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(InvalidFileError, match="was not written by dbrm"):
        dbrm.load(tmp_path / "other")


def test_unreadable_paths(tmp_path):
    with pytest.raises(InvalidFileError, match="cannot be read: No such file"):
        dbrm.load(tmp_path / "nothing.dbrm")
    with pytest.raises(InvalidFileError, match="cannot be read"):
        dbrm.load(tmp_path)


def test_a_failed_write_leaves_the_old_file(small, tmp_path, monkeypatch):
    path = tmp_path / "run.dbrm"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_archive(path, {}, {})
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")
def test_the_system_applies_the_mask(tmp_path, monkeypatch):
    """The mask belongs to the whole process: setting it, for a moment even, races."""
    usual = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", None)
        write_archive(tmp_path / "x", {}, {})
    finally:
        monkeypatch.undo()
        os.umask(usual)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


def test_arrays_keep_type_shape_and_bits(tmp_path, rng):
    arrays = {
        "a": rng.normal(size=(3, 2)),
        "b": np.array([], dtype=np.int32),
        "c": np.array([np.nan]),
    }
    write_archive(tmp_path / "x", {"text": "ü"}, arrays)
    content, again = read_archive(tmp_path / "x")
    assert content["text"] == "ü"
    for name, array in arrays.items():
        assert again[name].dtype == array.dtype
        np.testing.assert_array_equal(again[name], array)
