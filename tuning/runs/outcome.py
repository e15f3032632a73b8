"""What came of a run in sentences, for a terminal and for a notebook."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tuning.basics.wording import amount
from tuning.runs.run_counts import RunCounts

if TYPE_CHECKING:
    from tuning.runs.results import RunResult

REPORT, LEADERBOARD_FILE = "report.html", "leaderboard.csv"  # in the run's folder


def typing() -> bool:
    """Whether somebody types at Python's prompt, or in a notebook: both set `sys.ps1`."""
    return hasattr(sys, "ps1")


def sentences(result: RunResult, counts: RunCounts) -> list[str]:
    """A sentence on each thing that somebody should know of a run. counts: its `summary`."""
    lacking = counts["without_model"]
    without = f", {lacking:,} without (the reason is in their row)" if lacking else ""
    return [
        f"{result.outcome(counts)}{without}; {amount(counts['trials'], 'trial')}.",
        *_against_baseline(counts),
        *_ensembles(counts),
        *_constants(counts),
        *_too_good(counts),
        *_notes(counts),
    ]


def report_line(result: RunResult) -> list[str]:
    """Where the run's report is, as the last line of what is said of a run; nothing without one."""
    return [f"report       {result.directory.display(REPORT)}"] if result.directory.exists(REPORT) else []


def _against_baseline(counts: RunCounts) -> list[str]:
    compared, worse = counts["compared_with_baseline"], counts["worse_than_baseline"]
    if not compared:
        return []
    if compared == 1:
        how = "below it" if worse else "no worse than it"
        return [f"One winner is not the baseline; it scores {how} on the hold-out rows."]
    if not worse:
        return [f"None of the {compared:,} winners other than the baseline scores below it on the hold-out rows."]
    share = f"{100 * worse / compared:.0f} %"
    return [
        f"{worse:,} of the {compared:,} winners other than the baseline ({share}) score below it on the hold-out rows. "
        "More rows reduce this."
    ]


def _ensembles(counts: RunCounts) -> list[str]:
    found, size = counts["ensembles"], counts["model_bytes"] / 1e6
    if not found:
        return []
    models = "1 model is an ensemble" if found == 1 else f"{found:,} models are ensembles"
    if not size:  # none is saved
        return [f"{models} of several trials."]
    takes = f"{size:.3g} MB" if size < 1000 else f"{size / 1000:.3g} GB"
    return [
        f"{models} of several trials. The models take {takes} in all; `ensemble: none` keeps the winners alone, "
        "which are smaller and predict faster."
    ]


def _constants(counts: RunCounts) -> list[str]:
    found = counts["constants"]
    if not found:
        return []
    models = "1 model is a constant" if found == 1 else f"{found:,} models are constants"
    return [f"{models}: nothing was better on the folds, and their notes say by how much."]


def _too_good(counts: RunCounts) -> list[str]:
    found = counts["too_good"]
    if not found:
        return []
    models = "1 model is" if found == 1 else f"{found:,} models are"
    return [f"{models} perfect on every fold. A column may tell the target: find it, and leave it out with `drop`."]


def _notes(counts: RunCounts) -> list[str]:
    if not counts["with_notes"]:
        return []
    return [
        f"{counts['with_notes']:,} of {counts['customers']:,} rows have notes, such as columns that were left out or "
        "why a score is missing: tuning leaderboard --output csv."
    ]
