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
    """A text that occurs once in a file of src/dbrm, its replacement, and tests that must fail."""

    what: str
    file: str
    text: str
    replacement: str
    tests: tuple[str, ...]


MUTATIONS = [
    Mutation(
        "Gaussian evidence under Jeffreys' prior: n - 1 for n",
        "evidence/coefficient_priors/classical.py",
        "power = 0.5 * shape.n + joint",
        "power = 0.5 * (shape.n - 1) + joint",
        ("unit/evidence/test_gaussian.py",),
    ),
    Mutation(
        "g-prior: sign of the model size in the exponent of 1 + g",
        "evidence/coefficient_priors/fixed_g.py",
        "(half - 0.5 * sizes) * log1p(g)",
        "(half + 0.5 * sizes) * log1p(g)",
        ("unit/evidence/priors/test_reference_packages.py",),
    ),
    Mutation(
        "Laplace approximation without its 2 pi",
        "evidence/coefficient_priors/classical.py",
        '"paper": log(2 * pi)',
        '"paper": 0.0',
        ("unit/evidence/glm/test_references.py",),
    ),
    Mutation(
        "Laplace approximation: sign of the log determinant",
        "_kernels/glm.py",
        "value -= np.log(work.factor[i, i])",
        "value += np.log(work.factor[i, i])",
        ("unit/evidence/glm/test_references.py",),
    ),
    Mutation(
        "complexity of a feature without the one that is added to its width",
        "features/base.py",
        'fill(node, "complexity", width + 1)',
        'fill(node, "complexity", max(width, 1))',
        ("unit/features/test_nodes.py",),
    ),
    Mutation(
        "MJMCMC, add or delete: no Hastings factor",
        "_kernels/mjmcmc.py",
        "return np.log(returning / back) - np.log(weights[j] / forth)",
        "return 0.0",
        ("statistical/test_exact_mjmcmc.py",),
    ),
    Mutation(
        "MJMCMC, large jump: the shakes' ratio without 1 - rho",
        "_kernels/mjmcmc.py",
        "np.log(plan.rate / (1.0 - plan.rate))",
        "np.log(plan.rate)",
        ("statistical/test_exact_mjmcmc.py",),
    ),
    Mutation(
        "filtration deletes the features with high inclusion",
        "evolution/population.py",
        "inclusion < rule.threshold",
        "inclusion >= rule.threshold",
        ("unit/evolution/test_population.py",),
    ),
    Mutation(
        "reversible GMJMCMC: ratio of the shakes inverted",
        "evolution/reversible.py",
        "(len(model ^ returned) - len(flipped))",
        "(len(flipped) - len(model ^ returned))",
        ("statistical/test_exact_reversible.py",),
    ),
    Mutation(
        "pool-Gibbs: models are drawn without the number of windows that hold them",
        "evolution/pool_gibbs.py",
        "target = replace(terms, size=terms.size - windows)",
        "target = terms",
        ("statistical/test_exact_laws.py",),
    ),
    Mutation(
        "merged chains: weights that do not sum to one",
        "posterior/merge.py",
        "probability = np.exp(weighted - log_mass)",
        "probability = np.exp(weighted - weighted.max())",
        ("unit/posterior/test_merge.py",),
    ),
    Mutation(
        "predictive intervals: degrees of freedom that ignore the intercept",
        "evidence/coefficient_priors/classical.py",
        "df = max(shape.n - size - 1, 1.0)",
        "df = max(shape.n - size, 1.0)",
        ("unit/evidence/priors/test_summaries.py",),
    ),
    Mutation(
        "Student mixture: the normal distribution instead of the t",
        "posterior/mixture.py",
        "stdtr(np.minimum(df, 1e12)[:, None], standard)",
        "stdtr(1e12 + 0.0 * df[:, None], standard)",
        ("unit/posterior/test_mixture.py",),
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
    path = copy / "src" / "dbrm" / mutation.file
    source = path.read_text(encoding="utf-8")
    if source.count(mutation.text) != 1:
        sys.exit(f"{mutation.file} should have this once, and has not: {mutation.text}")
    path.write_text(source.replace(mutation.text, mutation.replacement), encoding="utf-8")
    # Numba looks for changes in the file of a function only, not in the functions it calls.
    compiled = mutation.file.startswith("_kernels")
    code = run(copy, () if everything else mutation.tests, new_cache=compiled)
    path.write_text(source, encoding="utf-8")
    print(f"{'caught' if code == 1 else 'MISSED'}  {mutation.what}", flush=True)
    return code == 1


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
