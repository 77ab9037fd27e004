"""Tests of `dbrm._kernels.store`: the memory of models seen."""

import numpy as np
import pytest

from dbrm._kernels.store import find, insert, new_store


def remember(store, words, value, prior=0.0, status=0):
    """Insert unless known; the entry, -1 if there was no room."""
    entry = find(store, words)
    if entry >= 0:
        return entry
    return insert(store, -1 - entry, words, value, prior, np.uint8(status))


@pytest.mark.parametrize("n_words", [1, 2, 3])
def test_no_model_is_lost_or_mistaken_for_another(rng, n_words):
    """Against a dictionary, with every model met twice, to the last place of the table."""
    models = rng.integers(0, 8, size=(3000, n_words)).astype(np.uint64) << np.uint64(60)
    models = np.concatenate(
        [models, rng.integers(0, 2**63, size=(2000, n_words)).astype(np.uint64)]
    )
    known = {}
    for words in models:
        known.setdefault(words.tobytes(), len(known))
    store = new_store(len(known), n_words)
    for _ in range(2):
        for words in models:
            number = known[words.tobytes()]
            assert remember(store, words, 10.0 * number, -number, number % 3) == number
    assert store.counts[0] == len(known)
    assert store.counts[2] == 0
    np.testing.assert_array_equal(store.values, 10.0 * np.arange(len(known)))
    np.testing.assert_array_equal(store.priors, -np.arange(len(known)))
    np.testing.assert_array_equal(store.statuses, np.arange(len(known)) % 3)
    for words in models[:100]:
        assert store.words[known[words.tobytes()]].tobytes() == words.tobytes()


@pytest.mark.parametrize("capacity", [1, 2, 3, 7, 8])
def test_overflow_is_counted_and_what_was_kept_stays(capacity):
    store = new_store(capacity, 1)
    for model in range(20):
        entry = remember(store, np.array([model], dtype=np.uint64), float(model))
        assert entry == (model if model < capacity else -1)
    assert store.counts[0] == capacity
    assert store.counts[2] == 20 - capacity
    assert store.log_lost[0] == pytest.approx(np.logaddexp.reduce(np.arange(capacity, 20.0)))
    for model in range(20):
        entry = find(store, np.array([model], dtype=np.uint64))
        assert (entry == model) if model < capacity else (entry < 0)


def test_compiled_and_plain_agree(rng):
    models = rng.integers(0, 50, size=(200, 2)).astype(np.uint64)
    compiled, plain = new_store(100, 2), new_store(100, 2)
    for words in models:
        slot = find(compiled, words)
        with np.errstate(over="ignore"):
            twin = find.py_func(plain, words)
        assert slot == twin
        if slot < 0:
            insert(compiled, -1 - slot, words, 1.0, 0.0, np.uint8(0))
            insert.py_func(plain, -1 - twin, words, 1.0, 0.0, np.uint8(0))
    for one, other in zip(compiled, plain, strict=True):
        np.testing.assert_array_equal(one, other)
