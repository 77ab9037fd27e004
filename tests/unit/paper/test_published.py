"""Tests of `dbrm_paper.published`: the printed numbers were copied without slips."""

import pytest

from dbrm_paper.published import CLASSIFICATION, COMPLEXITIES, KEPLER, LOGIC, MASS

# Printed so; the column adds up with 0.03.
SLIP = ("breast-cancer", "DBRM_G")


@pytest.mark.parametrize("example", COMPLEXITIES)
def test_complexities_add_up_to_the_printed_total(example):
    table = COMPLEXITIES[example]
    for method, total in table["Total"].items():
        added = sum(row[method] for level, row in table.items() if level != "Total")
        off = 0.27 if (example, method) == SLIP else 0.0
        assert added - off == pytest.approx(total, abs=0.0101)


@pytest.mark.parametrize("example", CLASSIFICATION)
def test_medians_are_between_least_and_greatest(example):
    assert len(CLASSIFICATION[example]) == 19
    for row in CLASSIFICATION[example].values():
        for value in (row.accuracy, row.fnr, row.fpr):
            assert 0 <= value.minimum <= value.median <= value.maximum <= 1


def test_overall_power_is_the_mean_over_trees():
    for numbers in LOGIC.values():
        *trees, overall, _, _ = map(float, numbers)
        assert sum(trees) / 8 == pytest.approx(overall, abs=1e-4)


def test_every_case_of_the_laws_is_there():
    assert len(MASS) == len(KEPLER) == 12
    assert {len(row) for row in KEPLER.values()} == {6}
