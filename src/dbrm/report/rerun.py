"""The run in facts: how to repeat it, its data, and the search in numbers."""

from typing import TYPE_CHECKING

from dbrm.formula import FormulaRecipe
from dbrm.report.preparation import preparation_facts
from dbrm.report.wording import describe_status, listed
from dbrm.status import Status

if TYPE_CHECKING:
    from dbrm.posterior import Posterior

__all__ = ["data_facts", "failed_evaluations", "numbers", "rerun_code", "rerun_words"]

_MOST_NAMES, _FEW_NAMES = 60, 8
# What a formula may name beside response and covariates.
_IN_FORMULAS = ("offset", "event", "entry", "strata")
# Settings without influence on the result.
_IRRELEVANT = ("n_jobs", "progress", "executor", "checkpoint", "check")


def rerun_code(posterior: "Posterior") -> str:
    """The call that made the posterior, as Python."""
    record = posterior.record
    first = [repr(record.formula), "data=table"] if record.formula else ["X", "y"]
    extras = [name for name in record.given if not (record.formula and name in _IN_FORMULAS)]
    arguments = [*first, *(f"{name}={name}" for name in extras)]
    arguments += [
        f"{name}={text}" for name, text in record.settings.items() if name not in _IRRELEVANT
    ]
    inside = "".join(f"    {argument},\n" for argument in arguments)
    imports = f"import dbrm  # version {record.version}\n"
    if "latent" in record.settings:
        imports += "from dbrm.latent import *\n"
    if not record.formula:
        names = listed(posterior.recipe.input_names, _FEW_NAMES)
        # Whatever is in the names, a comment is one line.
        words = " ".join(f"X: a table with {names}; y: {record.response}".split())
        imports += f"\n# {words}\n"
    return f"{imports}\nposterior = dbrm.fit(\n{inside})"


def rerun_words(posterior: "Posterior") -> str:
    """Whether the call gives the same numbers again, and what to fill in."""
    own = " Replace what is in angle brackets by your own objects."
    lacks = any(text.startswith(("<", "[<", "(<")) for text in posterior.record.settings.values())
    return _repeatable(posterior) + (own if lacks else "")


def _repeatable(posterior: "Posterior") -> str:
    record = posterior.record
    if record.exhaustive:
        return "Nothing is random here: the same data give the same numbers."
    seeded = record.seed is not None
    timed = "time_budget" in record.settings
    if record.ended not in ("", "agreement"):
        return f"The run was interrupted ({record.ended}); run again to the end, it will find more."
    if seeded and not timed:
        return (
            "With the same data, version and seed this gives the same numbers, with any number of "
            "processes."
        )
    if timed:
        return (
            "The run ended by the clock (time_budget), so a repetition will not give exactly the "
            "same numbers. Set n_populations instead to make it repeatable."
        )
    return (
        "No seed was given, so a repetition will not give exactly the same numbers. Set "
        "random_state to make it repeatable."
    )


def data_facts(posterior: "Posterior") -> list[tuple[str, str]]:
    """Response, rows, columns, and what was done to them."""
    record, recipe = posterior.record, posterior.recipe
    inner = recipe.inner if isinstance(recipe, FormulaRecipe) else recipe
    names = list(recipe.input_names)
    facts = [
        ("response", record.response),
        ("rows", f"{posterior.n_rows:,}"),
        (f"{len(names):,} covariates", listed(names, _MOST_NAMES)),
    ]
    if record.formula:
        facts.insert(0, ("formula", record.formula))
    if record.given:
        facts.append(("further columns", listed(list(record.given))))
    for name, reason in inner.dropped:
        facts.append((f"left out: {name}", reason))
    if inner.scale:
        facts.append(("scale", "covariates are standardised"))
    return facts + preparation_facts(recipe)


def numbers(posterior: "Posterior") -> list[tuple[str, str]]:
    """The search in numbers."""
    record, diagnostics = posterior.record, posterior.diagnostics
    share = f"{posterior.averaged_share:.2%} of the probability"
    facts = [
        ("algorithm", record.algorithm),
        ("models evaluated", f"{record.n_evaluated:,}"),
        ("time", f"{record.seconds:.1f} s"),
        ("models kept", f"{len(posterior.models):,}"),
        ("probability of models not kept, at most", f"{posterior.lost_mass:.2g}"),
        ("predictions average over", f"{posterior.n_averaged:,} models with {share}"),
    ]
    if not record.exhaustive:
        captured = ", ".join(f"{share:.1%}" for share in diagnostics.captured)
        facts.append(("probability found by each chain", captured))
    if diagnostics.unexplored is not None:
        facts.append(("probability found by one chain alone", f"{diagnostics.unexplored:.2%}"))
    facts += [(f"R-hat of {name}", f"{value:.3f}") for name, value in diagnostics.rhat.items()]
    facts += [
        (f"effective draws of {name}", f"{value:,.0f}")
        for name, value in diagnostics.effective_draws.items()
    ]
    facts += [
        (f"moves “{name}”", f"{tried:,} tried, {accepted / max(tried, 1):.1%} accepted")
        for name, (tried, accepted) in record.moves.items()
    ]
    facts += [
        (f"{count:,} evaluations", meaning) for count, meaning in failed_evaluations(posterior)
    ]
    return facts


def failed_evaluations(posterior: "Posterior") -> list[tuple[int, str]]:
    """How many evaluations had which problem."""
    classes = posterior.family.has_classes
    return [
        (count, describe_status(Status(code), classes=classes))
        for code, count in sorted(posterior.record.status_counts.items())
        if code != Status.OK
    ]
