"""What a reader must know about a run, in plain words: problems first.

A finding has a level: ``bad`` (do not build on this yet), ``care`` (read with care) and
``good``. The page, the notebook and the summary print the same findings.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

from dbrm.posterior.diagnostics import ENOUGH_DRAWS, ENOUGH_MASS, GOOD_RHAT
from dbrm.posterior.lack_of_fit import known_lack_of_fit
from dbrm.report.wording import display, format_share, listed
from dbrm.run.settings import N_CHAINS
from dbrm.status import Status

if TYPE_CHECKING:
    from dbrm.posterior import Posterior

__all__ = ["Finding", "find", "headline"]

Level = Literal["bad", "care", "good"]
_ORDER = {"bad": 0, "care": 1, "good": 2}
# A model with less probability than the first of these is one among many.
_LITTLE, _HALF, _MOST = 0.1, 0.5, 0.95
_MUCH_LOST, _ENOUGH_AVERAGED = 0.01, 0.95
# A difference in log evidence not worth more than a bare mention (Kass and Raftery 1995).
_A_MENTION = 1.1
# Names in a sentence.
_MANY = 5
# With fewer rows, or fewer rows than these beyond the coefficients, chance alone fits well.
_FEW_ROWS, _FEW_LEFT = 10, 5
_RUN_LONGER = "run longer, with more populations or chains."


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know, as a short title and a sentence or two."""

    level: Level
    title: str
    text: str


def find(posterior: "Posterior") -> list[Finding]:
    """Everything to know about a run, the worst first."""
    found = [*_chains(posterior), *_end(posterior), *_rows(posterior), _formula(posterior)]
    found += [*_fit(posterior), *_kept(posterior), *_simpler(posterior), *_law(posterior)]
    found += _remainder(posterior)
    return sorted(found, key=lambda finding: _ORDER[finding.level])


def headline(findings: list[Finding]) -> Finding:
    """What a report says first: the worst problem, followed by the titles of the others."""
    problems = [finding for finding in findings if finding.level != "good"]
    if not problems:
        return next(finding for finding in findings if finding.title == _STANDS_OUT)
    first, *rest = problems
    titles = [f"{finding.title[:1].lower()}{finding.title[1:]}" for finding in rest]
    more = f" Also: {'; '.join(titles)}." if rest else ""
    return Finding(first.level, first.title, first.text + more)


_STANDS_OUT = "One formula stands out"
# Probability of formulas that no chain visited from which on it is said.
_SOME_UNVISITED = 0.05


def _formula(posterior: "Posterior") -> Finding:
    """How much probability the best formula has, and what that means."""
    best = posterior.best_model
    share = format_share(best.probability)
    sure = posterior.features.query("inclusion > 0.95")["feature"].map(display).tolist()
    shared = (
        f" Nearly all of them contain {listed(sure, _MANY)}."
        if sure
        else " No feature is in nearly all of them."
    )
    empty = len(best.terms) == len(posterior.always) and not best.latent
    if best.probability >= _HALF and empty:
        text = (
            f"The model without any feature has {share} of the probability. Either the columns "
            "say little about the response, or there are too few rows, or the functions or the "
            "penalty do not suit the data."
        )
        return Finding("care", "Nothing was found", text)
    if best.probability >= _MOST:
        text = f"It has {share} of the probability of all formulas that the search visited."
        return Finding("good", _STANDS_OUT, text)
    unvisited = ""
    if posterior.unvisited > _SOME_UNVISITED:
        unvisited = (
            f" Formulas that no chain visited have about {format_share(posterior.unvisited)} "
            "together, as walks among the features found tell."
        )
    if best.probability >= _HALF:
        text = f"It has {share} of the probability; the rest is spread over the next formulas."
        return Finding("good", _STANDS_OUT, text + (shared if sure else "") + unvisited)
    several = f"The most probable one has {share} of the probability.{shared}{unvisited}"
    advice = " Read the inclusion probabilities of the features, and use averaged predictions."
    if best.probability >= _LITTLE:
        return Finding("care", "Several formulas compete", several + advice)
    return Finding("bad", "No single formula can be trusted", several + advice)


def _simpler(posterior: "Posterior") -> list[Finding]:
    """A simpler formula with as much evidence, up to what is not worth more than a mention."""
    steps = posterior.path_steps
    if not steps:
        return []
    best = max(steps, key=lambda step: step.probability)
    least = best.log_evidence - _A_MENTION
    for step in steps:
        if 0 < step.complexity < best.complexity and step.log_evidence >= least:
            text = (
                f"{display(step.formula)} has complexity {step.complexity} instead of "
                f"{best.complexity}, and the data do not tell the two apart: posterior.path "
                "compares formulas by complexity."
            )
            return [Finding("good", "A simpler formula does as well", text)]
    return []


def _remainder(posterior: "Posterior") -> list[Finding]:
    """Whether predictions know more than the formulas say."""
    if posterior.remainder < _HALF:
        return []
    text = (
        f"With a probability of {format_share(posterior.remainder)} all covariates together add "
        "to what a formula says, each with a small effect. Predictions count them in; formulas, "
        "and the probabilities of features, are those without (remainder=False)."
    )
    if posterior.root_scale > _HALF:
        text += (
            " Errors grow with the response: these models are of its square root, so that "
            "intervals are wider where it is larger."
        )
    return [Finding("care", "Many covariates matter a little", text)]


def _law(posterior: "Posterior") -> list[Finding]:
    """Where laws are looked for: is the best formula the whole of it?"""
    laws = repr("laws") in posterior.record.settings.get("transforms", "")
    left = known_lack_of_fit(posterior) if laws else None
    if left is None:
        return []
    claim = f"The claim that it is the law has a probability of {format_share(posterior.claim)}."
    if left > _HALF:
        text = (
            f"With a probability of {format_share(left)} its residuals depend on the columns in a "
            f"way that it does not have. {claim} Run longer, offer other functions, or allow a "
            "larger max_complexity."
        )
        return [Finding("bad", "The best formula is not complete", text)]
    text = f"Its residuals look like independent errors. {claim}"
    if posterior.unconfirmed:
        text = f"Its residuals look like independent errors, but one chain alone found it. {claim}"
        return [Finding("care", "The best formula is not confirmed", text)]
    if posterior.may_approximate:
        text = (
            "Its residuals look like independent errors, but for the precision of the fit it has "
            f"many fitted numbers: another formula may fit as well. {claim}"
        )
        return [Finding("care", "The best formula may be an approximation", text)]
    if posterior.contested:
        text = (
            "Its residuals look like independent errors, but those of formulas of another form do "
            f"as well, and others may that were not tried. {claim}"
        )
        return [Finding("care", "The data do not tell the best formula from others", text)]
    return [Finding("good", "Nothing is left beside the best formula", text)]


def _rows(posterior: "Posterior") -> list[Finding]:
    """Fewer than ten rows, or fewer than five beyond the coefficients of the best model.

    Rows that stand for several observations (trials, weights) are not judged.
    """
    n, used = posterior.record.n_rows, posterior.best_model.fit.coefficients.size
    several = {"trials", "sample_weight"}.intersection(posterior.record.given)
    if several or not n or (n >= _FEW_ROWS and n - used >= _FEW_LEFT):
        return []
    left = "none" if n <= used else f"{n - used}"
    text = (
        f"{n} rows, {left} beyond the {used} coefficients of the best formula: with so few rows "
        "some formula fits by chance. The probabilities depend on the prior, and are no evidence "
        "that the formula is right."
    )
    return [Finding("bad", "There are too few rows to tell", text)]


def _chains(posterior: "Posterior") -> list[Finding]:
    if posterior.record.exhaustive:
        text = "All subsets of the columns were evaluated, so that no model was missed."
        return [Finding("good", "The search is complete", text)]
    diagnostics, n_chains = posterior.diagnostics, posterior.record.n_chains
    if n_chains == 1:
        text = (
            "There is no check whether another run finds the same. Run several: "
            f"n_chains={N_CHAINS}."
        )
        return [Finding("care", "There was only one chain", text)]
    found = []
    if disagreements := posterior.disagreements:
        names = listed([display(name) for name in disagreements], _MANY)
        text = (
            f"The {n_chains} chains give different probabilities to {names}. Another run may give "
            f"another answer: {_RUN_LONGER}"
        )
        found.append(Finding("bad", "The chains disagree", text))
    found += _missed(posterior)
    found += _mixing(posterior)
    if not found and not diagnostics.agree:
        text = (
            f"Some of the {n_chains} chains found hardly any of the probability that others "
            f"found: {_RUN_LONGER}"
        )
        found.append(Finding("bad", "The chains differ", text))
    if not found:
        text = (
            f"{n_chains} chains with independent random numbers gave the same probabilities to "
            "all features."
        )
        if diagnostics.never_moved:
            text += " None of them ever left its first model."
        if diagnostics.candidate is not None:
            text += " Features drawn at random afterwards gave no better model."
        found.append(Finding("good", "The chains agree", text))
    return found


def _missed(posterior: "Posterior") -> list[Finding]:
    better = posterior.diagnostics.better_candidate
    if better is not None:
        text = (
            f"No chain visited {display(better.feature)}. Drawn at random after the search, it "
            f"raises the log posterior of the best model by {better.gain:.1f}: run longer, or "
            "start from it (start=)."
        )
        return [Finding("bad", "The search missed a better model", text)]
    unexplored = posterior.diagnostics.unexplored
    if unexplored is None or unexplored <= ENOUGH_MASS:
        return []
    missed = (
        "Walks have counted formulas of the features found that were missed, but not features that "
        "were"
        if posterior.unvisited > 0.0
        else "The probabilities are too high by about as much"
    )
    text = (
        f"Each chain misses about {unexplored:.0%} of the probability that the others found, and "
        f"one more chain would likely find as much again. {missed}: {_RUN_LONGER}"
    )
    return [Finding("bad", "The search was too short", text)]


def _mixing(posterior: "Posterior") -> list[Finding]:
    diagnostics = posterior.diagnostics
    bad = [name for name, value in diagnostics.rhat.items() if not value < GOOD_RHAT]
    few = [name for name, value in diagnostics.effective_draws.items() if value < ENOUGH_DRAWS]
    if bad:
        text = f"R-hat of {listed(bad)} is above {GOOD_RHAT}: run longer."
        return [Finding("bad", "The chains have not mixed", text)]
    if few:
        text = f"There are few effective draws of {listed(few)}: run longer for exact numbers."
        return [Finding("care", "Few effective draws", text)]
    return []


def _end(posterior: "Posterior") -> list[Finding]:
    """Whether the run ended before its time, and which chains failed."""
    record, found = posterior.record, []
    if record.ended == "agreement":
        text = 'Its chains agreed, and the setting stop="agreement" asks for no more.'
        found.append(Finding("good", "The run ended early", text))
    elif record.ended:
        text = (
            f"It was stopped ({record.ended}) when {record.n_finished} of {record.n_chains} chains "
            "had finished. The results are those found until then."
        )
        found.append(Finding("care", "The run was interrupted", text))
    if record.failures:
        count = len(record.failures)
        lines = [
            f"chain {chain}: {failure.splitlines()[-1]}"
            for chain, failure in record.failures.items()
        ]
        text = f"The results are those of the other chains. Errors: {'; '.join(lines)}."
        title = "One chain failed" if count == 1 else f"{count} chains failed"
        found.append(Finding("care", title, text))
    return found


def _fit(posterior: "Posterior") -> list[Finding]:
    status = posterior.best_model.fit.status
    if status == Status.OK:
        return []
    if status == Status.SEPARATED and not posterior.family.has_classes:
        return [_NO_EVENTS]
    if status in _SPECIAL:
        return [_SPECIAL[status]]
    text = f"{status.meaning[:1].upper()}{status.meaning[1:]}. Do not rely on its coefficients."
    return [Finding("bad", "The best model could not be fitted well", text)]


_SPECIAL = {
    Status.PERFECT_FIT: Finding(
        "care",
        "The best model fits without any error",
        "Was the response computed from these columns? All perfect fits count as equally good, "
        "and the simplest is preferred.",
    ),
    Status.SEPARATED: Finding(
        "care",
        "The best model makes no mistake in these rows",
        "Its coefficients could then be arbitrarily large; a correction keeps them finite. "
        "Read their size with care.",
    ),
}


_NO_EVENTS = Finding(
    "care",
    "The best model has rows without any event",
    "No event happened in a group of rows that it distinguishes. The data then give only an upper "
    "bound of the rate in the group, and coefficients could be arbitrarily large. A correction "
    "keeps them finite; predictions for the group depend on the prior: about half an event in it.",
)


def _kept(posterior: "Posterior") -> list[Finding]:
    found = []
    if posterior.lost_mass > _MUCH_LOST:
        text = f"They have up to {format_share(posterior.lost_mass)} of the probability."
        found.append(Finding("care", "Some models were visited but not kept", text))
    if posterior.averaged_share < _ENOUGH_AVERAGED:
        text = (
            f"They average over the {posterior.n_averaged:,} most probable models, which have "
            f"{format_share(posterior.averaged_share)} of the probability; "
            "max_averaged= allows more."
        )
        found.append(Finding("care", "Predictions leave models out", text))
    return found
