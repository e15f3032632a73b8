"""Evaluating a complete grid of every customer on the engine, into a table that searches are replayed on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from search_spaces import SearchSpace, SpaceError
from search_spaces.algorithms.grid import Grid
from tuning.basics.documents import Json
from tuning.compare.tabular.table import Table
from tuning.definition.definition import Definition, define
from tuning.definition.given import definition_of, keys_of
from tuning.driver.runner import TuneRunner
from tuning.errors import PlanError, RunError
from tuning.models.base import SteppedFamily
from tuning.models.registry import families
from tuning.notes import ComparisonCode
from tuning.planning.plan import make_plan
from tuning.records.schema import FINISHED, TrialRecord, canonical
from tuning.runs.results import RunResult


def tabulate(
    definition: Definition,
    levels: int | Mapping[str, int] = 5,
    limit: int = 10_000,
    run_dir: str | None = None,
    resume: bool = False,
    progress: bool | str = True,
    in_process: bool = False,
) -> Table:
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


def _table(result: RunResult, space: SearchSpace, levels: int | Mapping[str, int]) -> Table:
    """Return the table of a grid run, with a note on customers without a complete grid."""
    wanted = {canonical(config) for config in space.grid(levels)}
    rows: dict[str, list[Json]] = {}
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
    return replace(Table.from_frame(frame, space=space), notes=tuple(notes))


def _rows(record: TrialRecord, text: str) -> list[Json]:
    """Return one row per step, and for a failed trial one more without score."""
    # A trial counts with its best step where every prefix of its family is a model of its own.
    prefix = isinstance(families().get(str(record.config.get("model", ""))), SteppedFamily)
    scores, ends = [step.score for step in record.steps], [step.seconds for step in record.steps]
    seconds = np.diff(ends, prepend=0.0).tolist()
    rest = max(0.0, record.seconds - (ends[-1] if ends else 0.0))
    if record.state != FINISHED:
        scores, seconds = [*scores, math.nan], [*seconds, rest]
    elif seconds:
        seconds[-1] += rest
    same = {"task": record.customer, "config": text, "mode": record.mode, "best_step": prefix}
    return [
        {**same, "step": number, "score": score, "seconds": spent}
        for number, (score, spent) in enumerate(zip(scores, seconds, strict=True), 1)
    ]
