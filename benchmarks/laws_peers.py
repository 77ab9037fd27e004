"""Do gplearn and pyoperon find Kepler's law and the mass law in five seconds?

Run ``python benchmarks/laws_peers.py``; the numbers stand beside those of ``laws.py`` on the page of
all benchmarks. The data are downloaded once, or read from the folder named by ``DBRM_DATA``.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import argparse  # noqa: E402
import warnings  # noqa: E402

import numpy as np  # noqa: E402
import symbolic_regressors  # noqa: E402
from laws import LAWS  # noqa: E402
from page import keep  # noqa: E402

import dbrm  # noqa: E402

# Processor seconds of each run, restarts included; least squared correlation with the law (the
# period alone, to the power 2/3, reaches 0.9997).
SECONDS, CLOSE = 5.0, 0.9999
METHODS = ("gplearn", "pyoperon")


def has_law(predict, table, features):
    """Whether predictions follow one of the laws where all columns are shuffled by themselves."""
    rng = np.random.default_rng(1)
    mixed = table.apply(lambda column: rng.permutation(column.to_numpy()))
    with np.errstate(all="ignore"):
        values = np.asarray(predict(mixed.to_numpy()), dtype=float)
    laws = [dbrm.parse_feature(feature).evaluate(mixed) for feature in features]
    if not np.isfinite(values).all() or values.std() == 0:
        return False
    return max(np.corrcoef(values, law)[0, 1] ** 2 for law in laws) > CLOSE


def run(law, method, seed):
    response, features = LAWS[law]
    table = dbrm.datasets.load_exoplanets()
    y = table.pop(response)
    symbolic_regressors.SEED = 1000 * seed + 1
    x = np.ascontiguousarray(table.to_numpy(float))
    found = symbolic_regressors.METHODS[method](x, np.array(y, dtype=float), SECONDS)
    return has_law(found.predict, table, features)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    numbers = {"runs": options.seeds, "seconds": SECONDS}
    for law in LAWS:
        numbers[law] = {
            method: sum(int(run(law, method, seed)) for seed in range(options.seeds))
            for method in METHODS
        }
        print(law, numbers[law], flush=True)
    keep("laws_peers", numbers)


if __name__ == "__main__":
    main()
