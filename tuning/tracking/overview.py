"""What a run that has ended shows of itself in MLflow: figures, a text, its leaderboard, pictures, plan, definition."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.wording import amount, command, shorten
from tuning.records.figures import shown_in
from tuning.records.schema import FAILED, FINISHED, OK, STOPPED
from tuning.runs.leaderboard import Leaderboard
from tuning.runs.outcome import LEADERBOARD_FILE, REPORT, answer
from tuning.runs.plan_file import DEFINITION, frozen_definition
from tuning.runs.results import RunResult
from tuning.storage.names import mask_in
from tuning.tracking.summary import Summary
from tuning.tracking.tracked_runs import PREFIX

SHOWN = 15
COLUMNS = shown_in("mlflow")
MEDIANS = tuple(each.name for each in COLUMNS if each.is_number)


def overview(
    result: RunResult, plan: Mapping[str, object], started: float, ended: float, *, failed: bool = False
) -> tuple[Summary, dict[str, bytes]]:
    """Return the summary of a run that has ended, and the artifacts that are no files of the run yet.

    plan: the plan's figures (`Plan.to_dict()`). started, ended: seconds since 1970. failed: the run could not go on.
    """
    counts, board, unfinished = result.summary(), result.board(), result.unfinished
    best = board.standings.best_studies(["status", *MEDIANS])
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
    contents = {
        DEFINITION: mask_in(result.directory.read(DEFINITION).decode()).encode(),
        "plan.json": json.dumps(dict(plan), indent=1, default=str).encode(),
    }
    comparison = frozen_definition(result.directory, result.term).compare is not None
    files: list[str] = []
    if failed or comparison:
        contents[LEADERBOARD_FILE] = b"".join(board.csv())  # the others have it in their folder
    elif result.directory.exists(REPORT):
        contents |= _pictures(best, board.metric)
        files = [LEADERBOARD_FILE, REPORT]
    else:
        files = [LEADERBOARD_FILE]
    said = [f"{result.outcome(counts)}, {amount(counts['trials'], 'trial')}."] if comparison else answer(result, counts)
    summary = Summary(
        state=FAILED if failed else STOPPED if unfinished else FINISHED,
        started=started,
        ended=ended,
        metrics={name: float(value) for name, value in figures.items()},
        tags={
            f"{PREFIX}{name}": str(plan[name]) for name in ("algorithm", "scheduler", "metric", "task") if name in plan
        },
        artifacts={name: name for name in files},
        note=_note(said, board, unfinished, result.directory.shown),
    )
    return summary, contents


def _pictures(best: pa.Table, metric: str) -> dict[str, bytes]:
    """name → SVG: the gain of every customer, and tuned against baseline scores; {} when nothing was scored."""
    if best["test_score"].null_count == len(best) or best["baseline_test_score"].null_count == len(best):
        return {}
    from tuning.reporting.figure import drawn_svg  # with matplotlib, which the report has loaded
    from tuning.runs import plots

    drawn = {"plots/baseline-and-tuned.svg": drawn_svg(partial(plots.baseline_and_tuned, best, metric))}
    if best["gain"].null_count < len(best):
        drawn["plots/gain.svg"] = drawn_svg(partial(plots.gains, best, metric))
    return drawn


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
