"""A small problem to evolve on."""

import numpy as np
import pytest

from dbrm.data import Table
from dbrm.evidence import GaussianEngine, Jeffreys
from dbrm.evolution import Filtration, Grammar, Operators, Problem, SearchBudget
from dbrm.evolution.projection import OptimizeThenTransform
from dbrm.features import covariate, resolve_transforms
from dbrm.priors import Complexity


@pytest.fixture
def pose():
    """Return a function that puts a problem together, with everything replaceable."""

    def pose(
        values,
        response,
        *,
        names=None,
        transforms=("tanh",),
        operators=None,
        max_depth=5,
        max_complexity=10,
        population_size=6,
        n_populations=5,
        filtration=None,
        penalty=1.0,
        always=(),
        pool=(),
        max_model_size=None,
    ):
        names = tuple(f"x{j + 1}" for j in range(values.shape[1])) if names is None else names
        table = Table(names, values)
        fixed = np.column_stack([table.column(name) for name in always]) if always else None
        return Problem(
            table=table,
            engine=GaussianEngine(np.asarray(response, dtype=float), Jeffreys(), always=fixed),
            model_prior=Complexity(penalty),
            grammar=Grammar(
                resolve_transforms(list(transforms)),
                operators=Operators() if operators is None else operators,
                max_depth=max_depth,
                max_complexity=max_complexity,
                max_projection=4,
                projection=OptimizeThenTransform(),
            ),
            filtration=Filtration() if filtration is None else filtration,
            budget=SearchBudget(population_size, n_populations, n_init=20_000, n_final=20_000),
            max_model_size=population_size if max_model_size is None else max_model_size,
            always=tuple(covariate(name) for name in always),
            pool=tuple(pool),
        )

    return pose
