"""Our priors against blma, BAS and stored exact values (``tests/reference``)."""

import csv
import json
from math import log
from pathlib import Path

import numpy as np
import pytest

from dbrm._kernels.enumeration import inclusion_of_all
from dbrm.evidence.coefficient_priors import (
    AIC,
    BIC,
    CCH,
    BetaPrime,
    EBLocal,
    GaussianShape,
    GPrior,
    HyperG,
    HyperGN,
    Intrinsic,
    Robust,
    ZellnerSiow,
)
from dbrm.evidence.gaussian import GaussianEngine

REFERENCE = Path(__file__).parents[3] / "reference"


def exact_values():
    return json.loads((REFERENCE / "exact_values.json").read_text())


@pytest.fixture(scope="module")
def crime():
    path = REFERENCE / "uscrime.csv"
    names = path.read_text().splitlines()[0].split(",")
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    logs = np.log(np.where(table > 0, table, 1.0))
    logs[:, names.index("So")] = table[:, names.index("So")]
    return logs[:, :-1], table[:, -1], names[:-1]


def inclusion(response, columns, prior):
    population = GaussianEngine(response, prior).prepare(columns)
    values, _ = population.log_evidence_of_all(columns.shape[1])
    return inclusion_of_all(values, columns.shape[1])[1]


BLMA = {
    "BIC": BIC(),
    "beta_prime_ZE": BetaPrime(),
    "hyper_g_a3": HyperG(),
    "hyper_g_n_a3": HyperGN(),
    "zellner_siow": ZellnerSiow(),
}


@pytest.mark.parametrize("label", BLMA)
def test_inclusion_probabilities_of_blma(crime, label):
    columns, response, _ = crime
    expected = exact_values()["uscrime_blma"][label]
    np.testing.assert_allclose(inclusion(response, columns, BLMA[label]), expected, atol=1e-8)


def test_blma_comparison_can_fail(crime):
    """Negative control: a neighbouring prior is a thousand tolerances away."""
    columns, response, _ = crime
    expected = exact_values()["uscrime_blma"]["hyper_g_a3"]
    assert np.abs(inclusion(response, columns, HyperG(a=3.01)) - expected).max() > 1e-5


BAS = {
    "BIC": BIC(),
    "AIC": AIC(),
    "g-prior_g=n": GPrior(),
    "g-prior_g=max(n,p^2)": GPrior(g="max(n,p^2)", candidates=15),
    "hyper-g_a=3": HyperG(),
    "JZS": ZellnerSiow(),
    "EB-local": EBLocal(),
}


@pytest.mark.parametrize("label", BAS)
def test_inclusion_probabilities_of_bas(crime, label):
    columns, response, names = crime
    with (REFERENCE / "uscrime_logy_bas_inclusion.csv").open() as file:
        stored = {row["variable"]: float(row[label]) for row in csv.DictReader(file)}
    ours = inclusion(np.log(response), columns, BAS[label])
    np.testing.assert_allclose(ours, [stored[name] for name in names], atol=1e-9)


BAYES_FACTORS = {
    "g=n": GPrior(),
    "hyper-g a=3": HyperG(),
    "hyper-g/n a=3": HyperGN(),
    "ZS": ZellnerSiow(),
    "beta-prime": BetaPrime(),
    "robust": Robust(),
    "intrinsic": Intrinsic(),
    "EB-local": EBLocal(),
}


@pytest.mark.parametrize("label", BAYES_FACTORS)
def test_stored_bayes_factors(label):
    table = BAYES_FACTORS[label].score_table(np.arange(6), GaussianShape(47.0, 1.0, 1e-12))
    expected = exact_values()["gaussian_mixtures_n47_p5_R2_0.62_logBF"][label]
    assert table.value(0.38, 5) - table.value(1.0, 0) == pytest.approx(expected, abs=1e-11)


@pytest.fixture(scope="module")
def logit():
    """Maximised likelihood, total weight and Wald statistic of the logistic model."""
    table = np.genfromtxt(REFERENCE / "glm120.csv", delimiter=",", names=True)
    slopes = np.column_stack([table[f"x{j}"] for j in range(1, 5)])
    design, y = np.column_stack([np.ones(len(slopes)), slopes]), table["binary"]
    beta = np.zeros(5)
    for _ in range(30):
        mean = 1 / (1 + np.exp(-design @ beta))
        weight = mean * (1 - mean)
        beta += np.linalg.solve(design.T @ (weight[:, None] * design), design.T @ (y - mean))
    centred = slopes - weight @ slopes / weight.sum()
    wald = float(weight @ (centred @ beta[1:]) ** 2)
    log_likelihood = float(np.sum(y * np.log(mean) + (1 - y) * np.log1p(-mean)))
    return log_likelihood, log(weight.sum()), wald


GLM = {
    "hyper-g": HyperG(),
    "beta-prime": BetaPrime(),
    "robust": Robust(),
    "hyper-g/n": HyperGN(),
    "CCH(1,2,1)": CCH(a=1, b=2, s=1),
    "g=n": GPrior(),
    "intrinsic(exact, BAS is off by 0.013)": Intrinsic(),
}


def test_wald_statistic(logit):
    assert logit[2] == pytest.approx(exact_values()["glm_mixtures_n120_p4"]["W_logit"], rel=1e-12)


@pytest.mark.parametrize("label", GLM)
def test_stored_glm_evidence(logit, label):
    value = GLM[label].glm_table(np.arange(5), 120.0).value(*logit, 4)
    expected = exact_values()["glm_mixtures_n120_p4"]["logit"][label]
    assert value == pytest.approx(expected, abs=1e-7)


def test_stored_glm_bic(logit):
    """BAS leaves the intercept out of the count, the same in every model."""
    value = BIC().glm_table(np.arange(5), 120.0).value(*logit, 4)
    expected = exact_values()["glm_mixtures_n120_p4"]["logit"]["BIC"]
    assert value + 0.5 * log(120) == pytest.approx(expected, abs=1e-7)
