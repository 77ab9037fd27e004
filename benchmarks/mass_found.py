"""How much posterior mass does the search find, against processor time? Old search and new.

    python benchmarks/mass_found.py [--only parity] [--seeds 5] [--populations 2 80] [--page]

Six data sets, four chains of 2 to 80 populations, five seeds each; prior, penalty and transforms
are given, so that only the search differs. The mass found is the sum of evidence times prior over
all different models of a posterior; the largest one ever found stands for all there is. Runs are
added to ``docs/results/mass_found_new.csv`` one by one, and those that are there are not
repeated: delete the file to measure anew. ``docs/results/mass_found.md`` and ``.png`` are written
from both files (``--page``: only this).

``mass_found_old.csv`` has the search as it was at commit 82ab669 (dbrm 0.1.0), before populations
were expanded and candidate features scored in batches. The same program made it, with that
version on its path: ``PYTHONPATH=<checkout of 82ab669>/src python benchmarks/mass_found.py
--search old``. It needs nothing but the public interface. The data of the paper are downloaded
once, or read from the folder named by ``DBRM_DATA``.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import argparse  # noqa: E402
import csv  # noqa: E402
import warnings  # noqa: E402
from time import process_time  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from page import RESULTS, machine, markdown_table  # noqa: E402

import dbrm  # noqa: E402
from dbrm import datasets  # noqa: E402

POPULATIONS = (2, 5, 10, 20, 40, 80)
SEEDS, CHAINS = 5, 4
SEARCHES = ("old", "new")
COLUMNS = ("data", "populations", "seed", "cpu_seconds", "log_mass", "shared", "models", "best")
# Curves closer than this, in nats, count as the same: one per cent of the mass.
TOLERANCE = 0.01
# Panels that reach further down than this have a logarithmic axis below -1 nat.
WIDE = 10.0
TICKS = [seconds * 10.0**k for k in range(-2, 4) for seconds in (1, 2, 3, 5)]

UNIT_INFORMATION = {"name": "jeffreys", "constant": "unit_information"}
LIGHT = {"prior": "zellner-siow", "penalty": "multiplicity"}
STRICT = {"prior": "jeffreys", "penalty": "bic"}
BINARY = {"family": "binomial", "prior": UNIT_INFORMATION, "penalty": "multiplicity"}


def exoplanets():
    table = datasets.load_exoplanets()
    return table, table.pop("SemiMajorAxisAU"), {**LIGHT, "transforms": "paper-g1"}


def spam():
    train = datasets.load_spam().train
    return train.drop(columns="spam"), train["spam"], {**BINARY, "transforms": "smooth"}


def breast_cancer():
    train = datasets.load_breast_cancer().train
    return train.drop(columns="malignant"), train["malignant"], {**BINARY, "transforms": "smooth"}


def friedman():
    from sklearn.datasets import make_friedman1

    X, y = make_friedman1(n_samples=500, noise=1.0, random_state=1)
    return _frame(X), y, {**LIGHT, "transforms": "smooth"}


def parity():
    """Ten columns of signs; the response is twice the product of the first five, plus noise."""
    rng = np.random.default_rng(92)
    X = rng.choice([-1.0, 1.0], size=(300, 10))
    y = 2.0 * X[:, :5].prod(axis=1) + rng.normal(size=300)
    return _frame(X), y, {**STRICT, "transforms": "smooth"}


def logic():
    table = datasets.simulate_logic(1)
    return table, table.pop("Y"), {**STRICT, "transforms": [], "max_complexity": 4}


def _frame(X):
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


DATA = {
    "exoplanets": exoplanets,
    "spam": spam,
    "breast cancer": breast_cancer,
    "Friedman 1": friedman,
    "parity of five signs": parity,
    "Example 6": logic,
}


def run(name, n_populations, seed):
    """Processor time of one fit, and the log of the mass it found."""
    X, y, settings = DATA[name]()
    started = process_time()
    posterior = dbrm.fit(
        X,
        y,
        n_populations=n_populations,
        n_chains=CHAINS,
        n_jobs=1,
        random_state=seed,
        **settings,
    )
    seconds = process_time() - started
    models = posterior.models
    log_posterior = (models["log_evidence"] + models["log_prior"]).to_numpy()
    # Functions with numbers of their own inside, such as sin{2.3*x}, are unknown to the old search.
    known = np.array([not any("{" in text for text in model) for model in models["features"]])
    return {
        "data": name,
        "populations": n_populations,
        "seed": seed,
        "cpu_seconds": f"{seconds:.3f}",
        "log_mass": f"{np.logaddexp.reduce(log_posterior):.6f}",
        "shared": f"{np.logaddexp.reduce(log_posterior[known], initial=-np.inf):.6f}",
        "models": len(models),
        "best": " + ".join(models["features"][0]),
    }


def measure(path, names, efforts, n_seeds):
    """Add the runs that are not in the file yet; whole seeds first, so that any end is balanced."""
    done = set()
    if path.exists():
        table = pd.read_csv(path)
        done = set(zip(table["data"], table["populations"], table["seed"], strict=True))
    plan = [(name, effort, seed) for seed in range(n_seeds) for name in names for effort in efforts]
    compiled = set()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=COLUMNS)
        if not file.tell():
            writer.writeheader()
        for name, effort, seed in plan:
            if (name, effort, seed) in done:
                continue
            if name not in compiled:
                # Long enough that all compiled functions are loaded.
                run(name, max(efforts), seed)
                compiled.add(name)
            found = run(name, effort, seed)
            writer.writerow(found)
            file.flush()
            print(*list(found.values())[:-1], flush=True)


def curves(tables, models="log_mass"):
    """Medians over the seeds, in nats below the largest mass found, by data set and search.

    `models` is the column that counts: all models, or those ``"shared"`` by both searches.
    """
    runs = pd.concat([table.assign(search=search) for search, table in tables.items()])
    runs["log_mass"] = runs[models] - runs.groupby("data")[models].transform("max")
    columns = ["cpu_seconds", "log_mass"]
    return runs.groupby(["data", "search", "populations"])[columns].median()


def compare(old, new):
    """How the curve of the new search lies to that of the old one.

    At the processor time of each old median: the new mass less the old, in nats, interpolated over
    the logarithm of time; before its first point the new search has found nothing. The least of
    these tells whether new is above old everywhere. Then the ratio of the times at which each
    came to the old search's largest mass.
    """
    old, new = (curve.sort_values("cpu_seconds") for curve in (old, new))
    times = np.log(new["cpu_seconds"].to_numpy())
    reached = np.maximum.accumulate(new["log_mass"].to_numpy())
    at = np.log(old["cpu_seconds"].to_numpy())
    ahead = np.interp(at, times, reached, left=-np.inf) - old["log_mass"].to_numpy()
    goal = old["log_mass"].max() - TOLERANCE
    first = [curve.loc[curve["log_mass"] >= goal, "cpu_seconds"] for curve in (old, new)]
    ratio = first[0].iloc[0] / first[1].iloc[0] if len(first[1]) else np.nan
    return ahead, ratio


def draw(median, names):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(10.5, 6), layout="constrained", squeeze=False)
    styles = {"old": ("0.55", "o", "--"), "new": ("C0", "s", "-")}
    for panel, name in zip(axes.flat, names, strict=False):
        for search, (colour, marker, line) in styles.items():
            if (name, search) not in median.index.droplevel("populations"):
                continue
            curve = median.loc[name, search].sort_values("cpu_seconds")
            # Lines are what was reached by a time, as in the table; points are all medians.
            panel.plot(
                curve["cpu_seconds"], curve["log_mass"], color=colour, marker=marker, markersize=4,
                linestyle="none",
            )  # fmt: skip
            panel.plot(
                curve["cpu_seconds"],
                curve["log_mass"].cummax(),
                color=colour,
                marker=marker,
                markersize=4,
                linestyle=line,
                label=f"{search} search",
            )
        panel.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
        panel.set_xscale("log")
        panel.xaxis.set_major_locator(mpl.ticker.FixedLocator(TICKS))
        panel.xaxis.set_major_formatter(mpl.ticker.FormatStrFormatter("%g"))
        panel.xaxis.set_minor_formatter(mpl.ticker.NullFormatter())
        if panel.get_ylim()[0] < -WIDE:
            lowest = panel.get_ylim()[0]
            panel.set_yscale("symlog", linthresh=1.0)
            panel.set_ylim(1.5 * lowest, 0.5)
            panel.yaxis.set_major_formatter(mpl.ticker.FormatStrFormatter("%g"))
        panel.set_title(name, fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
    for panel in axes[1]:
        panel.set_xlabel("processor time of a fit, s")
    for panel in axes[:, 0]:
        panel.set_ylabel("log mass found − largest, nats")
    for panel in list(axes.flat)[len(names) :]:
        panel.set_visible(False)
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(), loc="outside upper right", ncols=2, frameon=False
    )
    figure.savefig(RESULTS / "mass_found.png", dpi=130)
    plt.close(figure)


def verdict(name, all_models, shared):
    """A line of the page: is new above old everywhere?"""
    ahead, ratio = compare(*(all_models.loc[search] for search in SEARCHES))
    among_shared, _ = compare(*(shared.loc[search] for search in SEARCHES))
    return (
        name,
        f"{ahead.min():+.2f}",
        f"{ahead.max():+.2f}",
        f"{among_shared.min():+.2f}",
        "not reached" if np.isnan(ratio) else f"{ratio:.1f}",
        "yes" if ahead.min() >= -TOLERANCE else "**no**",
    )


def late_starts(median, names):
    """Where the new search gives its first answer after the old one, and how it stands then."""
    found = []
    for name in names:
        old, new = (median.loc[name, search].sort_values("cpu_seconds") for search in SEARCHES)
        first = new.iloc[0]
        if first["cpu_seconds"] > old["cpu_seconds"].iloc[0]:
            met = old.loc[old["cpu_seconds"] <= first["cpu_seconds"], "log_mass"].max()
            found.append(
                f"{name} after {first['cpu_seconds']:.2f} s instead of "
                f"{old['cpu_seconds'].iloc[0]:.2f} s, {first['log_mass'] - met:+.2f} nats from what "
                "the old one had by then"
            )
    return "; ".join(found)


def write_page():
    tables = {
        search: pd.read_csv(RESULTS / f"mass_found_{search}.csv")
        for search in SEARCHES
        if (RESULTS / f"mass_found_{search}.csv").exists()
    }
    median, shared = curves(tables), curves(tables, "shared")
    names = [name for name in DATA if name in median.index.get_level_values("data")]
    draw(median, names)
    found = {name: set(median.loc[name].index.unique("search")) for name in names}
    measured = {name: [search for search in SEARCHES if search in found[name]] for name in names}
    verdicts = [
        verdict(name, median.loc[name], shared.loc[name])
        for name in names
        if len(measured[name]) == len(SEARCHES)
    ]
    lines = [
        (name, search, populations, f"{row['cpu_seconds']:.2f}", f"{row['log_mass']:.2f}")
        for name in names
        for search in measured[name]
        for populations, row in median.loc[name, search].iterrows()
    ]
    late = late_starts(median, [line[0] for line in verdicts])
    n_seeds = min(int(table["seed"].max()) + 1 for table in tables.values())
    above = sum(line[-1] == "yes" for line in verdicts)
    header = ("", "least", "most", "least, shared models", "times as fast to the old best", "above")
    text = f"""# Posterior mass found against time

{len(names)} data sets, {CHAINS} chains of 2 to 80 populations, medians of {
        n_seeds
    } seeds. The mass found is the sum of
evidence times prior over all different models; zero is the largest mass that any run of either search found.
Prior, penalty and transforms are the same, only the search differs. *Old* is the search of commit 82ab669, before
populations were expanded and candidate features scored in batches. Time is processor time of whole fits, one
core, once compiled. Lines are what was reached by a time: a fit of two populations sometimes took
longer than one of five. Where the search starts more than {
        WIDE:g} nats down, the axis is logarithmic below -1.

![Posterior mass found against processor time, old search and new](mass_found.png)

New less old, in nats of log mass, at the times of the old search (interpolated). New is above old
everywhere, to {TOLERANCE:g} nats, on {above} of {
        len(verdicts)
    } data sets. *Shared models* have no function with numbers
of its own inside, such as `sin{{2.3*x}}`: the old search did not know these, and what they add is not counted there.
*Times as fast* compares the times at which each came to the old search's largest mass.

{markdown_table(header, verdicts)}

{
        ""
        if not late
        else f'''The new search begins with a sweep over all simple features, which the old one did for fewer of them, and
gives its first answer later: {late}. `-inf` stands for the time before that answer.'''
    }

* exoplanets: `SemiMajorAxisAU`, transforms `paper-g1`, Zellner and Siow's prior, `multiplicity`.
* spam and breast cancer: the paper's training rows, transforms `smooth`, unit information, `multiplicity`.
* Friedman 1: n = 500, noise 1, transforms `smooth`, Zellner and Siow's prior, `multiplicity`.
* parity of five signs: n = 300, ten columns of ±1, Jeffreys' prior, `bic`.
* Example 6 of the paper: products of up to four of fifty binary covariates, n = 1,000, Jeffreys' prior, `bic`.

## All medians

{markdown_table(("", "search", "populations", "CPU s", "log mass"), lines)}

Every run is in `mass_found_old.csv` and `mass_found_new.csv`. {machine()}
"""
    (RESULTS / "mass_found.md").write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--search", choices=SEARCHES, default="new", help="which file to add to")
    parser.add_argument("--only", choices=DATA, action="append", help="only these data sets")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--populations", type=int, nargs="+", default=POPULATIONS)
    parser.add_argument("--page", action="store_true", help="run nothing, write the page")
    options = parser.parse_args()
    if not options.page:
        warnings.simplefilter("ignore")
        path = RESULTS / f"mass_found_{options.search}.csv"
        measure(path, options.only or DATA, options.populations, options.seeds)
    write_page()


if __name__ == "__main__":
    main()
