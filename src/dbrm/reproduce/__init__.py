"""The paper's tables and figures, computed again and set beside the printed numbers."""

from dbrm.reproduce.reproduction import reproduce
from dbrm.reproduce.study import Options

__all__ = ["Options", "reproduce"]
