"""Coefficient priors by name: what users write in ``prior=``."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dbrm.errors import InvalidSettingError
from dbrm.evidence.coefficient_priors.base import COEFFICIENT_PRIORS, CoefficientPrior

__all__ = ["resolve_prior"]


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
    return _build(spec, COEFFICIENT_PRIORS.find(spec), options)


def _build(name: str, prior: type[CoefficientPrior], options: dict[str, Any]) -> CoefficientPrior:
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
