"""What a run that has ended shows of itself in MLflow: figures, a text, its leaderboard, plan and definition."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow.compute as pc

from tuning.basics.wording import amount, command, shorten
from tuning.records.figures import shown_in
from tuning.records.schema import FAILED, FINISHED, OK, STOPPED
from tuning.runs.leaderboard import Leaderboard
from tuning.runs.outcome import LEADERBOARD_FILE, REPORT, answer
from tuning.runs.plan_file import DEFINITION, frozen_definition
from tuning.runs.results import RunResult
from tuning.storage.names import mask_in
from tuning.tracking.summary.summary import Summary
from tuning.tracking.tracked_runs import PREFIX

SHOWN = 15
COLUMNS = shown_in("mlflow")
MEDIANS = tuple(each.name for each in COLUMNS if each.is_number)


def overview(
    result: RunResult, plan: Mapping[str, object], started: float, ended: float, *, failed: bool = False
) -> tuple[Summary, dict[str, bytes]]:
    """The summary of a run that has ended, and the artifacts that are no files of the run yet.

    plan: the plan's figures (`Plan.to_dict()`). started, ended: seconds since 1970. failed: the run could not go on.
    """
    counts = result.summary()
    board = result.board()
    best = board.standings.best_studies(["status", *MEDIANS])
    unfinished = result.unfinished
    comparison = frozen_definition(result.directory, result.term).compare is not None
    figures: dict[str, float] = {
        "customers": counts["customers"],
        "succeeded": counts["succeeded"],
        "pooled": counts["pooled"],
        "without_model": counts["without_model"],
        "trials": counts["trials"],
        "fit_seconds": counts["fit_seconds"],
        "wall_seconds": round(result.term.seconds + ended - started, 3),
    }
    for name in MEDIANS:
        values = best[name].filter(pc.equal(best["status"], OK)).to_pandas().dropna()
        if len(values):
            figures[f"median_{name}"] = float(values.median())
    trials = f"{result.outcome(counts)}, {amount(counts['trials'], 'trial')}."
    said = [trials] if comparison else answer(result, counts)
    summary = Summary(
        state=FAILED if failed else STOPPED if unfinished else FINISHED,
        started=started,
        ended=ended,
        metrics={name: float(value) for name, value in figures.items()},
        tags={
            f"{PREFIX}{name}": str(plan[name]) for name in ("algorithm", "scheduler", "metric", "task") if name in plan
        },
        artifacts={} if failed or comparison else _files(result),
        note=_note(said, board, unfinished, result.directory.shown),
    )
    contents = {
        # The others have it in their folder.
        **({LEADERBOARD_FILE: b"".join(board.csv())} if failed or comparison else {}),
        DEFINITION: mask_in(result.directory.read(DEFINITION).decode()).encode(),
        "plan.json": json.dumps(dict(plan), indent=1, default=str).encode(),
    }
    return summary, contents


def _files(result: RunResult) -> dict[str, str]:
    """Artifacts that are files of the run as they are."""
    there = [REPORT] if result.directory.exists(REPORT) else []
    return {name: name for name in (LEADERBOARD_FILE, *there)}


def _note(said: list[str], board: Leaderboard, unfinished: int, where: str) -> str:
    """said: the answer of the run."""
    go_on = [f"{amount(unfinished, 'study')} unfinished: `{command('resume', where)}`."] if unfinished else []
    lines = [
        " ".join([f"**{said[0]}**", *said[1:], *go_on]),
        "",
        f"`{command('leaderboard', where)}` shows all of them; so does the artifact `{LEADERBOARD_FILE}`.",
        "",
        "| " + " | ".join(each.name for each in COLUMNS) + " |",
        "|" + "---|" * len(COLUMNS),
    ]
    lines += ["| " + " | ".join(_cell(each.text(row)) for each in COLUMNS) + " |" for row in board.ends(SHOWN)]
    if len(board) > SHOWN:
        lines.append(f"\n… and {len(board) - SHOWN} more.")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return shorten(text.replace("|", "\\|").replace("\n", " "))
