"""What the file of a posterior holds: every field and array with its type, range and length.

`dbrm.posterior.storage` writes and reads such files, and checks what parts mean together.
"""

from dbrm.data.recipe import RECIPE
from dbrm.data.schema import (
    FINITE,
    AnyOf,
    ArrayOf,
    ListOf,
    MappingOf,
    Nullable,
    Real,
    Record,
    Schema,
    Text,
    Whole,
)
from dbrm.posterior.joint_storage import HAZARD_ARRAYS, joint_arrays
from dbrm.posterior.latent_storage import EFFECT, latent_arrays

__all__ = ["POSTERIOR"]

_TEXTS = ListOf(Text())
_COUNTS = MappingOf(Whole())
# The largest number whose square is finite: variances and leverages are squares.
_LARGEST = 1e150
# Sums of probabilities are one up to rounding.
_ONE = 1.0 + 1e-6

_RECORD = Record(
    {
        "response": Text(),
        "algorithm": Text(),
        "uncertainty": Text(("laplace", "plugin")),
        "n_chains": Whole(),
        "n_evaluated": Whole(),
        "seconds": Real(low=0.0),
        "seed": Nullable(Whole(high=2**1024)),
        "status_counts": MappingOf(Whole(), keys=Whole(high=255)),
        "rejections": _COUNTS,
        "moves": MappingOf(ListOf(Whole(), 2)),
        "chain_log_mass": Nullable(_TEXTS),
        "settings": MappingOf(Text()),
        "formula": Text(),
        "given": _TEXTS,
        "n_rows": Whole(),
        "version": Text(),
        "n_finished": Nullable(Whole()),
        "failures": MappingOf(Text(), keys=Whole()),
        "ended": Text(),
        "extrapolate": Text(("hold", "follow")),
        "sweep": Text(),
        "strata": _TEXTS,
        "classes": ListOf(AnyOf((Text(), Real()))),
    },
    optional=frozenset(
        {
            "settings",
            "formula",
            "given",
            "n_rows",
            "version",
            "n_finished",
            "failures",
            "ended",
            "extrapolate",
            "sweep",
            "strata",
            "classes",
        }
    ),
)

_PATH_STEP = Record(
    {
        "complexity": Whole(),
        "size": Whole(),
        "formula": Text(),
        "features": _TEXTS,
        "r2": Nullable(Real(high=1.0)),
        "log_evidence": Real(),
        "probability": Real(low=0.0, high=1.0),
        "coefficients": ListOf(Real()),
    },
    optional=frozenset({"coefficients"}),
)

_CONTENT = Record(
    {
        "format": Whole(1),
        "recipe": RECIPE,
        "record": _RECORD,
        "names": ListOf(Text(), "names"),
        "features": ListOf(Text(), "features"),
        "aliases": MappingOf(_TEXTS, keys=Whole(below="features")),
        "always": _TEXTS,
        "transforms": _TEXTS,
        "law": Nullable(ListOf(Text(), 2)),
        "n_refined": Whole(),
        "n_rows": Whole(1),
        "effects": ListOf(EFFECT, "effects"),
        "reports": ListOf(ListOf(Whole(below="features")), 2),
        "report_effects": ListOf(ListOf(Whole(below="effects")), 2),
        "unexplored": Nullable(Real()),
        "disagreements": ListOf(Whole(below="features")),
        "latent_disagreements": ListOf(Whole(below="effects")),
        "draws": ListOf(Text(), "draws"),
        "ranges": ListOf(Text(), "ranges"),
        "candidate": Nullable(Record({"feature": Text(), "gain": Real()})),
        "path": ListOf(_PATH_STEP),
        "lack_of_fit": Nullable(Real(low=0.0, high=1.0)),
        "remainder": ListOf(Text(), "remainder_features"),
        "unvisited": Real(low=0.0, high=1.0),
    },
    optional=frozenset({"path", "lack_of_fit", "remainder", "unvisited"}),
)


def _fits(name: str, count: str | int) -> dict[str, ArrayOf]:
    return {
        f"{name}_sizes": ArrayOf("<i8", (count,), low=1, high=2**20),
        f"{name}_numbers": ArrayOf("<f8", (count, 4), nan=True),
        f"{name}_statuses": ArrayOf("|u1", (count,)),
        f"{name}_coefficients": ArrayOf("<f8", (f"{name}_coefficients",), low=-FINITE, high=FINITE),
        # Of columns in tiny units they overflow.
        f"{name}_covariances": ArrayOf("<f8", (None,), nan=True),
    }


_REMAINDER = {
    **_fits("remainder", "remainder"),
    "remainder_probability": ArrayOf("<f8", ("remainder",), low=0.0, high=_ONE),
    "remainder_members": ArrayOf("<i8", (None,), low=0, below="remainder_features"),
    "remainder_fitted": ArrayOf("<f8", ("remainder", 2)),
    "remainder_shifts": ArrayOf("<f8", ("remainder_coefficients",), low=-FINITE, high=FINITE),
    "remainder_squares": ArrayOf("|u1", ("remainder",), high=1),
    "remainder_origin": ArrayOf("<f8", (1,), low=0.0, high=FINITE),
}
_JOINT = {
    **joint_arrays("averaged", "averaged"),
    **joint_arrays("reports", 2),
    **joint_arrays("remainder", "remainder"),
    **HAZARD_ARRAYS,
}

POSTERIOR = Schema(
    _CONTENT,
    {
        "models_keys": ArrayOf("<u8", ("models", 2)),
        "models_starts": ArrayOf("<i8", ("models+1",), low=0),
        "models_members": ArrayOf("<i4", (None,), low=0, below="features"),
        "models_log_evidence": ArrayOf("<f8", ("models",), high=_LARGEST),
        "models_log_prior": ArrayOf("<f8", ("models",), high=_LARGEST),
        "models_statuses": ArrayOf("|u1", ("models",)),
        "models_latent": ArrayOf("<u8", ("models",)),
        "probability": ArrayOf("<f8", ("models",), low=0.0, high=_ONE),
        "chain_log_mass": ArrayOf("<f8", (None,), nan=True),
        "mass": ArrayOf("<f8", (2,), high=_LARGEST),
        "visited": ArrayOf("<i8", (None,), low=0, below="models"),
        "visited_sizes": ArrayOf("<i8", ("chains",), low=0),
        "table": ArrayOf("<f8", (None, "names"), low=-FINITE, high=FINITE),
        "chain_inclusion": ArrayOf("<f8", ("chains", "features"), low=0.0, high=_ONE),
        "captured": ArrayOf("<f8", ("chains",), low=0.0, high=_ONE),
        "rhat": ArrayOf("<f8", ("draws",), low=0.0, nan=True),
        "effective": ArrayOf("<f8", ("draws",), low=0.0, nan=True),
        "frequency": ArrayOf("<f8", ("features",), low=0.0, high=_ONE),
        **_fits("averaged", "averaged"),
        "averaged_shifts": ArrayOf("<f8", ("averaged_coefficients",), low=-FINITE, high=FINITE),
        "dispersions": ArrayOf("<f8", (3, None), low=0.0, high=FINITE),
        "dispersion_sizes": ArrayOf("<i8", ("averaged",), low=1, high=2**20),
        "fitted_ranges": ArrayOf("<f8", ("averaged", 2)),
        "ranges": ArrayOf("<f8", ("ranges", 2)),
        **_fits("reports", 2),
        "effect_#_positions": ArrayOf("<f8", ("nodes_#",), low=-_LARGEST, high=_LARGEST),
        **latent_arrays("averaged"),
        **latent_arrays("reports"),
        **_JOINT,
        **_REMAINDER,
    },
    optional=frozenset({"frequency", *_JOINT, *_REMAINDER}),
)
