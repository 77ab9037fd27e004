"""Arrays of models with ancillary parameters, and of the hazards of survival times, in files."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dbrm._typing import FloatArray, IntArray
from dbrm.data.archive import Arrays
from dbrm.data.schema import FINITE, ArrayOf, refuse_unless
from dbrm.evidence import AbstractFamily, JointFit, ModelFit
from dbrm.evidence.families.weibull import Weibull
from dbrm.evidence.joint.survival import SurvivalFamily
from dbrm.posterior.hazard import AbstractHazards, CoxHazards, WeibullHazards

__all__ = [
    "HAZARD_ARRAYS",
    "joint_arrays",
    "pack_hazards",
    "pack_joint",
    "unpack_hazards",
    "unpack_joint",
]

_LARGEST = 1e150

HAZARD_ARRAYS = {
    "hazard_times": ArrayOf("<f8", ("hazard_times",), low=0.0, high=FINITE),
    "hazard_strata": ArrayOf("<i8", ("hazard_times",), low=0, high=2**31),
    "hazard_logs": ArrayOf("<f8", ("averaged", "hazard_times"), low=-_LARGEST, high=_LARGEST),
    "hazard_spreads": ArrayOf("<f8", ("averaged", "hazard_times"), low=0.0, high=_LARGEST),
    "hazard_pulls": ArrayOf("<f8", ("hazard_times", None), low=-_LARGEST, high=_LARGEST),
}


def joint_arrays(name: str, count: str | int) -> dict[str, ArrayOf]:
    """Arrays of the parameters of some models."""
    stem = f"{name}_joint"
    return {
        f"{stem}_ancillary": ArrayOf("<f8", (count, None), low=-_LARGEST, high=_LARGEST),
        f"{stem}_coefficients": ArrayOf("<f8", (None, None), low=-FINITE, high=FINITE),
        f"{stem}_covariances": ArrayOf("<f8", (None,), nan=True),
    }


def pack_joint(name: str, fits: Sequence[ModelFit]) -> Arrays:
    """All parameters of models that have ancillary ones; nothing for other models."""
    joints = [fit.joint for fit in fits if fit.joint is not None]
    if not joints:
        return {}
    return {
        f"{name}_joint_ancillary": np.array([joint.ancillary for joint in joints]),
        f"{name}_joint_coefficients": np.concatenate([joint.coefficients for joint in joints]),
        f"{name}_joint_covariances": np.concatenate([j.covariance.ravel() for j in joints]),
    }


def unpack_joint(name: str, arrays: Arrays, fits: Sequence[ModelFit]) -> list[ModelFit]:
    """The fits with all of their parameters, if the file has them."""
    missing = [key for key in joint_arrays(name, 0) if key not in arrays]
    if len(missing) == 3:
        return list(fits)
    refuse_unless(not missing, missing[0] if missing else "")
    ancillary = arrays[f"{name}_joint_ancillary"]
    coefficients = arrays[f"{name}_joint_coefficients"]
    columns = np.array([fit.coefficients.size - 1 for fit in fits], dtype=np.int64)
    refuse_unless(len(coefficients) == columns.sum(), f"{name}_joint_coefficients")
    sizes = ancillary.shape[1] + columns * coefficients.shape[1]
    flat = arrays[f"{name}_joint_covariances"]
    refuse_unless(flat.size == np.sum(sizes**2), f"{name}_joint_covariances")
    covariances = np.split(flat, np.cumsum(sizes**2)[:-1])
    parts = np.split(coefficients, np.cumsum(columns)[:-1])
    return [
        replace(fit, joint=JointFit(own, part, covariance.reshape(size, size)))
        for fit, own, part, covariance, size in zip(
            fits, ancillary, parts, covariances, sizes.tolist(), strict=True
        )
    ]


def pack_hazards(hazards: AbstractHazards | None) -> Arrays:
    """The baselines of Cox's models; hazards of other models follow from their fits."""
    if not isinstance(hazards, CoxHazards):
        return {}
    return {
        "hazard_times": hazards.times,
        "hazard_strata": hazards.strata,
        "hazard_logs": hazards.log_hazard,
        "hazard_spreads": hazards.spread,
        "hazard_pulls": np.hstack(hazards.pulls),
    }


def unpack_hazards(
    arrays: Arrays, fits: Sequence[ModelFit], family: AbstractFamily | None
) -> AbstractHazards | None:
    """Hazards of the averaged models of a file, if they are of survival times."""
    if not isinstance(family, SurvivalFamily):
        return None
    joints = [fit.joint for fit in fits if fit.joint is not None]
    refuse_unless(len(joints) == len(fits), "averaged_joint_ancillary")
    if isinstance(family, Weibull):
        sound = all(j.ancillary.size == 2 and j.coefficients.shape[1] == 1 for j in joints)
        refuse_unless(sound, "averaged_joint_ancillary")
        return WeibullHazards(fits)
    missing = [name for name in HAZARD_ARRAYS if name not in arrays]
    refuse_unless(not missing, missing[0] if missing else "")
    times, strata = arrays["hazard_times"], arrays["hazard_strata"]
    order = np.lexsort((times, strata))
    refuse_unless(times.size > 0 and np.array_equal(order, np.arange(times.size)), "hazard_times")
    sizes: IntArray = np.array([fit.coefficients.size for fit in fits], dtype=np.int64)
    pulls: FloatArray = arrays["hazard_pulls"]
    refuse_unless(pulls.shape[1] == sizes.sum(), "hazard_pulls")
    return CoxHazards(
        times=times,
        strata=strata,
        log_hazard=arrays["hazard_logs"],
        spread=arrays["hazard_spreads"],
        pulls=np.split(pulls, np.cumsum(sizes)[:-1], axis=1),
    )
