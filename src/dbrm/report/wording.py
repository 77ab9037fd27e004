"""How numbers and long names are written in tables, plots and progress bars."""

import re
from collections.abc import Sequence

from dbrm.status import Status

__all__ = [
    "describe_status",
    "display",
    "format_probability",
    "format_share",
    "listed",
    "shorten",
]

_NUMBER = re.compile(r"(?<![\w.])\d+\.\d{4,}(?:e[+-]?\d+)?")


def format_probability(value: float) -> str:
    """Write a probability to four digits, never as a certainty."""
    if value < 5e-5:
        return "<0.0001"
    if value >= 0.99995:
        return ">0.9999"
    return f"{value:.4f}"


def describe_status(status: Status, *, classes: bool) -> str:
    """What a status means, for classes (or shares of trials) or for counts."""
    if status is not Status.SEPARATED:
        return status.meaning
    if classes:
        return "the classes are separated: the likelihood has no maximum, only a supremum"
    return (
        "no event happened in a group of rows that a combination of columns distinguishes, so that "
        "the rate there has only an upper bound"
    )


def format_share(value: float) -> str:
    """Write a probability in percent for running text, never as a certainty."""
    if value < 0.001:
        return "less than 0.1 %"
    if value > 0.999:
        return "more than 99.9 %"
    return f"{100 * value:.1f} %" if not 0.1 <= value < 0.95 else f"{100 * value:.0f} %"


def listed(names: Sequence[str], most: int | None = None) -> str:
    """Write names as in a sentence: a, b and c; after `most` of them the rest is counted."""
    shown = list(names if most is None or len(names) <= most else names[:most])
    if len(shown) < len(names):
        shown.append(f"{len(names) - len(shown)} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def shorten(text: str, width: int) -> str:
    """Cut a text that is too long, and show that it was cut."""
    return text if len(text) <= width else text[: width - 1] + "…"


def display(text: str) -> str:
    """A feature's text for the eye: weights to three digits, names without their quotes."""
    parts = text.split("`")
    parts[::2] = [_NUMBER.sub(lambda match: f"{float(match[0]):.3g}", part) for part in parts[::2]]
    return "".join(parts)
