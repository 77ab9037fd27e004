"""Coefficient priors by name: what users write in ``prior=``.

The table of names is the only thing here that knows all priors.
"""

from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from dbrm.errors import InvalidSettingError, UnknownNameError
from dbrm.evidence.coefficient_priors.base import CoefficientPrior
from dbrm.evidence.coefficient_priors.classical import AIC, BIC, Jeffreys, KnownVariance
from dbrm.evidence.coefficient_priors.confluent import (
    CCH,
    TCCH,
    AdaptedZellnerSiow,
    TruncatedGamma,
)
from dbrm.evidence.coefficient_priors.fixed_g import EBLocal, GPrior
from dbrm.evidence.coefficient_priors.g_mixtures import (
    BenchmarkBeta,
    BetaPrime,
    HyperG,
    HyperGN,
    Intrinsic,
    JeffreysG,
    Robust,
    UniformG,
    ZellnerSiow,
)
from dbrm.evidence.coefficient_priors.radial import Normal, NormalLogGamma

__all__ = ["prior_names", "resolve_prior"]

_PRIORS: dict[str, type[CoefficientPrior]] = {
    "jeffreys": Jeffreys,
    "known-variance": KnownVariance,
    "bic": BIC,
    "aic": AIC,
    "g-prior": GPrior,
    "eb-local": EBLocal,
    "hyper-g": HyperG,
    "hyper-g-n": HyperGN,
    "zellner-siow": ZellnerSiow,
    "beta-prime": BetaPrime,
    "robust": Robust,
    "intrinsic": Intrinsic,
    "uniform": UniformG,
    "jeffreys-g": JeffreysG,
    "benchmark": BenchmarkBeta,
    "cch": CCH,
    "tcch": TCCH,
    "truncated-gamma": TruncatedGamma,
    "zs-adapted": AdaptedZellnerSiow,
    "normal": Normal,
    "normal-loggamma": NormalLogGamma,
}
_ALIASES = {
    "jzs": "zellner-siow",
    "zs": "zellner-siow",
    "g": "g-prior",
    "hyper-g/n": "hyper-g-n",
    "eb": "eb-local",
    "ze": "beta-prime",
    "tg": "truncated-gamma",
}


def prior_names() -> tuple[str, ...]:
    """Every name that `resolve_prior` accepts, without aliases."""
    return tuple(_PRIORS)


def resolve_prior(
    spec: CoefficientPrior | str | Mapping[str, Any], **options: Any
) -> CoefficientPrior:
    """Turn what a user wrote into a coefficient prior.

    Parameters
    ----------
    spec
        A prior, returned as it is; a name, in any case, with ``-`` and ``_`` equal; or a
        mapping with the name under ``"name"`` and options beside it.
    options
        Settings of the prior, in addition to those of a mapping.

    Raises
    ------
    UnknownNameError
        No prior has this name; the message lists close matches and all names.
    InvalidSettingError
        The prior has no such option, lacks a required one, or refuses its value.
    """
    if isinstance(spec, CoefficientPrior):
        if options:
            msg = (
                f"prior={spec!r} is complete; the options {sorted(options)} beside it would be "
                "ignored. Set them on the prior itself."
            )
            raise InvalidSettingError(msg)
        return spec
    if isinstance(spec, Mapping):
        options = {**spec, **options}
        if "name" not in options:
            msg = f"A prior given as a mapping needs a 'name'; got the keys {sorted(options)}."
            raise InvalidSettingError(msg)
        spec = options.pop("name")
    if not isinstance(spec, str):
        msg = f"prior must be a name, a mapping or a CoefficientPrior; got {spec!r}."
        raise InvalidSettingError(msg)
    return _build(_find(spec), options)


def _find(name: str) -> str:
    plain = name.strip().lower().replace("_", "-").replace(" ", "-")
    plain = _ALIASES.get(plain, plain)
    if plain in _PRIORS:
        return plain
    close = get_close_matches(plain, [*_PRIORS, *_ALIASES], n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(repr(c) for c in close)}?" if close else ""
    msg = f"There is no coefficient prior {name!r}.{hint} Known: {', '.join(_PRIORS)}."
    raise UnknownNameError(msg)


def _build(name: str, options: dict[str, Any]) -> CoefficientPrior:
    prior = _PRIORS[name]
    known = [field.name for field in fields(prior)]  # type: ignore[arg-type]
    unknown = sorted(set(options) - set(known))
    if unknown:
        msg = (
            f"The prior {name!r} has no option {', '.join(map(repr, unknown))}; "
            f"its options: {', '.join(known) or 'none'}."
        )
        raise InvalidSettingError(msg)
    try:
        return prior(**options)
    except TypeError as error:
        msg = f"The prior {name!r} cannot be built from the options {options!r}: {error}."
        raise InvalidSettingError(msg) from error
