"""dbrm, gplearn, pyoperon and RILS-ROLS with one setting each, the same functions, and a time limit.

A method takes training data and seconds, and returns what it found: the prediction of the one
formula it settles for, its text, and its other candidates with their weights. Seconds are
processor time of this one process: wall time on a machine with nothing else to do. `METHODS` has
those that are installed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from math import ceil, log
from time import perf_counter, process_time

import numpy as np

import dbrm
import dbrm.evolution.chain
import dbrm.run.runner

__all__ = ["METHODS", "Found", "count_processor_time"]

Predict = Callable[[np.ndarray], np.ndarray]
# Where peers restart, further seeds count up from here.
SEED = 1


@dataclass(frozen=True)
class Found:
    """The formula that a method settles for, and its other candidates.

    Lack of fit and claim are those of dbrm's posterior; other methods claim nothing.
    """

    predict: Predict
    text: str
    others: list[tuple[float, Predict]]
    lack_of_fit: float | None = None
    claim: float | None = None


def count_processor_time():
    """Let the time budget of dbrm, in this process, be processor time."""
    dbrm.evolution.chain.monotonic = process_time
    dbrm.run.runner.perf_counter = process_time


# A plain call: nothing is set but the functions.
DBRM = {
    "transforms": ["sin", "cos", "exp", "log_abs", "sqrt_abs", "square", "power[-1]"],
    "random_state": SEED,
}


def run_dbrm(x, y, seconds):
    count_processor_time()
    posterior = dbrm.fit(x, y, time_budget=seconds, **DBRM)
    models = posterior._merged
    count = min(10, models.probability.size)
    none = np.zeros(0, dtype=bool)
    fitted = [
        posterior._fit(models.models.features_of(k), none, float(models.probability[k]))
        for k in range(count)
    ]
    others = [(model.probability, model.predict) for model in fitted]
    return Found(others[0][1], fitted[0].formula, others, posterior.lack_of_fit, posterior.claim)


def _protected_exp(x):
    with np.errstate(all="ignore"):
        return np.exp(np.minimum(x, 50.0))


GPLEARN = {
    "metric": "pearson",
    "population_size": 1000,
    "parsimony_coefficient": 0.001,
    "const_range": (-5.0, 5.0),
    "warm_start": True,
}
GPLEARN_GENERATIONS = 30


def run_gplearn(x, y, seconds):
    """Restart with a new seed every 30 generations; slope and intercept by least squares."""
    from gplearn.functions import make_function
    from gplearn.genetic import SymbolicRegressor

    functions = (
        *("add", "sub", "mul", "div", "sqrt", "log", "sin", "cos", "inv"),
        make_function(function=_protected_exp, name="exp", arity=1),
        make_function(function=np.square, name="square", arity=1),
    )
    ends = process_time() + seconds
    best, best_error, seed = None, np.inf, SEED
    while process_time() < ends:
        model = SymbolicRegressor(function_set=functions, **GPLEARN, random_state=seed)
        for generation in range(1, GPLEARN_GENERATIONS + 1):
            model.set_params(generations=generation)
            model.fit(x, y)
            if process_time() > ends:
                break
        predict, error = _scaled(model, x, y)
        if error < best_error or best is None:
            best, best_error = (predict, str(model._program)), error
        seed += 1
    return Found(best[0], best[1], [(1.0, best[0])])


def _scaled(model, x, y):
    """The program with slope and intercept, and its squared error."""
    values = model._program.execute(x)
    design = np.column_stack([np.ones(len(y)), values])
    intercept, slope = np.linalg.lstsq(design, y, rcond=None)[0]
    error = float(np.mean((y - intercept - slope * values) ** 2))
    return (lambda z: intercept + slope * model._program.execute(z)), error


OPERON = {
    "allowed_symbols": "add,sub,mul,div,sqrt,log,exp,sin,cos,square,constant,variable",
    "objectives": ["r2", "length"],
    "optimizer_iterations": 5,
    "population_size": 1000,
    "max_evaluations": 10**9,
    "generations": 10**6,
    "epsilon": 1e-5,
    "n_threads": 1,
}


def run_operon(x, y, seconds):
    """Restart with a new seed where it ends early; the formula of least BIC counting constants.

    Its own limit is wall time; where that ends before the processor time, the run goes on.
    """
    return _operon(x, y, seconds, lambda row: row["bayesian_information_criterion"])


def run_operon_nodes(x, y, seconds):
    """As above; BIC counts all nodes of the formula."""
    n = len(y)

    def criterion(row):
        error = max(float(row["mean_squared_error"]), 1e-300)
        return n * log(error) + float(row["complexity"]) * log(n)

    return _operon(x, y, seconds, criterion)


def _operon(x, y, seconds, criterion):
    from pyoperon.sklearn import SymbolicRegressor

    ends = process_time() + seconds
    best, seed, others, model = None, SEED, [], None
    while best is None or ends - process_time() >= 0.5:
        limit = max(1, ceil(ends - process_time()))
        if model is None:
            model = SymbolicRegressor(**OPERON, warm_start=True)
        started = perf_counter()
        model.set_params(max_time=limit, random_state=seed).fit(x, y)
        for row in model.pareto_front_:
            row["predict"] = _tree(model, row["tree"])
            others.append((1.0, row["predict"]))
        candidate = min(model.pareto_front_, key=criterion)
        if best is None or criterion(candidate) < criterion(best):
            best = candidate
        if perf_counter() - started < 0.8 * limit:
            model = None
        seed += 1
    return Found(best["predict"], best["model"], others[-60:])


def _tree(model, tree):
    return lambda z: model.evaluate_model(tree, z)


def run_rils(x, y, seconds):
    """RILS-ROLS; its own limit is wall time."""
    from rils_rols.rils_rols import RILSROLSRegressor

    model = RILSROLSRegressor(max_seconds=ceil(seconds), random_state=SEED)
    model.fit(x, y)
    return Found(model.predict, str(model.model_string()), [(1.0, model.predict)])


_ALL = {
    "dbrm": ("dbrm", run_dbrm),
    "gplearn": ("gplearn", run_gplearn),
    "pyoperon": ("pyoperon", run_operon),
    "pyoperon, nodes": ("pyoperon", run_operon_nodes),
    "rils-rols": ("rils_rols", run_rils),
}
METHODS = {name: run for name, (package, run) in _ALL.items() if find_spec(package) is not None}
