"""Chains are added where one alone has found the models that hold the mass."""

from types import SimpleNamespace

import numpy as np
import pytest

import dbrm
from dbrm.chains import run_chains
from dbrm.posterior import Diagnostics
from dbrm.run.settings import N_CHAINS, Settings

QUICK = {"n_populations": 2, "transforms": ["sin"], "sweep": 2, "random_state": 3}


def diagnostics(*captured):
    share = np.array(captured)
    return Diagnostics(np.zeros((share.size, 0)), share, 0.1, {}, {}, [])


@pytest.mark.parametrize(
    ("captured", "alone"),
    [((1.0, 0.01, 0.0), True), ((0.9, 0.1, 0.0), False), ((0.02, 0.99), True), ((1.0,), False)],
)
def test_one_chain_alone(captured, alone):
    assert diagnostics(*captured).found_by_one is alone


def test_a_second_call_goes_on_with_the_next_chains(data):
    problem = dbrm.fit(*data, **QUICK, n_chains=1)._problem
    together, apart = [], []
    run_chains(problem, 4, np.random.SeedSequence(1), together.append)
    seed = np.random.SeedSequence(1)
    for first in (0, 2):
        report = run_chains(problem, 2, seed, apart.append, first=first)
        assert report.n_finished == 2
    for one, other in zip(together, apart, strict=True):
        assert [str(f) for f in one.features] == [str(f) for f in other.features]
        np.testing.assert_array_equal(one.trace, other.trace)


@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM"])
def test_added_chains_that_never_began_leave_the_result_of_the_first(data, signal):
    problem = dbrm.fit(*data, **QUICK, n_chains=1)._problem
    taken, stop = [], SimpleNamespace(is_set=True, reason=signal)
    seed = np.random.SeedSequence(1)
    report = run_chains(problem, 3, seed, taken.append, first=2, stop=stop)
    assert (report.n_chains, report.n_begun, report.ended, taken) == (3, 0, signal, [])
    # Negative control: the first chains must have a result, or there is nothing to return.
    if signal == "SIGINT":
        run_chains(problem, 3, seed, taken.append, stop=stop)
        assert len(taken) == 1
    else:
        with pytest.raises(KeyboardInterrupt):
            run_chains(problem, 3, seed, taken.append, stop=stop)


@pytest.fixture
def lonely(monkeypatch):
    """Chains that seem to have found different things, whatever they found."""
    monkeypatch.setattr(Diagnostics, "found_by_one", property(lambda _: True))


def test_up_to_twelve_chains_run(data, lonely):
    posterior = dbrm.fit(*data, **QUICK)
    assert posterior.record.n_chains == posterior.record.n_finished == 12
    assert len(set(posterior.record.chain_log_mass)) > 1


def test_four_are_enough_where_two_have_found_the_same(data):
    assert dbrm.fit(*data, **QUICK).record.n_chains == N_CHAINS == 4


@pytest.mark.parametrize("limits", [{"n_chains": 2}, {"time_budget": 60.0}, {"max_models": 10_000}])
def test_none_are_added_where_the_user_sets_a_limit(data, lonely, limits):
    posterior = dbrm.fit(*data, **QUICK, **limits)
    assert posterior.record.n_chains == limits.get("n_chains", N_CHAINS)


@pytest.mark.parametrize("changed", [{"preset": "paper_text"}, {"algorithm": "rgmjmcmc"}])
def test_none_are_added_to_the_samplers_of_the_paper(changed):
    assert Settings().adds_chains
    assert not Settings(**changed).adds_chains


def test_a_resumed_run_has_the_same_chains(data, lonely, same, tmp_path):
    whole = dbrm.fit(*data, **QUICK)
    dbrm.fit(*data, **QUICK, checkpoint=tmp_path)
    for number in (1, 9, 11):
        (tmp_path / f"chain-{number:05}.a.dbrm").unlink()
    same(dbrm.resume(tmp_path), whole)
