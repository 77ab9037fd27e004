"""Which projection strategy finds a nested projection?

Data are simulated from tanh of projections of tanh of projections. Each strategy builds the
true topology layer by layer, as the search would, and the log likelihood of the model with
that one feature (and an intercept) is compared. Writes docs/results/projection_strategies.md
and .csv.
"""

import argparse
import csv
from time import perf_counter

import numpy as np
from page import RESULTS, machine, markdown_table
from threadpoolctl import threadpool_limits

from dbrm.data import Table
from dbrm.evidence import Jeffreys, Observations, build_engine
from dbrm.evolution.projection import (
    AllLayers,
    OptimizeThenTransform,
    Projector,
    TransformThenOptimize,
)
from dbrm.features import covariate, evaluate, get_transform

N_ROWS = 300
STRATEGIES = {
    "1": OptimizeThenTransform(),
    "2 literal": TransformThenOptimize(outer_affine=False),
    "2": TransformThenOptimize(),
    "3 literal": AllLayers(outer_affine=False),
    "3": AllLayers(),
}
FAMILIES = ("gaussian", "binomial")
# Gains in log likelihood below this are ties.
TIE = 1e-6


def simulate(family, seed):
    """Six covariates, two hidden projections of two each, one projection of these on top."""
    rng = np.random.default_rng([seed, FAMILIES.index(family)])
    x = rng.normal(size=(N_ROWS, 6))
    weights = rng.choice([-1.0, 1.0], size=6) * rng.uniform(0.7, 2.0, size=6)
    biases = rng.uniform(-0.7, 0.7, size=3)
    first = np.tanh(biases[0] + x[:, :2] @ weights[:2])
    second = np.tanh(biases[1] + x[:, 2:4] @ weights[2:4])
    signal = np.tanh(biases[2] + weights[4] * first + weights[5] * second)
    if family == "gaussian":
        y = 1.0 + 2.0 * signal + 0.3 * rng.normal(size=N_ROWS)
    else:
        y = (rng.random(N_ROWS) < 1 / (1 + np.exp(-3.0 * signal))).astype(float)
    table = Table(tuple(f"x{j + 1}" for j in range(6)), x)
    engine = build_engine(Observations(y), Jeffreys(), family=family)
    return table, engine, signal


def run(family, seed):
    table, engine, truth = simulate(family, seed)
    tanh, rng = get_transform("tanh"), np.random.default_rng(seed)
    x = [covariate(f"x{j + 1}") for j in range(6)]
    record = {"family": family, "seed": seed}
    record["truth"] = engine.fit(truth[:, None]).log_likelihood
    for name, strategy in STRATEGIES.items():
        projector = Projector(strategy, engine, table)
        started = perf_counter()
        hidden = [projector.build(rng, tanh, x[:2]), projector.build(rng, tanh, x[2:4])]
        feature = projector.build(rng, tanh, hidden)
        record[f"seconds {name}"] = perf_counter() - started
        columns, _ = evaluate([feature], table)
        record[name] = engine.fit(columns).log_likelihood
    return record


def summarise(records):
    rows = []
    for family in FAMILIES:
        chosen = [record for record in records if record["family"] == family]
        for name in STRATEGIES:
            gains = np.array([record[name] - record["1"] for record in chosen])
            short = np.array([record["truth"] - record[name] for record in chosen])
            seconds = np.median([record[f"seconds {name}"] for record in chosen])
            rows.append(
                (
                    f"{family}, {name}",
                    "" if name == "1" else f"{int(np.sum(gains > TIE))} / {len(chosen)}",
                    f"{np.median(gains):.1f}",
                    f"{np.min(gains):.1f}",
                    f"{np.median(short):.1f}",
                    f"{int(np.sum(short < 0))} / {len(chosen)}",
                    f"{1e3 * seconds:.0f}",
                )
            )
    return rows


HEADER = (
    "family, strategy",
    "higher than 1",
    "median gain",
    "least gain",
    "truth ahead by",
    "above the truth",
    "ms",
)

INTRODUCTION = r"""# Projection strategies on nested projections

Simulated data, n = 300, six covariates of which four matter:
$\eta = b_0 + b_1 \tanh(\alpha_0 + \alpha_1 \tanh(\cdot) + \alpha_2 \tanh(\cdot))$ with random
weights, Gaussian noise (standard deviation 0.3, $b_1 = 2$) or logistic responses ($b_1 = 3$).
Every strategy builds the true topology from scratch, inner projections first, as the search
does. Compared is the maximised log likelihood of the model with that single feature.

*Higher than 1* counts data sets in which a strategy beats strategy 1; gains are over strategy
1 in nats; *truth ahead by* is the median distance to the model with the true weights, which a
fitted feature can exceed (*above the truth*). Time is the median for all three projections in
milliseconds, one thread. The literal versions are the paper's, without an outer intercept and
slope; the others, our defaults, fit these along (variable projection).
"""


def write(records):
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "projection_strategies.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(records[0]))
        writer.writeheader()
        for record in records:
            rounded = {k: f"{v:.4f}" if isinstance(v, float) else v for k, v in record.items()}
            writer.writerow(rounded)
    table = markdown_table(HEADER, summarise(records))
    text = f"{INTRODUCTION}\n{machine()}\n\n{table}\n"
    (RESULTS / "projection_strategies.md").write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100, help="data sets per family")
    options = parser.parse_args()
    with threadpool_limits(limits=1):
        run("binomial", 0)  # compiles
        records = [run(family, seed) for family in FAMILIES for seed in range(options.cases)]
    write(records)
    for row in summarise(records):
        print(*row, sep="\t")


if __name__ == "__main__":
    main()
