"""Latent effects from text: ``RandomSlope(site, dose)``, or ``(dose | site)`` as in formulas."""

import re
from ast import literal_eval
from typing import Any

from dbrm.errors import InvalidSettingError, UnknownNameError, suggest
from dbrm.evidence.latent.base import LATENT_EFFECTS, Latent
from dbrm.evidence.latent.effects.iid import RandomIntercept
from dbrm.evidence.latent.effects.random_slope import RandomSlope

__all__ = ["parse_effects"]

_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_BAR = re.compile(r"\s*\(\s*([^()|]+?)\s*(\|\|?)\s*([^()|]+?)\s*\)\s*")
_NAME = re.compile(r"`[^`]+`|[^\s+*:/~`]+(?: [^\s+*:/~`]+)*")
_FORMS = "(1 | site), (dose | site), (0 + dose | site) or (dose || site)"


def parse_effects(text: str) -> list[Latent]:
    """Read an effect by the name of its class, or the effects of a term with a bar.

    ``(1 | g)`` is an intercept for each group, ``(x | g)`` a slope with a correlated
    intercept, ``(0 + x | g)`` the slope alone, and ``(x || g)`` both without correlation.
    """
    bar = _BAR.fullmatch(text)
    if bar is not None:
        return _from_bar(text, bar[1], bar[3], correlated=bar[2] == "|")
    call = _CALL.fullmatch(text)
    if call is None:
        msg = (
            "latent must hold latent effects such as dbrm.latent.RandomIntercept('site'), or texts "
            f"such as 'RandomIntercept(site)' or '(dose | site)'; got {text!r}."
        )
        raise InvalidSettingError(msg)
    if call[1] not in LATENT_EFFECTS:
        msg = (
            f"There is no latent effect {call[1]!r}{suggest(call[1], LATENT_EFFECTS)}. "
            f"Known: {', '.join(LATENT_EFFECTS)}; or {_FORMS}."
        )
        raise UnknownNameError(msg)
    return [_from_call(text, LATENT_EFFECTS[call[1]], call[2])]


def _from_call(text: str, kind: type[Any], inside: str) -> Latent:
    columns: list[str] = []
    options: dict[str, Any] = {}
    for part in (item.strip() for item in inside.split(",") if item.strip()):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if equals:
            try:
                options[name] = literal_eval(value)
            except (SyntaxError, ValueError):
                options[name] = value
        elif kind is RandomSlope and re.match(r"0\s*\+", part):
            columns.append(_unquote(part.split("+", 1)[1]))
            options["correlated"] = False
        else:
            columns.append(_unquote(part))
    try:
        effect: Latent = kind(*columns, **options)
    except TypeError as error:
        wanted = "RandomSlope(site, dose)" if kind is RandomSlope else f"{kind.__name__}(column)"
        msg = f"The latent effect {text!r} is not understood: write {wanted} ({error})."
        raise InvalidSettingError(msg) from None
    return effect


def _from_bar(text: str, left: str, right: str, *, correlated: bool) -> list[Latent]:
    if not _NAME.fullmatch(right):
        msg = (
            f"The groups of {text.strip()!r} must be one column; got {right!r}. Make a column of "
            f"the combined groups, and write {_FORMS}."
        )
        raise InvalidSettingError(msg)
    terms = [term.strip() for term in left.replace("- 1", "+ 0").replace("-1", "+ 0").split("+")]
    terms = [term for term in terms if term]
    covariates = [_unquote(term) for term in terms if term not in ("0", "1")]
    intercept = "0" not in terms
    wrong = [name for name in covariates if not _NAME.fullmatch(name) and " " not in name]
    if wrong or not (covariates or intercept) or (correlated and len(covariates) > 1):
        each = " + ".join(f"({name} || {right})" for name in covariates)
        hint = f" Several slopes are offered one by one: {each}." if len(covariates) > 1 else ""
        msg = f"The term {text.strip()!r} is not understood: write {_FORMS}.{hint}"
        raise InvalidSettingError(msg)
    group = _unquote(right)
    if intercept and correlated and covariates:
        return [RandomSlope(group, covariates[0])]
    effects: list[Latent] = [RandomIntercept(group)] if intercept else []
    return effects + [RandomSlope(group, name, correlated=False) for name in covariates]


def _unquote(name: str) -> str:
    return name.strip().strip("`'\"")
