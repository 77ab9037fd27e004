"""Tests of `dbrm.search.ledger`: each model once, nothing lost without being booked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrm.errors import InvalidSettingError
from dbrm.search import Ledger, ModelTable, log_sum_exp, model_keys, split_key, unique_rows

N_FEATURES = 12
KEYS = np.random.default_rng(1).integers(0, 2**63, size=(N_FEATURES, 2)).astype(np.uint64)


def score(model):
    """A log posterior that is a function of the model, as in life."""
    return -0.37 * sum(model) - 0.11 * len(model) ** 2


def table(models, population=None):
    """Models given as sets of numbers, over a population in any order."""
    population = np.arange(N_FEATURES) if population is None else np.asarray(population)
    masks = np.array([[number in model for number in population] for model in models], dtype=bool)
    masks = masks.reshape(len(models), population.size)
    return ModelTable.from_masks(
        masks,
        population.astype(np.int32),
        KEYS,
        log_evidence=np.array([score(model) for model in models]),
        log_prior=np.array([-float(len(model)) for model in models]),
        statuses=np.array([len(model) % 2 for model in models], dtype=np.uint8),
    )


def contents(models):
    return [frozenset(models.features_of(row).tolist()) for row in range(len(models))]


sets = st.lists(st.frozensets(st.integers(0, N_FEATURES - 1)), min_size=1, max_size=40)


@given(models=sets, seed=st.integers(0, 2**32))
def test_keys_do_not_depend_on_the_order_of_the_population(models, seed):
    shuffled = np.random.default_rng(seed).permutation(N_FEATURES)
    one, other = table(models), table(models, shuffled)
    np.testing.assert_array_equal(one.keys, other.keys)
    np.testing.assert_array_equal(one.members, other.members)
    assert contents(one) == models
    for row, model in enumerate(models):
        expected = np.bitwise_xor.reduce(KEYS[sorted(model)], axis=0) if model else [0, 0]
        np.testing.assert_array_equal(one.keys[row], expected)


@given(models=sets)
def test_different_models_have_different_keys(models):
    keys = {key.tobytes() for key in table(models).keys}
    assert len(keys) == len(set(models))


@given(models=sets, data=st.data())
def test_take_chooses_rows_in_any_order_with_repeats(models, data):
    rows = data.draw(st.lists(st.integers(0, len(models) - 1), max_size=20))
    taken = table(models).take(np.array(rows, dtype=np.int64))
    assert contents(taken) == [models[row] for row in rows]
    np.testing.assert_array_equal(taken.sizes, [len(models[row]) for row in rows])
    np.testing.assert_allclose(taken.log_evidence, [score(models[row]) for row in rows])
    np.testing.assert_array_equal(taken.owners, np.repeat(np.arange(len(rows)), taken.sizes))


@given(first=sets, second=sets)
def test_concatenate_stacks(first, second):
    stacked = ModelTable.concatenate([table(first), table(second)])
    assert contents(stacked) == first + second
    np.testing.assert_array_equal(stacked.keys, table(first + second).keys)
    np.testing.assert_array_equal(model_keys(stacked.starts, stacked.members, KEYS), stacked.keys)


@given(models=sets)
def test_unique_rows_keeps_the_first_of_each(models):
    rows, position = unique_rows(table(models).keys)
    assert sorted(rows) == sorted(models.index(model) for model in set(models))
    assert [models[row] for row in rows[position]] == models


@given(batches=st.lists(sets, min_size=1, max_size=6), capacity=st.integers(1, 30))
def test_the_ledger_holds_the_best_models_once_and_books_the_rest(batches, capacity):
    ledger = Ledger(capacity)
    for batch in batches:
        ledger.record(table(batch))
    kept = ledger.models()
    found = contents(kept)
    everything = set().union(*batches)
    assert len(found) == len(set(found)) == min(len(everything), capacity)
    assert set(found) <= everything
    values = kept.log_evidence + kept.log_prior
    posterior = {model: score(model) - len(model) for model in everything}
    if len(everything) <= capacity:
        assert set(found) == everything
    np.testing.assert_allclose(values, [posterior[model] for model in found])
    # Nothing kept is worse than something dropped.
    dropped = [posterior[model] for model in everything - set(found)]
    assert not dropped or min(values) >= max(dropped) - 1e-12
    # Booked as lost: at least what was dropped; a model dropped twice may count twice.
    assert ledger.log_lost >= log_sum_exp(np.array(dropped)) - 1e-9
    if not dropped and capacity >= sum(map(len, batches)):
        assert ledger.log_lost == -np.inf


def test_lost_mass_is_exact_when_nothing_comes_back():
    models = [frozenset([j, k]) for j in range(N_FEATURES) for k in range(j)]
    ledger = Ledger(10)
    ledger.record(table(models[:40]))
    ledger.record(table(models[40:]), log_lost=-3.0)
    kept = ledger.models()
    whole = np.array([score(model) - len(model) for model in models])
    held = log_sum_exp(kept.log_evidence + kept.log_prior)
    expected = np.logaddexp(log_sum_exp(whole), -3.0)
    assert np.logaddexp(held, ledger.log_lost) == pytest.approx(expected, abs=1e-12)


def test_the_same_model_from_two_populations_is_one():
    ledger = Ledger(100)
    ledger.record(table([frozenset([3, 5])], population=[5, 3, 1]))
    ledger.record(table([frozenset([3, 5]), frozenset()], population=[0, 3, 7, 5]))
    assert sorted(contents(ledger.models()), key=len) == [frozenset(), frozenset([3, 5])]


def test_a_ledger_without_room_is_refused():
    with pytest.raises(InvalidSettingError, match="max_models must be at least 1"):
        Ledger(0)


def test_split_key_gives_both_halves():
    assert split_key((7 << 64) | 9) == (7, 9)
