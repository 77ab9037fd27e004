"""Latent effects in formulas: ``(1 | site)``, ``(dose | site)``, ``(dose || site)``, ``s(age)``.

They are taken out of the text before formulaic reads the rest, which knows no bars.
"""

import re

from dbrm.errors import FormulaError, InvalidSettingError
from dbrm.evidence.latent import Smooth, parse_effects

__all__ = ["take_latent_terms"]

_BAR = re.compile(r"(?<![\w.)])\(([^()]*\|[^()]*)\)")
_CURVE = re.compile(r"(?<![\w.])s\(\s*(`[^`]+`|[^\W\d]\w*)\s*\)")


def take_latent_terms(text: str) -> tuple[str, list[str]]:
    """Split a formula into one without latent effects, and the names of these effects.

    A curve ``s(age)`` leaves the covariate ``age`` in the formula, for straight lines.
    """
    left, tilde, right = text.partition("~")
    if not tilde:
        return text, []
    names: list[str] = []
    for match in _BAR.finditer(right):
        _check_alone(text, match[0], right[: match.start()], right[match.end() :])
        try:
            names += [effect.name for effect in parse_effects(match[0])]
        except InvalidSettingError as error:
            msg = f"In the formula {text!r}: {error}"
            raise FormulaError(msg) from None
    for match in _CURVE.finditer(right):
        _check_alone(text, match[0], right[: match.start()], right[match.end() :])
        names.append(Smooth(match[1].strip("`")).name)
    if not names:
        return text, []
    rest = _CURVE.sub(r"\1", re.sub(r"\+?\s*" + _BAR.pattern, " ", right)).strip()
    rest = rest.removeprefix("+").strip() or "1"
    return f"{left.strip()} ~ {' '.join(rest.split())}", list(dict.fromkeys(names))


def _check_alone(text: str, term: str, before: str, after: str) -> None:
    """Raise unless a term is added to the others."""
    if before.strip()[-1:] not in ("", "+") or after.strip()[:1] not in ("", "+", "-"):
        msg = (
            f"In the formula {text!r}, {term} must be a term of its own, added to the others, as "
            "in 'y ~ x + (1 | site)'."
        )
        raise FormulaError(msg)
