"""JSON for programs: what is not a finite number becomes null, as the standard asks."""

import json
from math import isfinite
from typing import Any

__all__ = ["json_text"]


def json_text(value: Any) -> str:
    """Write tables and numbers as JSON that every parser reads."""
    return json.dumps(_plain(value), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    match value:
        case float():
            return value if isfinite(value) else None
        case dict():
            return {name: _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case _:
            return value
