"""The command line: ``dbrm demo``."""

from dbrm.cli.main import main

__all__ = ["main"]
