"""The report reads what everybody can read: anybody could write another one."""

import ast
from pathlib import Path

import pytest

import dbrm.report

MODULES = sorted(Path(dbrm.report.__file__).parent.glob("*.py"))


def private_reads(source):
    """Attributes with a leading underscore that are read from anything but ``self``."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    ]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_the_report_uses_public_attributes_only(module):
    assert private_reads(module.read_text(encoding="utf-8")) == []


def test_a_private_read_is_seen():
    """Negative control."""
    assert private_reads("posterior._source.table") == ["posterior._source"]
