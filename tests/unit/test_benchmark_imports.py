"""The benchmarks import only what is there: most of them take too long to be run as tests."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
PROGRAMS = sorted(FOLDER.glob("*.py"))


def imported(program):
    """Module and name (or None) of everything that a program imports from dbrm, anywhere."""
    for node in ast.walk(ast.parse(program.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name[:4] == "dbrm")
        elif isinstance(node, ast.ImportFrom) and (node.module or "")[:4] == "dbrm":
            yield from ((node.module, alias.name) for alias in node.names)


@pytest.mark.skipif(not PROGRAMS, reason="the benchmarks are not here")
def test_everything_that_benchmarks_import_exists():
    missing = []
    for program in PROGRAMS:
        for module, name in imported(program):
            try:
                found = import_module(module)
                if name is not None and not hasattr(found, name):
                    import_module(f"{module}.{name}")
            except ModuleNotFoundError:
                missing.append(f"{program.name}: {module} {name or ''}")
    assert missing == []


def test_a_name_that_is_gone_is_noticed(tmp_path):
    """Negative control."""
    program = tmp_path / "old.py"
    program.write_text("def main():\n    from dbrm import tall, fit\n", encoding="utf-8")
    assert list(imported(program)) == [("dbrm", "tall"), ("dbrm", "fit")]
    with pytest.raises(ModuleNotFoundError):
        import_module("dbrm.tall")
