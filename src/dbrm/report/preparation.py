"""What was done to covariates before the search: filled values, levels, logarithms."""

from dbrm.data import ColumnRule, Recipe, sorted_number_ranges
from dbrm.formula import FormulaRecipe
from dbrm.report.wording import listed

__all__ = ["preparation_facts"]

# Columns that are named in one sentence.
_MOST_NAMES = 10


def preparation_facts(recipe: Recipe | FormulaRecipe) -> list[tuple[str, str]]:
    """Topics, each with a sentence; none where the columns were taken as they are."""
    inner = recipe.inner if isinstance(recipe, FormulaRecipe) else recipe
    rules = [rule for rule in inner.columns if set(rule.outputs) & set(inner.names)]
    filled = [_filled(rule) for rule in rules if rule.n_missing]
    pooled = [f"{rule.name} ({len(rule.pooled)} in one column)" for rule in rules if rule.pooled]
    facts = []
    if filled:
        text = listed(filled, _MOST_NAMES)
        facts.append(("missing values", f"{text}; columns with _missing in their name mark them"))
    if pooled:
        facts.append(("rare levels", listed(pooled, _MOST_NAMES)))
    ranges = [rule.name for rule in rules if _has_ranges(rule)]
    if ranges:
        facts.append(("ordered by the numbers in their levels", listed(ranges, _MOST_NAMES)))
    logged = [rule.name for rule in rules if rule.log_column in inner.names]
    if logged:
        facts.append(("on the log scale, too", listed(logged, _MOST_NAMES)))
    return facts


def _has_ranges(rule: ColumnRule) -> bool:
    return rule.kind == "ordered" and sorted_number_ranges(rule.levels) == list(rule.levels)


def _filled(rule: ColumnRule) -> str:
    rows = f"{rule.n_missing:,} row{'' if rule.n_missing == 1 else 's'}"
    if rule.kind == "categorical":
        return f"{rule.name} ({rows}, a level of its own)"
    assert rule.fill is not None
    median = rule.levels[int(rule.fill) - 1] if rule.coded else f"{rule.fill:g}"
    return f"{rule.name} ({rows}, filled with the median, {median})"
