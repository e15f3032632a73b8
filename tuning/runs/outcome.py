"""What came of a run in sentences, for a terminal and for a notebook."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from tuning.basics.public import typing
from tuning.basics.wording import amount, size_text
from tuning.definition.baselines import GivenBaseline, baseline_name, is_first_trial
from tuning.runs.answer import answer
from tuning.runs.typical import by_chance

if TYPE_CHECKING:
    from tuning.runs.results import RunResult
    from tuning.runs.run_counts import RunCounts  # with pandas, which the copy into MLflow does without

REPORT, LEADERBOARD_FILE = "report.html", "leaderboard.csv"  # in the run's folder


def sentences(result: RunResult, counts: RunCounts) -> list[str]:
    """A sentence on each thing that somebody should know of a run, the answer first. counts: its `summary`."""
    return [*answer(result, counts), *remarks(result, counts)]


def remarks(result: RunResult, counts: RunCounts) -> list[str]:
    """What is to be known beside the answer."""
    return [
        *_contradicted(counts),
        *_worse_than_baseline(counts, result.baseline),
        *_pool(counts),
        *_fixed(counts),
        *_ensembles(counts),
        *_constants(counts),
        *_worse_than_constants(counts, result.directory.shown),
        *_too_good(counts),
        *_notes(counts, result.directory.shown),
    ]


def report_line(result: RunResult) -> list[str]:
    """Where the run's report is, as the last line of what is said of a run; nothing without one."""
    return [f"report       {result.directory.display(REPORT)}"] if result.directory.exists(REPORT) else []


def _worse_than_baseline(counts: RunCounts, given: GivenBaseline) -> list[str]:
    """What was done where tuning gained nothing, which says nothing of how good the models are."""
    compared, worse = counts["compared_with_baseline"], counts["worse_than_baseline"]
    if not worse or compared == 1:
        return []
    low, high = by_chance(compared)
    chance = f"on the hold-out rows; were both equally good, chance would give {low:,} to {high:,}."
    if not is_first_trial(given):
        return [
            f"For {worse:,} of {amount(compared, 'customer')} the model does worse than {baseline_name(given)} {chance}"
        ]
    both = ", or an ensemble has both" * bool(counts["ensembles"])
    return [
        f"For {worse:,} of {amount(compared, 'customer')} the chosen model did worse than the baseline {chance} It is "
        f"kept because it was better on the folds{both}. More data rows per customer make such a choice surer."
    ]


def _contradicted(counts: RunCounts) -> list[str]:
    """What to know before a model is used, so it is said first."""
    found = counts["contradicted"]
    if not found:
        return []
    who = f"{amount(found, 'model')} {'is' if found == 1 else 'are'}"
    it, its_note = ("it", "its note") if found == 1 else ("them", "their notes")
    return [
        f"{who} contradicted by the hold-out rows: much worse there than the folds promised, and not by chance. Before "
        f"you use {it}, find out why; {its_note} and the report say what the cause may be."
    ]


def _pool(counts: RunCounts) -> list[str]:
    if why := counts["without_pool"]:
        alone = "There is no pool, so each model is of its own customer's rows alone"
        return [f"{alone}: {why.rstrip('.')}. A resume does not try again; a new run does."]
    if not counts["pool_customers"]:
        return []
    whose, where = amount(counts["pool_customers"], "customer"), amount(counts["pool_members"], "model")
    return [f"The pool, of the rows of {whose}, is a member of {where}."]


def _fixed(counts: RunCounts) -> list[str]:
    found = counts["fixed"]
    if not found or counts["customers"] == 1:
        return []
    was, each = ("was", "it") if found == 1 else ("were", "each")
    return [f"The configuration of {amount(found, 'model')} {was} known: {each} was fitted once, without a trial."]


def _ensembles(counts: RunCounts) -> list[str]:
    found, size = counts["ensembles"], counts["model_bytes"]
    if not found:
        return []
    pooled = counts["pool_members"]
    of = "several trials, or of trials and the pool" if pooled else "several trials"
    models = f"{amount(found, 'model')} {'is an ensemble' if found == 1 else 'are ensembles'} of {of}."
    if not size:  # none is saved
        return [models]
    alone = "`ensemble: none` with `pool: off`" if pooled else "`ensemble: none`"
    return [
        f"{models} The models take {size_text(size)} in all; {alone} keeps the winners alone, which are smaller and "
        "predict faster."
    ]


def _constants(counts: RunCounts) -> list[str]:
    found = counts["constants"]
    if not found:
        return []
    models = f"{amount(found, 'model')} {'is a constant' if found == 1 else 'are constants'}"
    return [f"{models}: nothing was better on the folds, and their notes say by how much."]


def _worse_than_constants(counts: RunCounts, run: str) -> list[str]:
    """Of those that the hold-out surely contradicts, `_contradicted` says so."""
    found = counts["worse_than_constant"]
    if not found:
        return []
    do, them = ("does", "it") if found == 1 else ("do", "them")
    command = f"`tuning leaderboard {quote(run)} --sort gain_over_constant` has {them} last"
    where = "`result.leaderboard().query('gain_over_constant < 0')`" if typing() else command
    return [
        f"{amount(found, 'model')} {do} worse on the hold-out rows than a constant, which knows nothing: {where}. "
        "With few such rows, chance alone does that."
    ]


def _too_good(counts: RunCounts) -> list[str]:
    found, leaking = counts["too_good"], counts["leaking"]
    models = f"{amount(found, 'model')} {'is' if found == 1 else 'are'}"
    perfect = [f"{models} perfect on every fold."] * bool(found)
    if leaking:
        from tuning.evaluation.leaks import drop_text  # with pandas, which the copy into MLflow does without

        names = ", ".join(f"{name!r} ({amount(count, 'customer')})" for name, count in leaking.items())
        told = f"A column may tell the target, as it alone does as well as the model: {names}."
        return [
            " ".join([*perfect, told, f"What is not known before the target: leave it out with {drop_text(leaking)}."])
        ]
    return [f"{each} A column may tell the target: find it, and leave it out with `drop`." for each in perfect]


def _notes(counts: RunCounts, run: str) -> list[str]:
    if not counts["with_notes"]:
        return []
    where = "`result.leaderboard()`" if typing() else f"`tuning leaderboard {quote(run)} --output csv`"
    return [
        f"Notes are on {counts['with_notes']:,} of {amount(counts['customers'], 'customer')}, such as columns that "
        f"were left out or why a score is missing: the column `notes` of {where}."
    ]
