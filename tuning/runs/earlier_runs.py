"""How long a plan's run will take, from the newest run of the same definition in its storage."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow.compute as pc

from tuning.basics.wording import duration
from tuning.definition.cpus import default_slots
from tuning.definition.definition import Definition
from tuning.errors import TuningError
from tuning.planning.run_plan import Plan
from tuning.planning.run_time import RunTime
from tuning.records.parts import STUDIES, accepted, read_table
from tuning.runs.listing import runs_in
from tuning.runs.plan_file import frozen_definition, plain
from tuning.runs.results import RunResult
from tuning.runs.resume import MAY_CHANGE
from tuning.study.study import customers_of

AS_BEFORE = (0.6, 1.7)  # of what an earlier run says: machines are busier at one time than at another
START_S = 5.0  # more at most: a run's start and its end, whatever it has to do
LOOKED_AT = 10  # runs of the storage, the newest ones
#: What leaves a trial's time as it is.
AS_LONG = (*MAY_CHANGE, "name", "data", "manifest", "customers", "trials", "seed")


@dataclass(frozen=True)
class EarlierRun:
    """What an earlier run of the same definition took.

    Attributes:
        where: its folder.
        wall: seconds.
        slots: that it had.
        seconds: of its studies in all.
        per_trial: seconds of a trial, by customer.
    """

    where: str
    wall: float
    slots: int
    seconds: float
    per_trial: Mapping[str, float]

    def run_time(self, plan: Plan) -> RunTime:
        """As much longer or shorter as the plan's trials are more or fewer, and its slots."""
        ids = customers_of(plan.studies).texts("id").to_pylist()
        trials = np.maximum(1, plan.studies.numbers("n_trials"))  # a fixed configuration is one fit
        typical = float(np.mean(list(self.per_trial.values())))
        work = float(sum(self.per_trial.get(name, typical) * count for name, count in zip(ids, trials, strict=True)))
        wall = self.wall * work / self.seconds * self.slots / plan.slots
        new = sum(name not in self.per_trial for name in ids) / len(ids)
        some = f"; {round(100 * new)} % of the customers were not in it" if new else ""
        source = f"from {self.where}, which took {duration(self.wall)}{some}"
        least, most = AS_BEFORE
        least, most = least * wall / (1 + new), most * wall * (1 + new) + START_S
        if (budget := plan.spec.definition.time_budget) is not None and most > budget:
            source, least, most = f"{source}; time_budget ends it", min(least, budget), budget
        return RunTime(source, least, most, plan.slots)


def with_run_time(plan: Plan) -> Plan:
    """Return the plan with how long its run will take, where an earlier run of the definition tells it."""
    earlier = _earlier_run(plan.spec.definition)
    return plan if earlier is None else replace(plan, run_time=earlier.run_time(plan))


def _earlier_run(definition: Definition) -> EarlierRun | None:
    """The newest finished run of the same definition in its storage; None also where that cannot be listed."""
    with contextlib.suppress(TuningError):
        for listed in runs_in(definition.storage)[:LOOKED_AT]:
            with contextlib.suppress(TuningError):
                if (found := _measured(RunResult(listed.path), definition)) is not None:
                    return found
    return None


def _measured(result: RunResult, definition: Definition) -> EarlierRun | None:
    before = frozen_definition(result.directory, result.term)
    if before.name != definition.name or _cost(before) != _cost(definition) or result.unfinished:
        return None
    parts = accepted(result.directory, result.term)[::-1]
    studies = read_table(result.directory, parts, STUDIES, ["study", "customer", "trials", "seconds"])
    studies = studies.filter(pc.greater(studies["trials"], 0))
    if not len(studies):
        return None
    per_trial = pc.divide(studies["seconds"], pc.cast(studies["trials"], "double"))
    return EarlierRun(
        where=result.directory.shown,
        wall=result.summary()["wall_seconds"],
        slots=before.slots or default_slots(),
        seconds=pc.sum(studies["seconds"]).as_py(),
        per_trial=dict(zip(studies["customer"].to_pylist(), per_trial.to_pylist(), strict=True)),
    )


def _cost(definition: Definition) -> dict[str, object]:
    """What decides how long a trial takes."""
    return {name: value for name, value in plain(definition).items() if name not in AS_LONG}
