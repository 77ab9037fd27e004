"""Fits of tall data: the same posterior wherever the rows are, and as with all rows at once."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import dbrm
import dbrm.data.out_of_core.batches as blocks
import dbrm.run.out_of_core as tall

N = 1_500
SMALL = {"n_chains": 2, "n_populations": 4, "random_state": 1}
# Where it is a question of files only.
SMALLER = {"n_chains": 1, "n_populations": 2, "random_state": 1, "transforms": ["tanh"]}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Few rows count as many."""
    monkeypatch.setattr(tall, "TALL_ROWS", 1_000)
    monkeypatch.setattr(tall, "SAMPLE_ROWS", 600)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 400)


def simulate(family, seed=1):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(N, 4))
    eta = 0.7 * values[:, 0] * values[:, 1] - 0.6 * values[:, 2]
    if family == "gaussian":
        response = eta + rng.normal(size=N)
    elif family == "binomial":
        response = (rng.random(N) < 1 / (1 + np.exp(-eta))).astype(float)
    else:
        response = rng.poisson(np.exp(0.5 * eta)).astype(float)
    return pd.DataFrame(values, columns=[f"x{j + 1}" for j in range(4)]).assign(y=response)


def masses(posterior):
    return dict(
        zip(posterior.models["features"].map(frozenset), posterior.models.probability, strict=True)
    )


def distance(first, second):
    """Largest difference of the probability of a model."""
    a, b = masses(first), masses(second)
    return max(abs(a.get(model, 0.0) - b.get(model, 0.0)) for model in a | b)


def write(frame, folder):
    path = folder / "rows.parquet"
    pa.parquet.write_table(pa.Table.from_pandas(frame), path, row_group_size=270)
    return path


def in_blocks(posterior):
    return posterior._problem.out_of_core is not None


@pytest.mark.parametrize("family", ["gaussian", pytest.param("binomial", marks=pytest.mark.slow)])
def test_the_posterior_does_not_depend_on_where_the_rows_are(family, tmp_path):
    frame = simulate(family)
    X, y = frame.drop(columns="y"), frame["y"]
    path = write(frame, tmp_path)
    dd, da = pytest.importorskip("dask.dataframe"), pytest.importorskip("dask.array")
    expected = dbrm.fit(X, y, family=family, **SMALL)
    assert in_blocks(expected)
    places = [path, pa.dataset.dataset(path), frame] if family == "gaussian" else [path]
    for place in places:
        found = dbrm.fit(place, "y", family=family, n_jobs=2, **SMALL)
        assert in_blocks(found)
        assert masses(found) == masses(expected)
        np.testing.assert_array_equal(found.predict(X[:40]), expected.predict(X[:40]))
    # Partitions cut blocks at other rows: sums differ in their last digits.
    frames = dd.from_pandas(frame, npartitions=3)
    arrays = da.from_array(X.to_numpy(), chunks=(500, 2)), da.from_array(y.to_numpy(), chunks=700)
    for place, response in ((frames, "y"), arrays):
        found = dbrm.fit(place, response, family=family, **SMALL)
        assert in_blocks(found)
        assert distance(found, expected) < 1e-8
        new = X[:40] if found.recipe.named else X[:40].to_numpy()
        np.testing.assert_allclose(found.predict(new), expected.predict(X[:40]), atol=1e-8)


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson"])
def test_blocks_give_the_posterior_of_all_rows_at_once(family, monkeypatch):
    frame = simulate(family)
    X, y = frame.drop(columns="y"), frame["y"]
    found = dbrm.enumerate_models(X, y, family=family)
    assert in_blocks(found)
    monkeypatch.setattr(tall, "TALL_ROWS", 10**9)
    expected = dbrm.enumerate_models(X, y, family=family)
    assert not in_blocks(expected)
    # Models far behind the best are expanded, not fitted, unless the response is Gaussian.
    assert distance(found, expected) < (1e-8 if family == "gaussian" else 1e-4)
    np.testing.assert_allclose(found.predict(X[:40]), expected.predict(X[:40]), atol=1e-4)
    best = [p.models.log_evidence[0] for p in (found, expected)]
    assert best[0] == pytest.approx(best[1], abs=1e-6)


def test_other_rows_give_another_posterior(tmp_path):
    """Negative control: the distances above can be large."""
    frame = simulate("gaussian")
    changed = frame.copy()
    changed.loc[N - 1, "y"] += 30.0
    first, second = (dbrm.fit(f, "y", **SMALL) for f in (frame, changed))
    assert distance(first, second) > 1e-6


def test_a_subsample_is_for_the_search_only(monkeypatch):
    frame = simulate("binomial")
    X, y = frame.drop(columns="y"), frame["y"]
    found = dbrm.fit(X, y, family="binomial", subsample=1_000, **SMALL)
    assert found._problem.subsampled
    # Every model reported was evaluated on all rows.
    assert found._merged.n_refined == len(found.models)
    model = found.models.loc[0]
    columns = np.column_stack(
        [dbrm.parse_feature(text, list(X)).evaluate(X) for text in model["features"]]
    )
    exact = dbrm.log_evidence(columns, y, family="binomial", constant="unit_information")
    assert model["log_evidence"] == pytest.approx(exact, abs=1e-6)
    with pytest.raises(dbrm.errors.InvalidSettingError, match="subsample= cannot be used"):
        dbrm.fit(X, y, family="binomial", subsample=1_000, algorithm="pool-gibbs")


def test_text_and_missing_values_in_a_file(tmp_path, monkeypatch):
    frame = simulate("gaussian").assign(site=np.tile(["u", "v", "w"], N // 3), flag=True)
    frame.loc[::7, "x4"] = np.nan
    frame["flag"] = frame["x1"] > 0
    frame["id"] = np.arange(N).astype(str)
    path = write(frame, tmp_path)
    # Linear models, so that both searches visit the same; in blocks there is no remainder.
    options = {"missing": "indicator", "scale": "standard", "max_depth": 0, **SMALL}
    options |= {"remainder": False}
    found = dbrm.fit(path, "y", ignore=["id"], **options)
    names = ("x1", "x2", "x3", "x4", "x4_missing", "site[u]", "site[v]", "site[w]", "flag")
    assert found.recipe.names == names
    assert found._problem.out_of_core.rows.binary == (False,) * 4 + (True,) * 5
    monkeypatch.setattr(tall, "TALL_ROWS", 10**9)
    whole = dbrm.fit(frame, "y", ignore=["id"], **options)
    assert whole.recipe.names == names
    np.testing.assert_allclose(found.recipe.sds, whole.recipe.sds, rtol=1e-12)
    np.testing.assert_allclose(found.predict(frame[:30]), whole.predict(frame[:30]), atol=1e-3)


def test_predictions_of_files_are_those_of_tables(tmp_path):
    frame = simulate("poisson").assign(area=2.0)
    path = write(frame, tmp_path)
    found = dbrm.fit(path, "y", family="poisson", exposure="area", **SMALL)
    expected = found.predict(frame, exposure=frame["area"])
    np.testing.assert_array_equal(found.predict(path, exposure="area"), expected)
    dd = pytest.importorskip("dask.dataframe")
    lazy = dd.from_pandas(frame, npartitions=4)
    np.testing.assert_allclose(found.predict(lazy, exposure="area"), expected, rtol=1e-12)
    found.save(tmp_path / "run.dbrm")
    again = dbrm.load(tmp_path / "run.dbrm")
    np.testing.assert_array_equal(again.predict(path, exposure="area"), expected)
    assert again.record.n_rows == N
    assert found.checks is not None
    assert len(found.rows().response) == 600


def test_rows_that_repeat_are_merged_all_the_same():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, size=(N, 3)).astype(float)
    y = (rng.random(N) < 0.2 + 0.5 * X[:, 0]).astype(float)
    found = dbrm.fit(X, y, family="binomial", **SMALL)
    assert not in_blocks(found)
    assert found._problem.table.n_rows <= 16


def test_a_file_that_is_not_tall_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(tall, "TALL_ROWS", 10**9)
    frame = simulate("gaussian")
    found = dbrm.fit(write(frame, tmp_path), "y", **SMALLER)
    assert not in_blocks(found)
    assert masses(found) == masses(dbrm.fit(frame, "y", **SMALLER))
    dd = pytest.importorskip("dask.dataframe")
    lazy = dbrm.fit(dd.from_pandas(frame, npartitions=2), "y", **SMALLER)
    assert masses(found) == masses(lazy)


def test_estimators_take_files(tmp_path):
    path = write(simulate("binomial"), tmp_path)
    model = dbrm.DBRMClassifier(**SMALLER).fit(path, "y")
    assert list(model.classes_) == [0, 1]
    assert model.predict_proba(path).shape == (N, 2)
    assert set(model.predict(path)) <= {0, 1}
    found = dbrm.DBRMFeatures(**SMALLER).fit(path, "y")
    np.testing.assert_array_equal(found.transform(path), found.transform(pd.read_parquet(path)))
    with pytest.raises(ValueError, match="where a table in memory is needed"):
        found.posterior_.extrapolation(path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"y": "z"}, r"y='z' is not a column"),
        ({"y": None}, "y must name the column"),
        ({"ignore": ["z"]}, "no column 'z' to ignore"),
        ({"latent": dbrm.latent.AR1("x1")}, "latent= needs all rows in memory"),
        ({"family": "gamma"}, "family='gamma' needs all rows in memory"),
        ({"family": "poisson", "link": "identity"}, "link='identity' needs all rows"),
        ({"family": "poisson", "prior": "g-prior"}, "prior='g-prior' looks at each model"),
        ({"algorithm": "rgmjmcmc"}, "algorithm='rgmjmcmc' needs all rows in memory"),
        ({"family": "binomial"}, "needs y to be 0 or 1"),
        ({"executor": "ray"}, "executor= is for tables in memory"),
    ],
)
def test_what_cannot_be_done_in_blocks_is_named(settings, message, tmp_path):
    path = write(simulate("gaussian"), tmp_path)
    settings = {"y": "y", **settings}
    with pytest.raises(ValueError, match=message):
        dbrm.fit(path, settings.pop("y"), **settings, **SMALL)


def test_missing_values_and_formulas_are_refused(tmp_path):
    frame = simulate("gaussian")
    frame.loc[1_400, "x2"] = np.nan
    path = write(frame, tmp_path)
    with pytest.raises(ValueError, match="column 'x2' has 1"):
        dbrm.fit(path, "y", missing="error", **SMALL)
    with pytest.raises(ValueError, match="A formula needs its data in memory"):
        dbrm.fit("y ~ x1", data=path)


def test_a_checkpoint_goes_on_with_the_same_data(tmp_path):
    frame = simulate("gaussian")
    folder = tmp_path / "run"
    first = dbrm.fit(frame, "y", checkpoint=folder, **SMALL)
    again = dbrm.fit(frame, "y", checkpoint=folder, **SMALL)
    assert masses(first) == masses(again)
    with pytest.raises(dbrm.errors.CheckpointError, match="tall data"):
        dbrm.resume(folder)


def test_the_command_line_reads_files_in_blocks(tmp_path, monkeypatch, capsys):
    from dbrm.cli import main

    path = write(simulate("gaussian").assign(note="n"), tmp_path)
    out = tmp_path / "run.dbrm"
    words = ["fit", str(path), "--response", "y", "--ignore", "note", "--n-chains", "1"]
    words += ["--n-populations", "2", "--seed", "1", "--out", str(out), "--json"]
    for arguments in (words, ["predict", str(out), str(path), "--out", str(tmp_path / "p.csv")]):
        monkeypatch.setattr("sys.argv", ["dbrm", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
    capsys.readouterr()
    table = pd.read_csv(tmp_path / "p.csv")
    assert list(table) == ["mean", "lower", "upper"]
    expected = dbrm.load(out).predict(pd.read_parquet(path))
    np.testing.assert_allclose(table["mean"], expected, rtol=1e-12)
