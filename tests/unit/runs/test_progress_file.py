"""A run says in its own folder how far it is, so that whoever comes later can read it."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import definition, tuner_of, write_customers

from tuning import TuneRunner
from tuning.basics.timing import Timing
from tuning.errors import StorageError
from tuning.records.lease import Lease
from tuning.records.ownership import Owner, claim, this_process
from tuning.runs.observer import RunObserver
from tuning.runs.progress import PROGRESS, Progress, earlier_rate, now_text, read_progress, write_progress
from tuning.storage.run_directory import RunDirectory

FIELDS = {
    "state", "customers", "studies", "trials", "done_studies", "done_trials", "noun", "share", "median_gain",
    "relative", "best", "no_model", "failed_trials", "seconds", "rate", "seconds_left", "doing", "slots", "term",
    "owner", "updated",
}  # fmt: skip


def progress(**changes: Any) -> Progress:
    none: dict[str, Any] = dict.fromkeys(Progress.__dataclass_fields__, 0)
    none |= {"noun": "customer", "state": "running", "term": 1, "owner": this_process(), "doing": ""}
    return Progress(**{**none, "updated": now_text(), **changes})


def read(run: Path) -> Progress:
    found = read_progress(run)
    assert found is not None
    return found


def test_a_finished_run_has_said_all_that_the_last_line_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_customers(tmp_path / "data", 3)
    fields = definition(tmp_path / "data", slots=1)
    TuneRunner(**fields).run(tmp_path / "run", progress="jsonl", in_process=True)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    written = json.loads((tmp_path / "run" / PROGRESS).read_text())
    assert set(written) == set(lines[-1]) == FIELDS
    figures = FIELDS - {"state", "seconds", "rate", "updated"}
    assert {name: written[name] for name in figures} == {name: lines[-1][name] for name in figures}
    found = read(tmp_path / "run")
    assert found.to_dict() == written
    assert (found.state, found.done_studies, found.studies, found.done_trials, found.trials) == (
        "finished", 3, 3, 12, 12,
    )  # fmt: skip
    assert (found.customers, found.slots, found.term, found.owner) == (3, 1, 1, this_process())
    assert found.updated.endswith("+00:00")


def test_somebody_else_can_read_it_while_the_run_goes_on(tmp_path: Path) -> None:
    """The objective waits until another thread has seen its own first trials in the file."""
    seen, enough = list[Progress](), threading.Event()

    def look() -> None:
        while not enough.wait(0.01):
            found = read_progress(tmp_path / "run")
            if found is not None and found.done_trials:
                seen.append(found)
                enough.set()

    def objective(config: dict[str, float], seed: int) -> float:
        count[0] += 1
        if count[0] == 8:
            assert enough.wait(60)
        return config["x"]

    count = [0]
    reader = threading.Thread(target=look)
    reader.start()
    runner = tuner_of(objective, trials=10)
    runner.timing = Timing(progress_s=0.02, parts_s=0.0)
    runner.run(tmp_path / "run", progress=False, in_process=True)
    reader.join()
    assert seen[0].state == "running"
    assert 0 < seen[0].done_trials < 10
    assert not list((tmp_path / "run").glob(".tmp-*"))


def test_a_resumed_run_names_its_new_owner_and_all_customers(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 2)
    TuneRunner(**definition(tmp_path / "data")).run(tmp_path / "run", progress=False, in_process=True)
    write_customers(tmp_path / "data", 3)
    TuneRunner(**definition(tmp_path / "data")).run(tmp_path / "run", progress=False, in_process=True, resume=True)
    found = read(tmp_path / "run")
    assert (found.term, found.customers, found.studies, found.done_studies) == (2, 3, 3, 3)


@pytest.mark.long
def test_how_a_run_has_ended_is_said(tmp_path: Path) -> None:
    runner = tuner_of(lambda config, seed: config["x"], trials=10_000, time_budget=0.5)
    runner.run(tmp_path / "spent", progress=False, in_process=True)
    assert (read(tmp_path / "spent").state, read(tmp_path / "spent").seconds_left) == ("spent", None)
    begun = threading.Event()

    def objective(config: dict[str, float], seed: int) -> float:
        begun.set()
        return config["x"]

    handle = tuner_of(objective, trials=10_000).run(
        tmp_path / "stopped", progress=False, in_process=True, background=True
    )
    assert begun.wait(60)
    handle.cancel()
    handle.wait(60)
    assert read(tmp_path / "stopped").state == "stopped"


def test_it_is_written_after_all_that_others_write_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = dict[str, str]()
    for kind in RunObserver.__subclasses__():
        ended = kind.ended

        def noted(self: Any, end: Any, ended: Any = ended, name: str = kind.__name__) -> None:
            ended(self, end)
            seen[name] = read(tmp_path / "run").state

        monkeypatch.setattr(kind, "ended", noted)
    write_customers(tmp_path / "data", 1)
    TuneRunner(**definition(tmp_path / "data")).run(tmp_path / "run", progress=False, in_process=True)
    assert set(seen.values()) == {"running"}
    assert len(seen) >= 4
    assert read(tmp_path / "run").state == "finished"


def test_the_last_owners_rate_is_that_of_so_many_slots(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    assert earlier_rate(directory, 4) is None
    write_progress(directory, progress(rate=3.0, slots=2, state="stopped"))
    assert earlier_rate(directory, 4) == 6.0
    write_progress(directory, progress(rate=None, slots=2))
    assert earlier_rate(directory, 4) is None
    (tmp_path / PROGRESS).write_text("[]")
    assert earlier_rate(directory, 4) is None


def test_the_state_is_that_of_now(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    assert read_progress(tmp_path) is None
    term = claim(directory, 1, (), 4, 0.0)
    write_progress(directory, progress(seconds_left=9.0))
    assert read(tmp_path).state == "running"
    lease = Lease(directory, term).hold()
    lease.release()  # without a word on how it has ended
    assert (read(tmp_path).state, read(tmp_path).seconds_left) == ("unfinished", None)
    claim(directory, 2, (), 4, 0.0)  # somebody resumes it
    assert (read(tmp_path).state, read(tmp_path).term) == ("running", 1)
    write_progress(directory, progress(term=2, state="finished"))
    assert read(tmp_path).state == "finished"


def test_an_owner_that_was_killed_runs_no_more(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    child = os.fork()
    if child == 0:
        claim(directory, 1, (), 4, 0.0)
        write_progress(directory, progress(owner=this_process()))
        os._exit(0)
    os.waitpid(child, 0)
    assert read(tmp_path).state == "unfinished"
    assert read(tmp_path).owner.pid == child


def test_a_damaged_file_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / PROGRESS).write_text("[]")
    with pytest.raises(StorageError, match=r"progress.json is damaged .* Remove it"):
        read_progress(tmp_path)
    whole = replace(progress(), owner=Owner("elsewhere", 7)).to_dict()
    (tmp_path / PROGRESS).write_text(json.dumps({**whole, "of_a_newer_version": 1}))
    assert read(tmp_path).owner == Owner("elsewhere", 7)


def test_a_run_that_was_deleted_is_not_made_anew(tmp_path: Path) -> None:
    import shutil

    gone = threading.Event()

    def objective(config: dict[str, float], seed: int) -> float:
        if not gone.is_set():
            shutil.rmtree(tmp_path / "run")
            gone.set()
        return config["x"]

    runner = tuner_of(objective, trials=3)
    runner.timing = Timing(progress_s=0.01, heartbeat_s=60.0)
    with pytest.raises(StorageError, match="deleted while the run went on"):
        runner.run(tmp_path / "run", progress=False, in_process=True)
    assert not (tmp_path / "run" / PROGRESS).exists()
