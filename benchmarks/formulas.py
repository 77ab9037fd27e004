"""How many known formulas are found again, beside gplearn and pyoperon at equal time?

Run ``python benchmarks/formulas.py``; it writes ``docs/results/formulas.md``, ``formulas.csv``
and ``formulas.png``. ``--methods``, ``--noise`` and ``--names`` run a part and leave the other
rows as they are; ``--page`` only writes the page again. Every method runs in this one process on one thread, and seconds are
processor time.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import argparse  # noqa: E402
import warnings  # noqa: E402
from pathlib import Path  # noqa: E402
from time import perf_counter, process_time  # noqa: E402

import numpy as np  # noqa: E402
from formulas_page import write_page  # noqa: E402
from known_formulas import FORMULAS, HELD_OUT, ROWS  # noqa: E402
from page import RESULTS, kept, machine, read_rows, write_rows  # noqa: E402
from scipy.optimize import least_squares  # noqa: E402
from symbolic_regressors import METHODS  # noqa: E402

SECONDS, NOISE = 3.0, (0.0, 0.01, 0.1)
# Fresh points inside and outside; largest distance from the law with other constants, as a share
# of the signal; smallest error allowed, likewise; and errors allowed, in standard errors.
FRESH, SAME, ROUNDING, LIMIT = 500, 3e-6, 1e-4, 3.0


class Trial:
    """One formula at one level of noise: training data, fresh points, what error is allowed."""

    def __init__(self, formula, noise):
        self.formula, self.noise = formula, noise
        rng = np.random.default_rng([(*FORMULAS, *HELD_OUT).index(formula), 7])
        self.x = formula.draw(rng, ROWS)
        signal = formula(self.x)
        spread = signal.std()
        self.y = signal + noise * spread * rng.standard_normal(ROWS)
        self.points = np.vstack([formula.draw(rng, FRESH), formula.draw_outside(rng, FRESH)])
        self.truth = formula(self.points)
        self.size = np.maximum(spread, np.abs(self.truth))
        # Covariance of the estimates of the law's own constants, were its form known.
        slopes = self._slopes(self.x)
        covariance = (noise * spread) ** 2 * np.linalg.pinv(slopes.T @ slopes)
        slopes = self._slopes(self.points)
        variance = np.einsum("ij,jk,ik->i", slopes, covariance, slopes)
        self.allowed = np.sqrt(variance + (ROUNDING * self.size) ** 2)

    def _slopes(self, x):
        """Derivatives of the law by its constants and the intercept."""
        constants = np.array(self.formula.constants, dtype=float)
        columns = [np.ones(len(x))]
        for j, value in enumerate(constants):
            step = 1e-5 * max(1.0, abs(value))
            ends = [constants.copy(), constants.copy()]
            ends[0][j] += step
            ends[1][j] -= step
            columns.append((self.formula(x, ends[0]) - self.formula(x, ends[1])) / (2 * step))
        return np.nan_to_num(np.column_stack(columns))

    def passes(self, predict):
        """Whether a formula is the law up to constants, and these are right up to their error."""
        with np.errstate(all="ignore"):
            values = np.asarray(predict(self.points), dtype=float)
        if not np.isfinite(values).all():
            return False
        error = (values - self.truth) / self.allowed
        near = [np.sqrt(np.mean(part**2)) <= LIMIT for part in np.split(error, [FRESH])]
        return all(near) and self._distance(values) <= SAME

    def _distance(self, values):
        """Root mean square distance to the nearest law of the same form."""

        def distance(constants):
            law = constants[0] + self.formula(self.points, constants[1:])
            return np.nan_to_num((law - values) / self.size, nan=1e3, posinf=1e3, neginf=-1e3)

        start = np.array([0.0, *self.formula.constants], dtype=float)
        found = least_squares(distance, start, x_scale="jac", xtol=1e-12, ftol=1e-12, gtol=1e-12)
        return np.sqrt(np.mean(found.fun**2))


def run(formula, noise, method, seconds):
    trial = Trial(formula, noise)
    started, wall_started = process_time(), perf_counter()
    found = METHODS[method](trial.x, trial.y, seconds)
    spent, wall = process_time() - started, perf_counter() - wall_started
    mass = sum(weight for weight, predict in found.others if trial.passes(predict))
    return {
        "formula": formula.name,
        "noise": noise,
        "method": method,
        "exact": int(trial.passes(found.predict)),
        "probability": f"{mass:.4f}" if method == "dbrm" else "",
        "on_front": int(any(trial.passes(predict) for _, predict in found.others)),
        "seconds": f"{spent:.2f}",
        "wall_seconds": f"{wall:.2f}",
        "found": found.text,
    }


def run_all(options):
    """Run dbrm first: others never get less time than it took."""
    METHODS["dbrm"](*(lambda trial: (trial.x, trial.y))(Trial(FORMULAS[0], 0.1)), 1.0)
    rows = {}
    if Path(options.out).exists():
        rows = {
            (row["formula"], row["noise"], row["method"]): row for row in read_rows(options.out)
        }
    for noise in options.noise:
        for formula in (*FORMULAS, *HELD_OUT):
            seconds = options.seconds
            for method in options.methods if formula.name in options.names else ():
                row = run(formula, noise, method, seconds)
                rows[formula.name, str(noise), method] = row
                print(*list(row.values())[:-1], row["found"][:150], flush=True)
                seconds = max(seconds, float(row["seconds"])) if method == "dbrm" else seconds
                write_rows(options.out, list(rows.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--noise", nargs="+", type=float, default=list(NOISE))
    names = [formula.name for formula in (*FORMULAS, *HELD_OUT)]
    parser.add_argument("--names", nargs="+", default=names)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--out", default=str(RESULTS / "formulas.csv"))
    parser.add_argument("--page", action="store_true", help="write the page from the kept rows")
    options = parser.parse_args()
    if not options.page:
        warnings.simplefilter("ignore")
        run_all(options)
    if options.out == parser.get_default("out"):
        before = kept().get("formulas", {}).get("measured")
        measured = before if options.page and before else machine()
        write_page(read_rows(options.out), options.seconds, measured)


if __name__ == "__main__":
    main()
