"""How the work on a run has ended: `outcome.json` in its folder, for whoever comes later.

A command with `--output json` prints the same; so the service, which waits for no storage, has it, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypedDict, cast

from tuning.basics.documents import Json
from tuning.errors import TuningError
from tuning.records.ownership import newest_claimed
from tuning.runs.progress import ProgressState
from tuning.storage.run_directory import RunDirectory

OUTCOME = "outcome.json"


class RunOutcome(TypedDict):
    """The end of the work on a run, in one file with the values of `RunCounts`.

    term: of the owner that has ended. state: see `Progress`. outcome, exit_code: those of the command. code, values:
    why, for programs: `done`, `time_budget`, or that of the error. reason: the error; empty without one. not_copied:
    how much is not in MLflow, by kind. lost_nodes: machines of a cluster that were lost meanwhile.
    """

    term: int
    state: ProgressState
    outcome: str
    exit_code: int
    code: str
    values: Json
    reason: str
    not_copied: Mapping[str, int]
    lost_nodes: Sequence[str]


def read_outcome(directory: RunDirectory) -> RunOutcome | None:
    """Return how the newest owner's work has ended; None while it goes on, and where it could not say so."""
    try:
        found = cast(RunOutcome, json.loads(directory.read(OUTCOME)))
        newest = newest_claimed(directory)
        return found if newest is not None and newest.number == found["term"] else None
    except (OSError, ValueError, TypeError, KeyError, TuningError):  # the records say what is there
        return None
