"""The command line: the program ``dbrm``."""

from dbrm.cli.main import main

__all__ = ["main"]
