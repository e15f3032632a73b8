"""Evaluating a complete grid of every customer on the engine, into a table that searches are replayed on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

import pandas as pd

from search_spaces import SearchSpace, SpaceError
from search_spaces.algorithms.grid import Grid
from tuning.compare.tabular.table import Table
from tuning.definition.definition import Definition, define
from tuning.definition.given import definition_of, keys_of
from tuning.driver.runner import TuneRunner
from tuning.errors import PlanError, RunError
from tuning.models.base import SteppedFamily
from tuning.models.registry import families
from tuning.notes import ComparisonCode, Note
from tuning.planning.plan import make_plan
from tuning.records.schema import FINISHED, TrialRecord, canonical
from tuning.runs.results import RunResult


class TableRow(TypedDict):
    """A row of a table, by column."""

    task: str
    config: str
    mode: str
    best_step: bool
    step: int
    score: float
    seconds: float


@dataclass(frozen=True)
class Tabulated:
    """A table, and what was left out of it."""

    table: Table
    notes: tuple[Note, ...]


def tabulate(
    definition: Definition,
    levels: int | Mapping[str, int] = 5,
    limit: int = 10_000,
    run_dir: str | None = None,
    resume: bool = False,
    progress: bool | str = True,
    in_process: bool = False,
) -> Tabulated:
    """Run the grid of a definition's search space on every customer, every trial to its end.

    Args:
        definition: what to tune; its algorithm, scheduler and trials are replaced by the grid's.
        levels: values per float or int (choices have all of theirs), for all or by name.
        limit: refuse a larger grid.
        run_dir, resume, progress, in_process: as in `TuneRunner.run`.

    Raises:
        PlanError: the grid is too large.
        RunError: no customer has a complete grid.
    """
    grid = {"name": "grid", "levels": dict(levels) if isinstance(levels, Mapping) else levels, "limit": limit}
    given = keys_of(definition_of(definition, {}))
    fixed = {"algorithm": grid, "scheduler": "fifo", "placement": "packed", "save_models": False, "compare": None}
    made = define({**given, **fixed})
    space = make_plan(made, run_dir=run_dir).spec.space
    searched = made.algorithm
    assert isinstance(searched, Grid)
    try:
        size = searched.size(space)
    except SpaceError as error:
        raise PlanError(str(error)) from error
    # The default configuration comes first in every study, whether it is on the grid or not.
    made = define({**given, **fixed, "trials": size + 1})
    result = TuneRunner(made).run(run_dir, progress=progress, in_process=in_process, resume=resume)
    return _table(result, space, searched.levels)


def _table(result: RunResult, space: SearchSpace, levels: int | Mapping[str, int]) -> Tabulated:
    """The table of a grid run; customers without a complete grid are left out and named."""
    wanted = {canonical(config) for config in space.grid(levels)}
    rows: dict[str, list[TableRow]] = {}
    seen: dict[str, set[str]] = {}
    for record in result.trial_records:
        text = canonical(record.config)
        if text in wanted:
            seen.setdefault(record.customer, set()).add(text)
            rows.setdefault(record.customer, []).extend(_rows(record, text))
    complete = [customer for customer in rows if len(seen[customer]) == len(wanted)]
    left_out = sorted(set(result.planned.values()) - set(complete))
    if not complete:
        raise RunError(f"{result.directory.shown} has no customer with a complete grid: resume the run.")
    frame = pd.DataFrame([row for customer in complete for row in rows[customer]])
    notes = [ComparisonCode.GRID_INCOMPLETE(names=left_out)] if left_out else []
    return Tabulated(Table.from_frame(frame, space=space), tuple(notes))


def _rows(record: TrialRecord, text: str) -> list[TableRow]:
    """One row per step, and for a failed trial one more without score."""
    prefix = _best_prefix(record)

    def row(step: int, score: float, seconds: float) -> TableRow:
        return {
            "task": record.customer,
            "config": text,
            "mode": record.mode,
            "best_step": prefix,
            "step": step,
            "score": score,
            "seconds": seconds,
        }

    rows: list[TableRow] = []
    before = 0.0
    for number, step in enumerate(record.steps, 1):
        rows.append(row(number, step.score, step.seconds - before))
        before = step.seconds
    rest = max(0.0, record.seconds - before)
    if record.state != FINISHED:
        rows.append(row(len(rows) + 1, math.nan, rest))
    elif rows:
        rows[-1]["seconds"] += rest
    return rows


def _best_prefix(record: TrialRecord) -> bool:
    """Whether the trial's best step counts: where a family's every prefix is a model of its own."""
    return isinstance(families().get(str(record.config.get("model", ""))), SteppedFamily)
