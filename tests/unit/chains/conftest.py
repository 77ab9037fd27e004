"""A small run, and what it means that two runs are the same."""

import numpy as np
import pytest

import dbrm

SETTINGS = {
    "n_chains": 3,
    "n_populations": 12,
    "transforms": ["sin", "tanh"],
    "random_state": 11,
    "sweep": 2,
    # Few models hold the mass: small states.
    "prior": "jeffreys",
    "penalty": "bic",
}


def _columns(posterior):
    return {
        (table, column): frame[column].tolist()
        for table, frame in (("features", posterior.features), ("models", posterior.models))
        for column in frame.columns
    }


@pytest.fixture(scope="session")
def same():
    """Assert that two posteriors are equal to the last bit."""

    def same(one, other):
        first, second = _columns(one), _columns(other)
        assert first.keys() == second.keys()
        for key in first:
            assert first[key] == second[key], key
        assert one.record.n_evaluated == other.record.n_evaluated
        assert one.record.chain_log_mass == other.record.chain_log_mass

    return same


@pytest.fixture(scope="session")
def data():
    draw = np.random.default_rng(2)
    columns = draw.normal(size=(80, 5))
    return columns, np.sin(columns[:, 0] * columns[:, 1]) + 0.3 * draw.normal(size=80)


@pytest.fixture(scope="session")
def settings():
    return dict(SETTINGS)


@pytest.fixture(scope="session")
def whole(data):
    """The run without any trouble."""
    return dbrm.fit(*data, **SETTINGS)
