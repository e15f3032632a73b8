"""A study that is put aside says how to see its crash, in a way that works for its run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tuning import TuneRunner
from tuning.execution.study_record import quarantine
from tuning.execution.worker import WorkerContext
from tuning.runs.begin import begin
from tuning.runs.plan_file import read_plan

FRAME = pd.DataFrame({"a": range(20), "y": range(20)})


def as_file(folder: Path) -> str:
    FRAME.to_csv(folder / "acme.csv", index=False)
    return str(folder / "acme.csv")


@pytest.mark.parametrize(
    ("data_of", "said"),
    [
        (as_file, "tuning run {run}/definition.yaml --customer acme --in-process"),
        (lambda folder: {"acme": as_file(folder)}, "tuning run {run}/definition.yaml --customer acme --in-process"),
        (lambda folder: {"acme": FRAME}, "TuneRunner(…, customers=['acme']).run(in_process=True)"),
        (lambda folder: FRAME.assign(who="acme"), "TuneRunner(…, customers=['acme']).run(in_process=True)"),
    ],
    ids=["file", "mapping of files", "mapping of frames", "frame"],
)
def test_the_way_to_reproduce_a_crash_needs_nothing_that_only_the_program_had(
    tmp_path: Path, data_of: Any, said: str
) -> None:
    data = data_of(tmp_path)
    by = "who" if isinstance(data, pd.DataFrame) else None
    fields = {"data": data, "by": by, "target": "y", "task": "regression", "search_space": "ridge"}
    owned = begin(
        TuneRunner(**{name: value for name, value in fields.items() if value is not None}).definition,
        str(tmp_path / "run"),
    )
    owned.lease.release()
    recorded = read_plan(owned.directory, owned.term)  # as a worker has it
    context = WorkerContext.open(owned.directory, owned.run, recorded.spec)
    record = quarantine(context, recorded.studies[0], [], what="trial 3", times=2, cause="it crashed")
    assert str(record.reason).endswith(f"Reproduce it with: {said.format(run=tmp_path / 'run')}")
