"""The page of all benchmarks: each goal beside what was measured, from the kept numbers."""

from collections.abc import Iterator

from page import RESULTS, kept, markdown_table, read_rows

__all__ = ["write_page"]

# What, goal, measured, whether it holds, and the ratio to a peer in the same run.
Line = tuple[str, str, str, bool, str]


def _gaussian(numbers) -> Iterator[Line]:
    small, large = numbers["jeffreys 1000"], numbers["jeffreys 1000000"]
    rate = min(small["random"], large["random"])
    yield (
        "Gaussian evaluations in a population of 20, n = 10³ and n = 10⁶",
        "≥ 1,000,000 /s at both",
        f"{small['random']:,.0f} /s and {large['random']:,.0f} /s",
        rate >= 1e6,
        f"{small['random'] / small['numpy']:,.0f} × and {large['random'] / large['numpy']:,.0f} × "
        "NumPy's `lstsq`",
    )
    yield (
        "the same cost at n = 10⁶ as at n = 10³",
        "at most 10 % more",
        f"{100 * (small['random'] / large['random'] - 1):+.0f} %",
        small["random"] / large["random"] - 1 <= 0.10,
        "",
    )
    yield (
        "enumeration of 2²⁰ Gaussian models",
        "≤ 0.5 s",
        f"{large['enumeration']:.3f} s",
        large["enumeration"] <= 0.5,
        f"{2**20 / small['enumeration'] / small['numpy']:,.0f} × NumPy's `lstsq` at n = 10³",
    )


def _glm(numbers) -> Iterator[Line]:
    found = numbers["binomial"]
    yield (
        "logistic evaluations, n = 1,536, 20 features",
        "≥ 3,000 /s",
        f"{found['jeffreys']:,.0f} /s",
        found["jeffreys"] >= 3000,
        f"{found['jeffreys'] / found['statsmodels']:.0f} × statsmodels, "
        f"{found['jeffreys'] / found['sklearn']:.0f} × scikit-learn",
    )


def _laws(numbers) -> Iterator[Line]:
    """From the runs kept in ``laws.csv``, default effort and preset."""
    rows = [row for row in read_rows(RESULTS / "laws.csv") if row["preset"] == "default"]
    peers = numbers.get("laws_peers")
    for law, name in (("kepler", "Kepler's law"), ("mass", "the mass law")):
        runs = [row for row in rows if (row["law"], row["transforms"]) == (law, "paper-g1")]
        found = sum(max(map(float, row["inclusion"].split())) > 0.25 for row in runs)
        longest = max(float(row["cpu_seconds"]) for row in runs)
        others = (
            [f"{m} {count} of {peers['runs']}" for m, count in peers[law].items()] if peers else []
        )
        yield (
            f"{name}, one run with default effort",
            "≥ 99 of 100 seeds, ≤ 5 s each",
            f"{found} of {len(runs)}, longest {longest:.1f} s of processor time",
            found >= 0.99 * len(runs) and longest <= 5,
            f"in {peers['seconds']:g} s: " + ", ".join(others) if others else "",
        )


def _latent(numbers) -> Iterator[Line]:
    yield (
        "evaluation with a latent random walk, Poisson, n = 500",
        "≤ 3 ms",
        f"{1e3 * numbers['cold']:.2f} ms; hyperparameters integrated {1e3 * numbers['integrated']:.1f} ms",
        numbers["cold"] <= 3e-3,
        f"{numbers['dense'] / numbers['cold']:,.0f} × dense NumPy",
    )


def _latency(numbers) -> Iterator[Line]:
    ours = numbers["import"]["dbrm"]
    yield (
        "`import dbrm`",
        "≤ 0.6 s",
        f"{ours:.2f} s",
        ours <= 0.6,
        f"{numbers['import']['statsmodels.api'] / ours:.1f} × as fast as statsmodels",
    )
    first = {family: numbers[family]["first"] for family in ("gaussian", "binomial")}
    later = {family: numbers[family]["later"] for family in ("gaussian", "binomial")}
    for what, times, goal in (
        ("first fit after installation", first, 30),
        ("later first fit", later, 2),
    ):
        yield (
            f"{what}, Gaussian / logistic",
            f"≤ {goal} s",
            f"{times['gaussian']:.1f} s / {times['binomial']:.1f} s",
            max(times.values()) <= goal,
            "",
        )


def _formulas(numbers) -> Iterator[Line]:
    for group, (exact, total) in numbers["shares"].items():
        half, budget, noise, method = group.split(", ", 3)
        if half != "confirming" or method != "dbrm":
            continue
        goal = numbers["goals"].get(f"{budget}, {noise}")
        yield (
            f"known laws found exactly in {budget} s, noise {100 * float(noise):g} %",
            "(no goal)" if goal is None else f"{100 * goal:.0f} %",
            f"{exact} of {total}",
            None if goal is None else exact >= goal * total,
            "",
        )


LINES = {
    "gaussian_evaluations": _gaussian,
    "glm_evaluations": _glm,
    "latent_evaluations": _latent,
    "latency": _latency,
    "formulas": _formulas,
}


def _peers(numbers) -> str:
    rows = [
        (family, *(f"{rates['dbrm'] / rates[peer]:,.0f}" for peer in list(rates)[1:]))
        for family, rates in numbers["evaluation"].items()
    ]
    header = ("one fit, times as fast as", "statsmodels", "scikit-learn", "glum")
    return markdown_table(header, rows) + "\n\nMore, with accuracy, in [](peers.md)."


def _scaling(numbers) -> str:
    rows = [
        (
            f"{what}: {row[what]:,}",
            f"{row['seconds']:.1f}",
            f"{row['megabytes']:,.0f}",
            f"{row['table']:,.1f}",
            f"{row['seconds'] / row['lstsq']:,.0f}",
            f"{row['found']:.2f}",
        )
        for what in ("rows", "columns", "chains")
        for row in numbers[what]
    ]
    header = ("", "seconds", "peak MB", "table MB", "time / `lstsq`", "inclusion of the truth")
    return (
        "A fit with 20 populations; 1,000 rows (200 where columns vary), 10 columns and 2 chains\n"
        "where not said otherwise; one process, peak memory with interpreter and libraries.\n\n"
        + markdown_table(header, rows)
    )


def _rest(numbers) -> str:
    lines = []
    if "mjmcmc_steps" in numbers:
        found = numbers["mjmcmc_steps"]
        lines.append(
            f"* MJMCMC: {found['steps']:,.0f} steps per second in a Gaussian population of 20; beside "
            f"logistic evaluations the walk itself takes {100 * found['overhead']:.1f} % of the time."
        )
    if "chains" in numbers:
        for case, seconds in numbers["chains"]["cores"].items():
            ratio = seconds["one process"] / seconds["two processes"]
            lines.append(f"* 16 chains on two cores: {ratio:.2f} × as fast as on one ({case}).")
        held = numbers["chains"]["memory"]
        lines.append(
            f"* {held['visited']:,} models visited, {held['kept']:,} kept: "
            f"{held['megabytes']:.0f} MB beyond what was in use."
        )
    if "example7" in numbers:
        seconds = numbers["example7"]["seconds"]
        lines.append(f"* Example 7 of the paper, features and latent effects: {seconds:.0f} s.")
    return "\n".join(lines)


def write_page():
    """Write the page; returns where it is."""
    numbers = kept()
    found = [line for name in LINES if name in numbers for line in LINES[name](numbers[name])]
    if (RESULTS / "laws.csv").exists():
        found[4:4] = _laws(numbers)
    rows = [
        (what, goal, measured, ("yes" if holds else "**no**") if goal != "(no goal)" else "", ratio)
        for what, goal, measured, holds, ratio in found
    ]
    header = ("", "goal", "measured", "holds", "beside others in the same run")
    text = [
        "# All benchmarks",
        "",
        "Written by `python -m benchmarks` from the numbers that each benchmark kept; "
        "[how to run them](../how-to/benchmarks.md). Times are of one core, once compiled, unless "
        "they say otherwise.",
        "",
        markdown_table(header, rows),
    ]
    for name, title, part in (
        ("peers", "Evaluations beside other packages", _peers),
        ("scaling", "Growth with rows, columns and chains", _scaling),
    ):
        if name in numbers:
            text += ["", f"## {title}", "", part(numbers[name])]
    rest = _rest(numbers)
    if (RESULTS / "tall_data.md").exists():
        rest += "\n* Very many rows: [](tall_data.md)."
    if rest:
        text += ["", "## Further", "", rest]
    text += ["", "## When and where", ""]
    text += [f"* {name}: {values['measured']}" for name, values in numbers.items()]
    text += ["* laws: as told on [their page](laws.md)."]
    path = RESULTS / "benchmarks.md"
    path.write_text("\n".join([*text, ""]), encoding="utf-8")
    return path
