"""The command line: the program ``dbrm``."""

__all__ = ["main"]


def main() -> None:
    """Run the program."""
    from dbrm.cli.app import app

    app()
