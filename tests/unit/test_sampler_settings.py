"""Settings of the samplers, through the front door."""

import numpy as np
import pytest

import dbrm
from dbrm.errors import InvalidSettingError, UnknownNameError
from dbrm.evidence import GaussianEngine, Jeffreys
from dbrm.evolution import Filtration
from dbrm.evolution.population import next_population
from dbrm.search import KernelMix, Mjmcmc

QUICK = {"n_chains": 1, "n_populations": 4, "transforms": ["tanh"], "sweep": 0, "random_state": 3}


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(9)
    columns = draw.normal(size=(60, 5))
    return columns, columns[:, 0] + np.tanh(columns[:, 1]) + 0.5 * draw.normal(size=60)


def problem_of(data, **options):
    return dbrm.fit(*data, **QUICK | options)._problem


def test_filtration_from_a_mapping_or_an_object(data):
    rule = Filtration(threshold=0.4, deletion=0.5, floor=0.1)
    assert problem_of(data, filtration=rule).filtration == rule
    mapping = {"threshold": 0.4, "deletion": 0.5, "floor": 0.1}
    assert problem_of(data, filtration=mapping).filtration == rule
    assert problem_of(data).filtration == Filtration()


def test_mjmcmc_from_a_mapping_or_an_object(data):
    nested = {"kernels": {"large_jump": 0.2}, "optimisers": {"greedy": 0}, "rate": 0.25}
    chosen = problem_of(data, mjmcmc=nested, n_iter=70).budget.mjmcmc
    assert chosen.kernels == KernelMix(large_jump=0.2)
    assert chosen.optimisers.greedy == 0
    assert (chosen.rate, chosen.n_steps) == (0.25, 70)
    assert problem_of(data, mjmcmc=Mjmcmc(rate=0.3)).budget.mjmcmc == Mjmcmc(rate=0.3)


def test_steps_of_the_plan_give_way_to_n_iter(data):
    plan = Mjmcmc(n_steps=44)
    assert problem_of(data, mjmcmc=plan).budget.mjmcmc.n_steps == 44
    assert problem_of(data, mjmcmc=plan, n_iter=55).budget.mjmcmc.n_steps == 55


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filtration": {"treshold": 0.1}}, "filtration must map threshold, deletion, floor"),
        ({"filtration": {"floor": 0.0}}, "0 < floor <= deletion < 1"),
        ({"mjmcmc": {"steps": 3}}, "mjmcmc must map n_steps, kernels"),
        ({"mjmcmc": {"kernels": {"jump": 1}}}, "kernels must map change, swap"),
        ({"mjmcmc": {"rate": 1.0}}, "rate strictly between 0 and 1"),
        ({"mjmcmc": 3}, "mjmcmc must map"),
        ({"max_evaluations": 0}, "max_evaluations must be an integer of at least 1"),
        ({"keep": ["x1", "x2"], "population_size": 2}, "leaves no place for others"),
    ],
)
def test_settings_that_make_no_sense_are_named(data, options, message):
    with pytest.raises(InvalidSettingError, match=message):
        dbrm.fit(*data, **QUICK | options)


def test_a_kept_covariate_that_does_not_exist_is_named(data):
    with pytest.raises(UnknownNameError, match="keep names 'x9', which is not a column"):
        dbrm.fit(*data, keep=["x9"], **QUICK)


def test_no_population_loses_what_is_to_be_kept(data, monkeypatch):
    """Also a covariate without support, among more covariates than places."""
    populations = []

    def spy(rng, problem, registry, *others, **options):
        population = next_population(rng, problem, registry, *others, **options)
        populations.append({str(f) for f in population.features(registry)})
        return population

    monkeypatch.setattr("dbrm.evolution.algorithms.gmjmcmc.next_population", spy)
    options = QUICK | {"n_populations": 30, "population_size": 4, "patience": None}
    dbrm.fit(*data, keep=["x4", "x3"], **options)
    assert len(populations) == 29
    assert all({"x3", "x4"} <= population for population in populations)
    populations.clear()
    dbrm.fit(*data, **options)
    assert not all({"x3", "x4"} <= population for population in populations)


@pytest.mark.slow
def test_adaptive_operators_are_reproducible_on_one_and_two_workers(data):
    options = QUICK | {"adaptive_operators": True, "n_chains": 2, "n_populations": 8}
    one, two = (dbrm.fit(*data, n_jobs=n_jobs, **options) for n_jobs in (1, 2))
    assert one.models["probability"].tolist() == two.models["probability"].tolist()
    fixed = dbrm.fit(*data, **options | {"adaptive_operators": False})
    assert fixed.record.n_evaluated != one.record.n_evaluated or (
        fixed.models["probability"].tolist() != one.models["probability"].tolist()
    )


def test_evolution_stops_after_enough_evaluations(data):
    options = QUICK | {"n_populations": 200, "population_size": 6}
    few = dbrm.fit(*data, max_evaluations=300, **options)
    # The five covariates, 32 models; then populations of six, 64 each: the fifth is the last.
    assert few.record.n_evaluated == 32 + 5 * 64


def test_evolution_stops_after_enough_different_models(data):
    options = QUICK | {"n_populations": 500, "population_size": 6}
    few = dbrm.fit(*data, max_unique=150, **options)
    assert 150 <= few.record.n_evaluated < 10_000


@pytest.mark.parametrize("algorithm", ["rgmjmcmc", "pool-gibbs"])
def test_reversible_samplers_heed_numbers_of_models(data, algorithm):
    """Half of the evaluations are for evolution, the others for draws."""
    options = QUICK | {"algorithm": algorithm, "n_populations": 200, "population_size": 6}
    posterior = dbrm.fit(*data, **options, n_final=5000, max_evaluations=3000)
    assert 3000 <= posterior.record.n_evaluated < 6000


@pytest.mark.parametrize("limit", ["max_evaluations", "max_unique", "max_models"])
def test_an_enumeration_is_complete_or_refused(data, limit):
    n_models = dbrm.fit(*data, algorithm="enumerate").record.n_evaluated
    dbrm.fit(*data, algorithm="enumerate", **{limit: n_models})
    with pytest.raises(InvalidSettingError, match=f"visits all {n_models} models.*allow 31"):
        dbrm.fit(*data, algorithm="enumerate", **{limit: 31})


@pytest.mark.parametrize("algorithm", ["rgmjmcmc", "pool-gibbs"])
def test_reversible_samplers_heed_the_time(data, algorithm):
    options = QUICK | {"algorithm": algorithm, "n_final": 10_000_000, "time_budget": 1.0}
    assert dbrm.fit(*data, **options).record.seconds < 20


def test_an_evidence_in_python_gives_the_chain_of_the_compiled_engine(data):
    """Same seed, same steps: the loop is one source, compiled or not."""

    def evidence(columns, response):
        return GaussianEngine(response, Jeffreys()).log_evidence(columns)[0]

    options = {"algorithm": "mjmcmc", "n_chains": 2, "n_final": 300, "random_state": 5}
    compiled = dbrm.fit(*data, prior=Jeffreys(), **options)
    python = dbrm.fit(*data, evidence=evidence, **options)
    assert compiled.models["features"].tolist() == python.models["features"].tolist()
    assert compiled.features["frequency"].tolist() == python.features["frequency"].tolist()
    assert compiled.record.moves == python.record.moves
    np.testing.assert_allclose(
        compiled.models["probability"], python.models["probability"], rtol=1e-8
    )
