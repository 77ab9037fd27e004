"""What a reader must know about a run, in plain words: doubts first.

A finding has a level: ``bad`` (do not build on this yet), ``care`` (read with care) and
``good``. The page, the notebook and tests read the same list.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

from dbrm.posterior.diagnostics import ENOUGH_DRAWS, ENOUGH_MASS, GOOD_RHAT
from dbrm.report.wording import display, format_share, listed
from dbrm.status import Status

if TYPE_CHECKING:
    from dbrm.posterior import Posterior

__all__ = ["Finding", "few_rows", "find", "headline"]

Level = Literal["bad", "care", "good"]
_ORDER = {"bad": 0, "care": 1, "good": 2}
# A model that holds less than this is one among many.
_LITTLE, _HALF, _MOST = 0.1, 0.5, 0.95
_MUCH_LOST, _ENOUGH_AVERAGED = 0.01, 0.95
_MANY = 5
# With fewer rows, or fewer left beside the coefficients, chance alone fits well.
_FEW_ROWS, _FEW_LEFT = 10, 5


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know, as a short title and a sentence or two."""

    level: Level
    title: str
    text: str


def find(posterior: "Posterior") -> list[Finding]:
    """Everything to know about a run, the worst first."""
    found = [*_chains(posterior), *_misses(posterior), *_scarce(posterior), _formula(posterior)]
    found += [*_fit(posterior), *_kept(posterior)]
    return sorted(found, key=lambda finding: _ORDER[finding.level])


def headline(findings: list[Finding]) -> Finding:
    """What the page says before anything else: the worst, with the other doubts behind it."""
    doubts = [finding for finding in findings if finding.level != "good"]
    if not doubts:
        return next(f for f in findings if f.title == _STANDS_OUT)
    first, *rest = doubts
    more = f" Also: {'; '.join(_lower(doubt.title) for doubt in rest)}." if rest else ""
    return Finding(first.level, first.title, first.text + more)


_STANDS_OUT = "One formula stands out"


def _formula(posterior: "Posterior") -> Finding:
    """How much probability the best formula has, and what to make of it."""
    best = posterior.best_model.probability
    share = format_share(best)
    sure = posterior.features.query("inclusion > 0.95")["feature"].map(display).tolist()
    nearly_sure = (
        f" What nearly all of them share is {listed(sure, _MANY)}."
        if sure
        else " No feature is in nearly all of them either."
    )
    chosen = posterior.best_model
    empty = len(chosen.terms) == len(posterior._source.always) and not chosen.latent
    if best >= _HALF and empty:
        text = (
            f"The model without any feature holds {share} of the probability. Either the columns "
            "say little about the response, or there are too few rows, or the functions or the "
            "penalty do not suit."
        )
        return Finding("care", "Nothing was found", text)
    if best >= _MOST:
        text = f"It holds {share} of the probability of all formulas that the search has met."
        return Finding("good", _STANDS_OUT, text)
    if best >= _HALF:
        text = f"It holds {share} of the probability; the rest is spread over the runners-up."
        return Finding("good", _STANDS_OUT, text + (nearly_sure if sure else ""))
    several = f"The most probable one holds {share} of the probability."
    advice = " Read the inclusion probabilities of the features, and use averaged predictions."
    if best >= _LITTLE:
        return Finding("care", "Several formulas compete", several + nearly_sure + advice)
    return Finding("bad", "No single formula can be trusted", several + nearly_sure + advice)


def few_rows(posterior: "Posterior") -> str:
    """What so few rows cannot tell; empty where they are enough.

    Fewer than ten rows, or fewer than five beyond the coefficients of the best model. Rows
    that stand for several observations (trials, weights) are not judged.
    """
    n, used = posterior.record.n_rows, posterior.best_model.fit.coefficients.size
    several = {"trials", "sample_weight"}.intersection(posterior.record.given)
    if several or not n or (n >= _FEW_ROWS and n - used >= _FEW_LEFT):
        return ""
    left = "none" if n <= used else f"{n - used}"
    return (
        f"{n} rows, {left} beyond the {used} coefficients of the best formula: some formula fits "
        "so few by chance. The probabilities rest on the prior, and are no evidence that the "
        "formula is right."
    )


def _scarce(posterior: "Posterior") -> list[Finding]:
    text = few_rows(posterior)
    return [Finding("bad", "There are too few rows to tell", text)] if text else []


def _chains(posterior: "Posterior") -> list[Finding]:
    if posterior.record.algorithm == "enumerate":
        text = "Every subset of the columns was looked at, so nothing was missed."
        return [Finding("good", "The search is complete", text)]
    diagnostics, n_chains = posterior.diagnostics, posterior.record.n_chains
    if n_chains == 1:
        text = "Nothing tells whether another run would find the same. Run several: n_chains=4."
        return [Finding("care", "There was one chain only", text)]
    found = []
    if diagnostics.disagreements or diagnostics.latent_disagreements:
        names = [display(str(posterior._merged.features[j])) for j in diagnostics.disagreements]
        effects = posterior._source.effects
        names += [effects[k].effect.name for k in diagnostics.latent_disagreements]
        text = (
            f"The {n_chains} chains give different probabilities to {listed(names, _MANY)}. "
            "Another run may well tell another story: run longer, with more populations or chains."
        )
        found.append(Finding("bad", "The chains disagree", text))
    found += _missed(posterior)
    found += _mixing(posterior)
    if not found and not diagnostics.agree:
        text = (
            f"Some of the {n_chains} chains found next to nothing of the probability that others "
            "found: run longer, with more populations or chains."
        )
        found.append(Finding("bad", "The chains differ", text))
    if not found:
        text = (
            f"{n_chains} chains, each with random numbers of its own, gave the same probabilities "
            "to all features."
        )
        if diagnostics.candidate is not None:
            text += " Features drawn at random afterwards made no better model."
        found.append(Finding("good", "The chains agree", text))
    return found


def _misses(posterior: "Posterior") -> list[Finding]:
    """What the run was to bring and did not."""
    record, found = posterior.record, []
    if record.ended == "agreement":
        text = "Its chains agreed, and it was asked to end then."
        found.append(Finding("good", "The run ended early", text))
    elif record.ended:
        text = (
            f"Someone or something stopped it ({record.ended}): {record.n_finished} of "
            f"{record.n_chains} chains came to their end. This is what was found until then."
        )
        found.append(Finding("care", "The run was interrupted", text))
    if record.failures:
        count = len(record.failures)
        text = (
            f"What {'it' if count == 1 else 'they'} would have found is missing: see the summary."
        )
        title = "One chain failed" if count == 1 else f"{count} chains failed"
        found.append(Finding("care", title, text))
    return found


def _missed(posterior: "Posterior") -> list[Finding]:
    better = posterior.diagnostics.better_candidate
    if better is not None:
        text = (
            f"No chain met {display(better.feature)}. Drawn at random after the search, it raises "
            f"the log posterior of the best model by {better.gain:.1f}: run longer, or offer it "
            "(start=)."
        )
        return [Finding("bad", "The search has missed something", text)]
    unexplored = posterior.diagnostics.unexplored
    if unexplored is None or unexplored <= ENOUGH_MASS:
        return []
    text = (
        f"Each chain misses about {unexplored:.0%} of the probability that the others found; one "
        "more chain would likely find as much again. Probabilities below are too high by as much."
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
        text = f"There are few effective draws of {listed(few)}: run longer for finer numbers."
        return [Finding("care", "Few effective draws", text)]
    return []


def _fit(posterior: "Posterior") -> list[Finding]:
    status = posterior.best_model.fit.status
    if status == Status.OK:
        return []
    glm = posterior._source.glm
    if status == Status.SEPARATED and glm is not None and not glm.family.has_trials:
        return [_NO_EVENTS]
    known = _SPECIAL.get(status)
    if known is None:
        text = f"{status.meaning[:1].upper()}{status.meaning[1:]}. Do not rely on its coefficients."
        return [Finding("bad", "The best model could not be fitted well", text)]
    return [known]


_SPECIAL = {
    Status.PERFECT_FIT: Finding(
        "care",
        "The best model leaves no error at all",
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
    "The best model marks rows without any event",
    "There the data bound the rate from above only: it could be arbitrarily small, and the "
    "coefficients that say so arbitrarily large. A correction keeps them finite; predictions "
    "there rest on the prior, about half an event in as many rows.",
)


def _kept(posterior: "Posterior") -> list[Finding]:
    found = []
    if posterior.lost_mass > _MUCH_LOST:
        text = f"They hold up to {format_share(posterior.lost_mass)} of the probability."
        found.append(Finding("care", "Models were met but not kept", text))
    if posterior.averaged_share < _ENOUGH_AVERAGED:
        text = (
            f"They average over the {posterior.n_averaged:,} most probable models, which hold "
            f"{format_share(posterior.averaged_share)} of the probability; "
            "max_averaged= allows more."
        )
        found.append(Finding("care", "Predictions leave models out", text))
    return found


def _lower(title: str) -> str:
    return title[:1].lower() + title[1:]
