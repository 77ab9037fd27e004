"""Files written on purpose, with a checksum that holds: our error, or a posterior that works."""

import importlib.util
import warnings
from io import BytesIO
from itertools import islice
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pandas as pd
import pytest

import dbrm
from dbrm.data import archive
from dbrm.errors import DBRMError, InvalidFileError

_spec = importlib.util.spec_from_file_location("crafted", Path(__file__).parents[1] / "crafted.py")
_made = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_made)
crafted, npy, sign = _made.crafted, _made.npy, _made.sign


def small_posterior():
    """Latent effects of two kinds, levels, an indicator of missing values, scaling."""
    draw = np.random.default_rng(5)
    n = 40
    table = pd.DataFrame({"a": draw.normal(size=n), "b": draw.normal(size=n)})
    table["site"] = np.where(draw.random(n) < 0.5, "north", "south")
    table["time"] = np.arange(n) % 10
    table["group"] = draw.integers(0, 4, n)
    table.loc[3, "b"] = np.nan
    response = draw.poisson(np.exp(0.5 * table["a"] + np.sin(table["time"])))
    latent = [dbrm.latent.RW1("time"), dbrm.latent.RandomIntercept("group")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = dbrm.fit(
            table,
            response,
            family="poisson",
            latent=latent,
            penalty="multiplicity",
            missing="indicator",
            scale="standard",
            transforms=["tanh"],
            n_chains=2,
            n_populations=2,
            n_iter=20,
            random_state=2,
            max_averaged=4,
        )
    return table, posterior


def sampled_posterior():
    """Chains that sample: draws, frequencies, and a covariate that is always in."""
    draw = np.random.default_rng(5)
    table = pd.DataFrame(draw.normal(size=(30, 3)), columns=["a", "b", "c"])
    response = table["a"] * table["b"] + 0.3 * draw.normal(size=30)
    options = {"algorithm": "pool-gibbs", "always": ["c"], "transforms": ["sin"], "n_final": 20}
    options |= {"prior": "jeffreys", "penalty": "bic"}
    return table, dbrm.fit(
        table, response, n_chains=2, n_populations=2, n_iter=20, random_state=2, **options
    )


def survival_posterior():
    """Baseline hazards."""
    draw = np.random.default_rng(5)
    table = pd.DataFrame(draw.normal(size=(30, 2)), columns=["a", "b"])
    time, event = draw.exponential(np.exp(table["a"])), draw.integers(0, 2, 30)
    return table, dbrm.enumerate_models(table, time, event=event, family="cox")


@pytest.fixture(scope="module", params=[small_posterior, sampled_posterior, survival_posterior])
def good(request, tmp_path_factory):
    table, posterior = request.param()
    path = tmp_path_factory.mktemp("good") / "good.dbrm"
    posterior.save(path)
    with ZipFile(path) as archive:
        return table, {name: archive.read(name) for name in archive.namelist()}


def use(path, table):
    """Everything that reads a posterior; raises what it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        posterior = dbrm.load(path)
        posterior.summary()
        repr(posterior)
        _ = posterior.models, posterior.features, posterior.lost_mass, posterior.latent
        posterior.best_model.coefficients()
        posterior.coefficients()
        posterior.predict(table)
        posterior.predict_interval(table)
        for name in posterior.features["feature"][:3]:
            posterior.inclusion(name)
            posterior.aliases(name)
        for name in posterior.latent["effect"]:
            posterior.latent_effect(name)
        posterior.extrapolation(table)
        posterior.save(path.with_suffix(".again"))


def raw_errors(files, path, table):
    """Crafted files that end in an error of somebody else's."""
    found = []
    for name, members in files:
        sign(path, members)
        try:
            use(path, table)
        except DBRMError:
            pass
        except Exception as error:
            found.append(f"{name}: {type(error).__name__}: {error}"[:200])
    return found


def test_the_good_file_is_good(good, tmp_path):
    """Negative control: what the crafted files are made from works."""
    table, members = good
    sign(tmp_path / "good.dbrm", members)
    use(tmp_path / "good.dbrm", table)


def test_crafted_files_give_our_error_or_a_posterior(good, tmp_path):
    """One in a hundred of them; the others are in the slow test."""
    table, members = good
    files = list(islice(crafted(members), 0, None, 101))
    assert len(files) > 30
    assert raw_errors(files, tmp_path / "crafted.dbrm", table) == []


@pytest.mark.slow
def test_all_crafted_files_give_our_error_or_a_posterior(good, tmp_path):
    table, members = good
    assert raw_errors(crafted(members), tmp_path / "crafted.dbrm", table) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"extra.npy": npy(np.zeros(3))}, "extra is not known"),
        ({"../extra.npy": npy(np.zeros(3))}, "extra is not known"),
        ({"readme.txt": b"hello"}, "'readme.txt' is not a member of such a file"),
        ({"mass.npy": npy(np.zeros(3))}, "mass must have length 2; got 3"),
        ({"mass.npy": npy(np.zeros(2, dtype=np.int32))}, "mass must be of type <f8; got"),
        ({"mass.npy": npy(np.full(2, np.nan))}, "mass must hold numbers; got 'NaN'"),
        ({"content.json": b"[" * 100_000}, "is not JSON"),
    ],
)
def test_messages_name_what_is_wrong(good, tmp_path, changes, message):
    sign(tmp_path / "odd.dbrm", good[1] | changes)
    with pytest.raises(InvalidFileError, match=message):
        dbrm.load(tmp_path / "odd.dbrm")


@pytest.mark.parametrize("limits", [(2.0, 1.0), (np.inf, np.inf), (-np.inf, -np.inf)])
def test_ranges_of_means_that_are_none_are_refused(good, tmp_path, limits):
    ranges = np.load(BytesIO(good[1]["fitted_ranges.npy"]))
    ranges[-1] = limits
    sign(tmp_path / "odd.dbrm", good[1] | {"fitted_ranges.npy": npy(ranges)})
    with pytest.raises(InvalidFileError, match="fitted_ranges does not fit the other parts"):
        dbrm.load(tmp_path / "odd.dbrm")


def test_members_that_repeat_are_refused(good, tmp_path):
    members = good[1]
    sign(tmp_path / "twice.dbrm", [*members.items(), ("mass.npy", members["mass.npy"])])
    with pytest.raises(InvalidFileError, match=r"'mass\.npy' occurs twice"):
        dbrm.load(tmp_path / "twice.dbrm")


# ------------------------------------------------------------------------ files that swell up


def swollen(name, size):
    """A member of zeros, or of empty lists, of so many bytes."""
    if name == "content.json":
        return b'{"format": 1, "x": [' + b"[]," * (size // 3) + b"[]]}"
    return npy(np.zeros(size // 8))


@pytest.mark.parametrize("name", ["extra.npy", "probability.npy", "content.json"])
def test_a_file_that_swells_is_refused_before_it_is_unpacked(good, name, tmp_path, monkeypatch):
    sign(tmp_path / "bomb.dbrm", good[1] | {name: swollen(name, 100_000_000)}, ZIP_DEFLATED)
    assert (tmp_path / "bomb.dbrm").stat().st_size < 1_000_000
    monkeypatch.setattr(ZipFile, "read", None)
    monkeypatch.setattr(ZipFile, "open", None)
    with pytest.raises(InvalidFileError, match=r"bytes would unpack to 10\d,\d+,\d+ bytes"):
        dbrm.load(tmp_path / "bomb.dbrm")


def test_what_shrinks_too_well_is_not_shrunk(tmp_path, monkeypatch):
    """What is written can be read: zeros without end are stored as they are."""
    monkeypatch.setattr(archive, "most_unpacked", lambda size: max(100_000, 50 * size))
    archive.write_archive(tmp_path / "x", {}, {"zeros": np.zeros(10_000)})
    assert (tmp_path / "x").stat().st_size < 1_000
    archive.write_archive(tmp_path / "x", {}, {"zeros": np.zeros(100_000)})
    assert (tmp_path / "x").stat().st_size > 800_000
    assert archive.read_archive(tmp_path / "x")[1]["zeros"].size == 100_000
