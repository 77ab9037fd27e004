"""Numbers that others computed: R-INLA's Poisson table, BAS, the paper's asteroid table.

By the compiled path and by the program of a graphics processor, on JAX's CPU platform
or, with ``DBRM_TEST_PLATFORM=gpu``, on one.
"""

import json
import os

import numpy as np
import pandas as pd
import pytest

from dbrm._kernels.bits import unpack_index
from dbrm.datasets import load_neo_asteroids
from dbrm.evidence.coefficient_priors import (
    CCH,
    BetaPrime,
    GPrior,
    HyperG,
    HyperGN,
    Jeffreys,
    Normal,
    Robust,
)
from dbrm.evidence.device import DevicePopulation
from dbrm.evidence.glm import GlmEngine
from dbrm.evidence.solvers import PlainIRLS
from dbrm.status import Status

PLATFORM = os.environ.get("DBRM_TEST_PLATFORM", "cpu")
EPIGENETIC = [
    *("base_dist", "CHG", "CG", "DT1", "DT2", "DT3", "DT4", "DT5", "DT6_20"),
    *("Mα", "Mγ", "Mδ", "eg3000", "eg10000"),
]


@pytest.fixture
def always_on_device(monkeypatch):
    """No batch is too small."""
    monkeypatch.setattr("dbrm.evidence.device.population._LEAST_WORK", 0.0)


@pytest.fixture(scope="module")
def epigenetic(authors_files):
    path = authors_files / "epigenetic modifications" / "epigen.txt"
    table = pd.read_csv(path, sep=None, engine="python")
    table["eg3000"] = (table["express_noisy"] > 3000).astype(float)
    table["eg10000"] = (table["express_noisy"] > 10000).astype(float)
    columns = table[EPIGENETIC].to_numpy(float)
    return columns, table["methylated_bases"].to_numpy(float)


@pytest.mark.parametrize(
    ("step", "platform"),
    [
        (31, None),
        (307, PLATFORM),
        pytest.param(1, None, marks=pytest.mark.slow),
        pytest.param(1, PLATFORM, marks=pytest.mark.slow),
    ],
)
@pytest.mark.usefixtures("always_on_device")
def test_rinla_poisson_table(reference, epigenetic, step, platform):
    """Every `step`-th of the 16,384 Poisson models, within 0.005 of R-INLA's value.

    Less its predictor noise: of precision e^11, it changes a log evidence by
    e^-11 sum{(y - mu)^2 - mu} / 2.
    """
    columns, y = epigenetic
    theirs = pd.read_csv(reference / "rinla_poisson_16384.csv.gz")["log_marginal"].to_numpy()
    theirs = theirs[::step]
    population = GlmEngine(y, Normal(1000.0), "poisson", platform=platform).prepare(columns)
    assert population.design.n_live < 200
    index = np.arange(0, 1 << 14, step)
    masks = unpack_index(index, 14)[:, ::-1]
    values, statuses = population.log_evidence(masks)
    assert set(statuses) <= {Status.OK, Status.SEPARATED}
    correction = np.array([_noise(population, mask, y @ y) for mask in masks])
    gap = values + correction - theirs
    assert np.max(np.abs(gap)) < 0.005
    ours, inla = _normalise(values + correction), _normalise(theirs)
    assert 0.5 * np.abs(ours - inla).sum() < 1e-3


def _noise(population, mask, squares):
    """What R-INLA's predictor noise adds, from grouped rows and the sum of squared counts."""
    coefficients = population.solve(mask, firth=False).coefficients
    design = population.design
    live = slice(design.n_live)
    mean = np.exp(coefficients @ design.flat[np.concatenate([[True], mask]), live])
    excess = squares + design.total[live] @ (mean**2 - 2 * mean * design.mean[live] - mean)
    return 0.5 * np.exp(-11) * excess


def _normalise(log_values):
    mass = np.exp(log_values - log_values.max())
    return mass / mass.sum()


@pytest.fixture(scope="module")
def asteroids(authors_files):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DBRM_DATA", str(authors_files))
        split = load_neo_asteroids()
    return [t.to_numpy(float) for t in (split.train, split.test)]


def _asteroid_average(asteroids, engine, cost):
    """Posterior over all 512 models and averaged probabilities of the test objects."""
    train, test = asteroids
    columns, masks = train[:, :9], unpack_index(np.arange(512), 9)
    values, statuses = engine.prepare(columns).log_evidence(masks)
    weights = _normalise(values - cost * masks.sum(axis=1))
    probability = np.zeros(len(test))
    for mask, weight in zip(masks, weights, strict=True):
        if weight < 1e-8:
            continue
        b = engine.fit(columns[:, mask]).coefficients
        with np.errstate(over="ignore"):
            probability += weight / (1 + np.exp(-(b[0] + test[:, :9][:, mask] @ b[1:])))
    return weights @ masks, probability, statuses


def _rates(probability, label):
    positive = label == 1
    said = probability > 0.5
    missed, alarms = np.sum(positive & ~said), np.sum(~positive & said)
    return {
        "ACC": np.mean(said == positive),
        "FNR": missed / (missed + positive.sum()),
        "FPR": alarms / (alarms + (~positive).sum()),
        "true FNR": missed / positive.sum(),
        "true FPR": alarms / (~positive).sum(),
    }


@pytest.mark.slow
def test_asteroid_row_of_the_published_scripts(reference, asteroids):
    """Table 1, LBRM: likelihood after 25 iterations less 0.5 per covariate, plug-in estimates."""
    stored = json.loads((reference / "exact_values.json").read_text())
    stored = stored["asteroid_LBRM_exact"]
    engine = GlmEngine(asteroids[0][:, 9], Jeffreys("none"), "binomial", solver=PlainIRLS())
    inclusion, probability, statuses = _asteroid_average(asteroids, engine, 0.5)
    np.testing.assert_allclose(inclusion, stored["PIP"], atol=5.1e-4)
    rates = _rates(probability, asteroids[1][:, 9])
    assert {k: round(float(rates[k]), 4) for k in ("ACC", "FNR", "FPR")} == {
        "ACC": 0.9999,
        "FNR": 0.0001,
        "FPR": 0.0002,
    }
    # The scripts divide by wrong + right + wrong; here that makes no visible difference.
    assert rates["true FNR"] == pytest.approx(rates["FNR"] / (1 - rates["FNR"]))
    assert rates["true FPR"] == pytest.approx(rates["FPR"] / (1 - rates["FPR"]))
    assert np.sum(statuses == Status.SEPARATED) >= stored["n_completely_separable_models"]


@pytest.mark.slow
def test_asteroid_row_of_the_paper_text(reference, asteroids):
    """Jeffreys' prior, exp(-2) per covariate, supremum of the likelihood, Firth's coefficients."""
    stored = json.loads((reference / "exact_values.json").read_text())
    stored = stored["asteroid_LBRM_exact"]["paper_text_criterion"]
    engine = GlmEngine(asteroids[0][:, 9], Jeffreys(), "binomial")
    inclusion, probability, statuses = _asteroid_average(asteroids, engine, 2.0)
    np.testing.assert_allclose(inclusion, stored["PIP"], atol=1.1e-3)
    assert round(float(_rates(probability, asteroids[1][:, 9])["ACC"]), 4) == 0.9999
    assert set(statuses) <= {Status.OK, Status.SEPARATED}


@pytest.mark.parametrize("platform", [None, PLATFORM])
@pytest.mark.usefixtures("always_on_device")
def test_asteroid_complete_separation_has_supremum_zero(asteroids, platform):
    """436 of the 512 models separate completely; their log likelihood rises to zero."""
    train = asteroids[0]
    engine = GlmEngine(train[:, 9], Jeffreys("none"), "binomial", platform=platform)
    population = engine.prepare(train[:, :9])
    values, statuses = population.log_evidence(unpack_index(np.arange(512), 9))
    zero = np.abs(values) < 1e-8
    assert zero.sum() == 436
    assert np.all(statuses[zero] == Status.SEPARATED)


BAS = {
    "g=n": GPrior(),
    "hyper-g": HyperG(),
    "hyper-g/n": HyperGN(),
    "beta-prime": BetaPrime(),
    "robust": Robust(),
    "CCH(1,2,1)": CCH(a=1, b=2, s=1),
}


@pytest.mark.parametrize("platform", [None, PLATFORM])
@pytest.mark.parametrize("label", BAS)
@pytest.mark.usefixtures("always_on_device")
def test_logistic_evidence_of_bas(reference, label, platform):
    """Four covariates and 120 rows: the value BAS gives the model with all of them."""
    table = pd.read_csv(reference / "glm120.csv")
    stored = json.loads((reference / "exact_values.json").read_text())
    engine = GlmEngine(table["binary"].to_numpy(float), BAS[label], platform=platform)
    columns = table[["x1", "x2", "x3", "x4"]].to_numpy()
    population = engine.prepare(columns)
    assert isinstance(population, DevicePopulation) == (platform is not None)
    value = population.log_evidence_of_all(4)[0][-1]
    assert value == pytest.approx(stored["glm_mixtures_n120_p4"]["logit"][label], abs=1e-7)
