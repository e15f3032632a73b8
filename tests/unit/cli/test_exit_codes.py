"""Whoever calls a command is told what to do by its exit code, and with `--output json` by a word."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import FAST, tuning

from tuning.basics import exit_codes
from tuning.errors import (
    ChangedDataError,
    DataError,
    DefinitionError,
    DeletedRunError,
    MachineError,
    NoModelError,
    PlanError,
    RunError,
    RunInterrupted,
    RunOwnedError,
    StorageError,
    StudyError,
    TuningError,
    UnknownCustomerError,
    UntrustedCodeError,
    exit_code_of,
)
from tuning.notes import EndCode
from tuning.records.ownership import claim, newest_claimed
from tuning.storage.run_directory import RunDirectory

JSON = ("--output", "json")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        *[(kind("x"), "invalid") for kind in (DefinitionError, PlanError, DataError, UnknownCustomerError)],
        (ChangedDataError("x"), "invalid"),
        (NoModelError(EndCode.NOT_SAVED()), "none"),
        (RunOwnedError("x"), "owned"),
        *[(kind("x"), "refused") for kind in (RunError, UntrustedCodeError, DeletedRunError)],
        *[(kind("x"), "failed") for kind in (StorageError, MachineError, StudyError, TuningError)],
        (RunInterrupted(2), "interrupted"),
        (RunInterrupted(15), "interrupted"),
        (KeyboardInterrupt(), "interrupted"),
    ],
)
def test_each_error_has_its_code_and_word(error: BaseException, outcome: str) -> None:
    code = exit_code_of(error)
    assert code is not None
    assert exit_codes.outcome_of(code) == outcome


def test_another_try_is_worth_it_after_one_code_alone() -> None:
    assert exit_code_of(OSError("no error of ours")) is None  # a traceback, with which Python ends with 1
    assert [each.number for each in exit_codes.CODES] == [0, 1, 2, 3, 4, 5, 6, 130]
    assert len({each.outcome for each in exit_codes.CODES}) == len(exit_codes.CODES)
    assert all(f"{each.number} {each.short}" in " ".join(tuning("--help").stdout.split()) for each in exit_codes.CODES)


def test_an_error_is_an_object_with_its_word_and_reason(definition: Path, finished: Path, tmp_path: Path) -> None:
    taken = tuning("run", definition, "--run-dir", finished, *JSON, *FAST)
    assert taken.exit_code == 6
    told = json.loads(taken.stdout)
    assert told["outcome"] == "refused"
    assert "already holds a run" in told["reason"]
    assert f"error: {told['reason']}" in taken.stderr
    changed = tuning("run", definition, "--run-dir", finished, "--resume", "--set", "seed=7", *JSON, *FAST)
    assert (changed.exit_code, json.loads(changed.stdout)["outcome"]) == (6, "refused")
    wrong = tuning("run", definition, "--run-dir", tmp_path / "new", "--set", "target=none_such", *JSON, *FAST)
    assert (wrong.exit_code, json.loads(wrong.stdout)["outcome"]) == (2, "invalid")
    none = tuning("leaderboard", tmp_path, *JSON)
    assert (none.exit_code, json.loads(none.stdout)["outcome"]) == (6, "refused")


def test_a_run_that_somebody_else_runs_is_owned(definition: Path, finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "run")
    directory = RunDirectory(tmp_path / "run")
    last = newest_claimed(directory)
    assert last is not None
    claim(directory, last.number + 1, (), 2, 0.0)
    taken = tmp_path / "run" / "terms" / f"{last.number + 1:04d}.json"
    other = json.loads(taken.read_text())
    taken.write_text(json.dumps({**other, "owner": {"host": "elsewhere", "pid": 7, "machine": "m", "started": 1}}))
    from tuning.records import lease

    beats = iter(range(1, 1000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lease, "last_heartbeat", lambda *_: lease.Heartbeat(counter=next(beats)))
        answer = tuning("run", definition, "--run-dir", tmp_path / "run", "--resume", *JSON, *FAST)
    assert (answer.exit_code, json.loads(answer.stdout)["outcome"]) == (5, "owned"), answer.output


def test_a_storage_that_fails_may_be_tried_again(definition: Path, tmp_path: Path) -> None:
    from tuning.storage import local_disk

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_disk, "_place_new", full)
        answer = tuning("run", definition, "--run-dir", tmp_path / "run", *JSON, *FAST)
    assert (answer.exit_code, json.loads(answer.stdout)["outcome"]) == (1, "failed"), answer.output
    assert "disk is full" in json.loads(answer.stdout)["reason"]


ABORTS = """
import ctypes, sys
from tuning.cli.program import main
libc = ctypes.CDLL(None)
libc.__cxa_atexit(libc.abort, None, None)  # as a native library does whose threads are about to end
sys.argv = ["tuning", "completion", "bash"]
main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="of the GNU C library")
def test_a_library_that_aborts_once_the_program_is_done_changes_no_code() -> None:
    done = subprocess.run([sys.executable, "-c", ABORTS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.rstrip().endswith("_tuning_completion_setup;")  # all that it has said is there
