"""One logger for long runs; every record says what happened and to which chain.

Records carry ``event`` and, where it applies, ``chain`` and other fields as attributes, so that
a formatter can write them as JSON. Without handlers nothing is printed.
"""

import logging
from typing import Any

__all__ = ["log_event"]

_LOGGER = logging.getLogger("dbrm.chains")
logging.getLogger("dbrm").addHandler(logging.NullHandler())


def log_event(level: int, event: str, message: str, **fields: Any) -> None:
    """Log one event with its fields."""
    _LOGGER.log(level, message, extra={"event": event, **fields})
