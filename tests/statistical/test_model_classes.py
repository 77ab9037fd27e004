"""Laws of the named model classes are found: one seed here, twenty in the slow suite.

The laws are those of ``benchmarks/model_classes.py``. All true features must have inclusion
above one half; over twenty seeds one miss per class is allowed.
"""

import sys
from importlib import import_module
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
CLASSES = ["fractional polynomial", "steps", "logic with or and not", "dimensional law"]


@pytest.fixture
def classes(monkeypatch):
    if not FOLDER.is_dir():
        pytest.skip("the benchmarks are not here")
    monkeypatch.syspath_prepend(str(FOLDER))
    yield import_module("model_classes")
    for name in ("model_classes", "page"):
        sys.modules.pop(name, None)


def found(classes, name, seeds):
    return sum(classes.find(name, seed)[0] > 0.5 for seed in seeds)


def test_the_classes_are_those_of_the_benchmark(classes):
    assert list(classes.TRUTHS) == CLASSES


@pytest.mark.parametrize("name", CLASSES)
def test_the_law_is_found(classes, name):
    assert found(classes, name, range(1)) == 1


@pytest.mark.parametrize("name", CLASSES)
def test_noise_is_not_taken_for_the_law(classes, name, rng):
    """Negative control: with the response shuffled no true feature is found."""
    truth = classes.TRUTHS[name]
    x, y = truth.simulate(rng)
    posterior = classes.dbrm.fit(
        x,
        rng.permutation(y),
        n_chains=1,
        n_populations=5,
        random_state=0,
        **truth.settings,
    )
    assert all(posterior.inclusion(feature) < 0.5 for feature in truth.features)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSES)
def test_the_law_is_found_in_nineteen_of_twenty_seeds(classes, name):
    assert found(classes, name, range(20)) >= 19
