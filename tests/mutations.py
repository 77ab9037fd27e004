"""Mistakes planted in formulas, one at a time: does the default suite catch each of them?

``python tests/mutations.py`` (or ``.ci/mutations``, with an environment of its own) works on a
temporary copy of the repository. For every mutation it runs the test files that are about the
mutated formula; a mutation that they let pass is printed as MISSED, and the exit code is 1.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Mutation:
    """A text that occurs once in src/dbrm, its replacement, and tests that must fail."""

    what: str
    text: str
    replacement: str
    tests: tuple[str, ...]


MUTATIONS = [
    Mutation(
        "Gaussian evidence under Jeffreys' prior: n - 1 for n",
        "power = 0.5 * shape.n + joint",
        "power = 0.5 * (shape.n - 1) + joint",
        ("unit/evidence/test_gaussian.py",),
    ),
    Mutation(
        "g-prior: sign of the model size in the exponent of 1 + g",
        "(half - 0.5 * sizes) * log1p(g)",
        "(half + 0.5 * sizes) * log1p(g)",
        ("unit/evidence/priors/test_reference_packages.py",),
    ),
    Mutation(
        "Laplace approximation without its 2 pi",
        '"paper": log(2 * pi)',
        '"paper": 0.0',
        ("unit/evidence/glm/test_accuracy.py",),
    ),
    Mutation(
        "Laplace approximation: sign of the log determinant",
        "value -= np.log(work.factor[i, i])",
        "value += np.log(work.factor[i, i])",
        ("unit/evidence/glm/test_references.py",),
    ),
    Mutation(
        "complexity of a feature without the one that is added to its width",
        'fill(node, "complexity", width + 1)',
        'fill(node, "complexity", max(width, 1))',
        ("unit/features/test_nodes.py",),
    ),
    Mutation(
        "MJMCMC, add or delete: no Hastings factor",
        "return np.log(returning / back) - np.log(weights[j] / forth)",
        "return 0.0",
        ("statistical/test_exact_mjmcmc.py",),
    ),
    Mutation(
        "MJMCMC, large jump: the shakes' ratio without 1 - rho",
        "np.log(plan.rate / (1.0 - plan.rate))",
        "np.log(plan.rate)",
        ("statistical/test_exact_mjmcmc.py",),
    ),
    Mutation(
        "filtration deletes the features with high inclusion",
        "inclusion < rule.threshold",
        "inclusion >= rule.threshold",
        ("unit/evolution/test_population.py",),
    ),
    Mutation(
        "reversible GMJMCMC: ratio of the shakes inverted",
        "(len(model ^ returned) - len(flipped))",
        "(len(flipped) - len(model ^ returned))",
        ("statistical/test_exact_reversible.py",),
    ),
    Mutation(
        "pool-Gibbs: models are drawn without the number of windows that hold them",
        "target = replace(terms, size=terms.size - windows)",
        "target = terms",
        ("statistical/test_flat_likelihood.py",),
    ),
    Mutation(
        "merged chains: weights that do not sum to one",
        "probability = np.exp(weighted - log_mass)",
        "probability = np.exp(weighted - weighted.max())",
        ("unit/posterior/test_merge.py",),
    ),
    Mutation(
        "predictive intervals: degrees of freedom that ignore the intercept",
        "df = max(shape.n - size - 1, 1.0)",
        "df = max(shape.n - size, 1.0)",
        ("unit/evidence/priors/test_summaries.py",),
    ),
    Mutation(
        "Student mixture: the normal distribution instead of the t",
        "stdtr(np.minimum(df, 1e12)[:, None], standard)",
        "stdtr(1e12 + 0.0 * df[:, None], standard)",
        ("unit/posterior/test_mixture.py",),
    ),
    Mutation(
        "Gain of a newcomer: what leaves with the feature that it replaces",
        "_positive(1.0 + (lost - explained) / total)",
        "_positive(1.0 - explained / total)",
        ("unit/evolution/newcomers/test_screen.py",),
    ),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("only", nargs="*", help="part of what a mutation is about")
    parser.add_argument("--all", action="store_true", help="run the whole default suite for each")
    options = parser.parse_args()
    wanted = [m for m in MUTATIONS if all(word in m.what for word in options.only)]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "dbrm"
        ignored = shutil.ignore_patterns(".git", "__pycache__", "docs", "*.egg-info")
        shutil.copytree(ROOT, copy, ignore=ignored)
        files = sorted({file for mutation in wanted for file in mutation.tests})
        if run(copy, files) != 0:
            print("The tests fail without any mutation.")
            return 2
        missed = [mutation for mutation in wanted if not is_caught(mutation, copy, options.all)]
    print(f"{len(wanted) - len(missed)} of {len(wanted)} mutations caught")
    return int(bool(missed))


def is_caught(mutation: Mutation, copy: Path, everything: bool) -> bool:
    """Plant one mistake, run the tests, and take it out again."""
    sources = {path: path.read_text("utf-8") for path in (copy / "src" / "dbrm").rglob("*.py")}
    if sum(source.count(mutation.text) for source in sources.values()) != 1:
        sys.exit(f"This should occur once in src/dbrm, and does not: {mutation.text}")
    path = next(path for path, source in sources.items() if mutation.text in source)
    source = sources[path]
    path.write_text(source.replace(mutation.text, mutation.replacement), encoding="utf-8")
    # Numba looks for changes in the file of a function only, not in the functions it calls.
    compiled = path.parent.name == "_kernels"
    code = run(copy, () if everything else mutation.tests, new_cache=compiled)
    path.write_text(source, encoding="utf-8")
    if code > 1:
        sys.exit(f"pytest ended with code {code}, and tested nothing: {mutation.what}")
    print(f"{'caught' if code else 'MISSED'}  {mutation.what}", flush=True)
    return bool(code)


def run(copy: Path, files, *, new_cache: bool = False) -> int:
    """Run the default suite, or these files of it, until the first failure; the exit code."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
        environment["NUMBA_CACHE_DIR"] = cache if new_cache else str(copy / "compiled")
        options = ["-q", "-x", "-p", "no:cacheprovider", *(["-n", "0"] if files else [])]
        paths = [f"tests/{file}" for file in files]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *paths],
            cwd=copy,
            env=environment,
            stdout=subprocess.DEVNULL,
            check=False,
        )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
