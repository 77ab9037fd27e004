"""How many known laws does a plain ``dbrm.fit`` find again, beside other programs at equal time?

Run ``python benchmarks/formulas.py``; it appends to ``docs/results/formulas.csv``, leaves what is
there, and writes ``docs/results/formulas.md``. ``--half``, ``--noise``, ``--budget``, ``--methods``,
``--only`` and ``--every`` choose a part, ``--minutes`` ends the program, ``--page`` only writes the
page. ``--again`` measures what is there anew; rows of dbrm from before there was a claim are always
measured anew. Every method runs in this one process on one thread, and
seconds are processor time.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import argparse  # noqa: E402
import warnings  # noqa: E402
from hashlib import sha256  # noqa: E402
from pathlib import Path  # noqa: E402
from time import monotonic, process_time  # noqa: E402

import numpy as np  # noqa: E402
from formulas_page import write_page  # noqa: E402
from known_formulas import FORMULAS, HALVES, ROWS  # noqa: E402
from page import RESULTS, kept, machine, read_rows, write_rows  # noqa: E402
from scipy.optimize import least_squares  # noqa: E402
from symbolic_regressors import METHODS  # noqa: E402

NOISE, BUDGETS = (0.0, 0.001, 0.01, 0.1), (3.0, 20.0, 60.0)
# Fresh points inside and outside; the share of them, near poles, that does not count; smallest error
# allowed, as a share of the signal; errors allowed, in standard errors; and smallest share of a
# constant that is not zero.
FRESH, NEAR_POLES, ROUNDING, LIMIT, PRESENT = 500, 0.02, 1e-4, 3.0, 0.01
# Largest distance from the law with other constants, as a share of its weakest term, by the type
# of number a method predicts in: of some 40 laws that pyoperon had in single precision one was 1.4e-5 away,
# the others at most 1.1e-5, and what was no law at least 1.6e-4.
SAME = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 2e-5}
# A fresh point counts if the law is at most so many times as large there as in the training rows.
_LARGEST = 3.0


class Trial:
    """One law at one level of noise: training data, fresh points, what error is allowed."""

    def __init__(self, formula, noise):
        self.formula, self.noise = formula, noise
        digest = sha256(formula.name.encode()).digest()
        rng = np.random.default_rng(int.from_bytes(digest[:4], "big"))
        self.x = formula.draw(rng, ROWS)
        signal = formula(self.x)
        spread = signal.std()
        self.y = signal + noise * spread * rng.standard_normal(ROWS)
        parts = [formula.draw(rng, FRESH), formula.draw_outside(rng, FRESH)]
        most = _LARGEST * np.abs(signal).max()
        parts = [rows[np.abs(formula(rows)) <= most] for rows in parts]
        self.n_inside, self.points = len(parts[0]), np.vstack(parts)
        self.truth = formula(self.points)
        self.size = np.maximum(spread, np.abs(self.truth))
        # Covariance of the estimates of the law's own constants, were its form known.
        slopes = self._slopes(self.x)
        covariance = (noise * spread) ** 2 * np.linalg.pinv(slopes.T @ slopes)
        slopes = self._slopes(self.points)
        terms = np.std(slopes * formula.constants, axis=0)
        self.weakest = min(spread, terms[terms > 1e-6 * spread].min())
        variance = np.einsum("ij,jk,ik->i", slopes, covariance, slopes)
        self.allowed = np.sqrt(variance + (ROUNDING * self.size) ** 2)

    def _slopes(self, x):
        """Derivatives of the law by its constants."""
        constants, columns = self.formula.constants, []
        for j, value in enumerate(constants):
            step = 1e-5 * max(1.0, abs(value))
            ends = [constants.copy(), constants.copy()]
            ends[0][j] += step
            ends[1][j] -= step
            values = [self.formula.with_constants(x, end) for end in ends]
            columns.append((values[0] - values[1]) / (2 * step))
        return np.nan_to_num(np.column_stack(columns))

    def gain(self, predict):
        """Nats by which the law with its true constants is more likely than a formula."""
        with np.errstate(all="ignore"):
            left = np.sum((np.asarray(predict(self.x), dtype=float) - self.y) ** 2)
        law = np.sum((self.formula(self.x) - self.y) ** 2)
        return 0.5 * self.y.size * np.log(left / law) if law > 0 else np.inf

    def passes(self, predict):
        """Whether a formula is the law up to constants, and these are right up to their error."""
        with np.errstate(all="ignore"):
            values = np.asarray(predict(self.points))
            same, values = SAME[values.dtype], values.astype(float)
            error = np.nan_to_num(np.abs(values - self.truth) / self.allowed, nan=np.inf)
        # The worst points may be near poles.
        sound = error <= np.quantile(error, 1.0 - NEAR_POLES)
        inside = np.arange(error.size) < self.n_inside
        for part in (sound & inside, sound & ~inside):
            if not np.sqrt(np.mean(error[part] ** 2)) <= LIMIT:
                return False
        return self._distance(values, sound) <= same

    def _distance(self, values, sound):
        """How far these values are from the law with some constants; infinity where one is zero."""
        points, constants = self.points[sound], self.formula.constants
        size = self.weakest * self.size[sound] / self.size.min()

        def distance(shares):
            law = self.formula.with_constants(points, constants + shares * scale)
            gap = (law - values[sound]) / size
            return np.nan_to_num(gap, nan=1e3, posinf=1e3, neginf=-1e3)

        scale = np.where(constants == 0.0, 1.0, np.abs(constants))
        limits = {"xtol": 1e-13, "ftol": 1e-13, "gtol": 1e-13, "max_nfev": 300}
        found = least_squares(distance, np.zeros(constants.size), x_scale="jac", **limits)
        fitted = constants + found.x * scale
        present = np.abs(fitted[constants != 0.0]) > PRESENT * np.abs(constants[constants != 0.0])
        return np.sqrt(np.mean(found.fun**2)) if present.all() else np.inf


def run(formula, noise, method, budget):
    """One law, found or not: a row of the file."""
    trial = Trial(formula, noise)
    started = process_time()
    found = METHODS[method](trial.x, trial.y, budget)
    spent = process_time() - started
    right = [trial.passes(predict) for _, predict in found.others]
    exact = trial.passes(found.predict)
    mass = sum(
        weight for (weight, _), is_right in zip(found.others, right, strict=True) if is_right
    )
    return {
        "formula": formula.name,
        "half": formula.half,
        "noise": f"{noise:g}",
        "budget": f"{budget:g}",
        "method": method,
        "exact": int(exact),
        "among": int(exact or any(right)),
        "probability": f"{mass:.4f}" if method == "dbrm" else "",
        "share": f"{found.others[0][0]:.4f}" if method == "dbrm" else "",
        "lack_of_fit": "" if found.lack_of_fit is None else f"{found.lack_of_fit:.4f}",
        "claim": "" if found.claim is None else f"{found.claim:.4f}",
        "gain": "" if exact else f"{trial.gain(found.predict):.1f}",
        "seconds": f"{spent:.2f}",
        "found": found.text,
    }


def chosen(options):
    """The laws that are asked for, spread over the collections."""
    laws = [f for f in FORMULAS if f.half in options.half]
    if options.only:
        laws = [f for f in laws if any(text in f.name for text in options.only)]
    # In the order of their hash: any first part is a sample of all collections.
    laws.sort(key=lambda f: sha256(f.name.encode()).hexdigest())
    return laws[:: options.every]


def run_all(options):
    rows = {}
    if Path(options.out).exists():
        rows = {key(row): row for row in read_rows(options.out)}
    known = {
        name
        for name, row in rows.items()
        if (row["claim"] or row["method"] != "dbrm")
        and not (options.again and wanted(row, options))
    }
    ends = monotonic() + 60.0 * options.minutes
    # Once, so that nothing is compiled while seconds are counted.
    example = Trial(next(f for f in FORMULAS if f.half == "choosing"), 0.1)
    for method in options.methods:
        METHODS[method](example.x, example.y, 1.0)
    for budget in options.budget:
        for noise in options.noise:
            for formula in chosen(options):
                for method in options.methods:
                    if (formula.name, f"{noise:g}", f"{budget:g}", method) in known:
                        continue
                    if monotonic() > ends:
                        return
                    row = run(formula, noise, method, budget)
                    rows[key(row)] = row
                    print(*list(row.values())[:-1], row["found"][:200], flush=True)
                    write_rows(options.out, list(rows.values()))


def key(row):
    return row["formula"], row["noise"], row["budget"], row["method"]


def wanted(row, options):
    return (
        row["method"] in options.methods
        and float(row["noise"]) in options.noise
        and float(row["budget"]) in options.budget
        and row["formula"] in {f.name for f in chosen(options)}
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", nargs="+", choices=HALVES, default=["confirming"])
    parser.add_argument("--noise", nargs="+", type=float, default=list(NOISE))
    parser.add_argument("--budget", nargs="+", type=float, default=list(BUDGETS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--only", nargs="+", help="parts of names")
    parser.add_argument("--every", type=int, default=1, help="every so many laws, by their hash")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--out", default=str(RESULTS / "formulas.csv"))
    parser.add_argument("--page", action="store_true", help="write the page from the kept rows")
    options = parser.parse_args()
    if not options.page:
        warnings.simplefilter("ignore")
        run_all(options)
    if options.out == parser.get_default("out"):
        before = kept().get("formulas", {}).get("measured")
        measured = before if options.page and before else machine()
        write_page(read_rows(options.out), measured)


if __name__ == "__main__":
    main()
