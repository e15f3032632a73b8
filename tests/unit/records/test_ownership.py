"""One owner per run: terms that only one can claim, leases that count, and writes of old owners that nobody reads."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from builders import definition, tuner_of, valley, write_customers
from chaos import truth, wait_for

from tuning import RunResult, TuneRunner
from tuning.basics.timing import USUAL, Timing
from tuning.errors import RunOwnedError
from tuning.execution.packed import work_batch
from tuning.execution.worker import WorkerRun
from tuning.records.lease import Heartbeat, Lease, last_heartbeat, wait_until_dead
from tuning.records.ownership import Owner, Term, claim, newest_claimed, newest_term, this_process
from tuning.runs.begin import begin, resume_run
from tuning.storage.run_directory import RunDirectory

ELSEWHERE = Owner(host="elsewhere", pid=4711)
QUIET = {"progress": False, "in_process": True}


def _counting(directory: RunDirectory, term: Term, beats: int) -> tuple[Callable[[], float], Callable[[float], None]]:
    """An observer's clock, and a sleep during which the owner counts as often as it still lives."""
    now, left = [1000.0], [beats]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        if left[0]:
            left[0] -= 1
            directory.write(term.lease, b'{"counter": %d, "seconds": 1.0, "released": false}' % (beats - left[0]))

    return lambda: now[0], sleep


def test_an_owner_that_counts_is_left_alone(tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path))
    term = replace(claim(directory, 1, (), 1, 0.0), owner=ELSEWHERE)
    clock, sleep = _counting(directory, term, beats=1)
    with pytest.raises(RunOwnedError, match="is being run by elsewhere:4711, which is alive"):
        wait_until_dead(directory, term, clock=clock, sleep=sleep)


def test_an_owner_whose_counter_stood_still_is_dead_after_the_stated_time(tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path))
    term = replace(claim(directory, 1, (), 1, 0.0), owner=ELSEWHERE)
    clock, sleep = _counting(directory, term, beats=0)
    start = clock()
    wait_until_dead(directory, term, clock=clock, sleep=sleep)
    assert USUAL.dead_after_s <= clock() - start <= USUAL.dead_after_s + 1
    assert USUAL.dead_after_s >= 5 * USUAL.heartbeat_s


def test_the_wall_clock_decides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = RunDirectory(str(tmp_path))
    term = replace(claim(directory, 1, (), 1, 0.0), owner=ELSEWHERE)
    monkeypatch.setattr("time.time", lambda: 0.0)
    clock, sleep = _counting(directory, term, beats=3)
    with pytest.raises(RunOwnedError):
        wait_until_dead(directory, term, clock=clock, sleep=sleep)


def test_a_dead_process_of_this_machine_is_known_at_once(tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path))
    child = os.fork()
    if child == 0:
        claim(directory, 1, (), 1, 0.0)
        os._exit(0)
    os.waitpid(child, 0)
    term = newest_claimed(directory)
    assert term is not None
    assert term.owner.pid == child
    wait_until_dead(directory, term, sleep=lambda _: pytest.fail("it waited"))


def test_a_process_number_used_again_is_another_process() -> None:
    me = this_process()
    assert not me.is_dead
    assert replace(me, started=me.started - 1).is_dead
    assert not replace(me, started=0, machine="another").is_dead


def test_a_run_cannot_be_resumed_while_it_runs_in_this_process(tmp_path: Path) -> None:
    refusals: list[str] = []
    run = str(tmp_path / "run")

    def objective(config: dict[str, float], seed: int) -> float:
        with pytest.raises(RunOwnedError) as refusal:
            runner.run(run, resume=True, **QUIET)
        refusals.append(str(refusal.value))
        return valley(config, seed)

    runner = tuner_of(objective, trials=2)
    runner.run(run, **QUIET)
    assert len(refusals) == 2
    assert "is already being run by this very process" in refusals[0]


def test_the_lease_counts_and_is_released_at_the_end(tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path))
    term = claim(directory, 1, (), 1, 0.0)
    with Lease(directory, term, Timing(heartbeat_s=0.01)).hold():
        first = last_heartbeat(directory, term).counter
        wait_for(lambda: last_heartbeat(directory, term).counter > first + 2)
        with pytest.raises(RunOwnedError):
            wait_until_dead(directory, term)
    end = last_heartbeat(directory, term)
    assert end.released
    wait_until_dead(directory, replace(term, owner=ELSEWHERE), sleep=lambda _: pytest.fail("it waited"))


def test_an_owner_finds_out_that_it_was_replaced(tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path))
    with Lease(directory, claim(directory, 1, (), 1, 0.0), Timing(heartbeat_s=0.01)).hold() as lease:
        claim(directory, 2, (), 1, 0.0)
        assert wait_for(lambda: lease.taken_by) == str(this_process())


def test_an_owner_finds_out_that_its_run_was_deleted(tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path / "run"))
    term = claim(directory, 1, (), 1, 0.0)
    with Lease(directory, term, Timing(heartbeat_s=0.01)).hold() as lease:
        wait_for(lambda: last_heartbeat(directory, term).counter > 3)
        assert not lease.gone
        directory.remove_folder("terms")
        assert wait_for(lambda: lease.gone)
        directory.discard()
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_whatever_an_old_owner_writes_is_never_read(tmp_path: Path) -> None:
    """The old owner is asleep while another one takes over; then it wakes up and finishes everything."""
    write_customers(tmp_path / "data", 3)
    fields = definition(tmp_path / "data")
    old = begin(TuneRunner(**fields).definition, str(tmp_path / "run"))
    old.lease.release()
    new = resume_run(old.directory)
    for batch in range(len(old.plan.batches)):
        work_batch(WorkerRun.from_owned(old), batch, lambda _: None)
    assert len(list(old.directory.list(old.term.records))) >= 2
    assert RunResult(old.directory).trial_records == []
    assert set(RunResult(old.directory).leaderboard()["reason"]) == {"not finished yet: resume the run"}
    assert set(RunResult(old.directory).leaderboard()["trials"]) == {0}
    for batch in range(len(new.plan.batches)):
        work_batch(WorkerRun.from_owned(new), batch, lambda _: None)
    new.lease.release()
    first = RunResult(old.directory)
    for batch in range(len(old.plan.batches)):
        work_batch(WorkerRun.from_owned(old), batch, lambda _: None)  # it also saves its models again
    for customer in ("c0000", "c0001", "c0002"):
        first.model(customer)
    whole = TuneRunner(**fields).run(str(tmp_path / "whole"), **QUIET)
    assert truth(RunResult(old.directory)) == truth(whole)


def test_an_owner_that_died_before_its_plan_stands_in_nobodys_way(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 2)
    runner = TuneRunner(**definition(tmp_path / "data"))
    directory = RunDirectory(str(tmp_path / "run"))
    claim(directory, 1, (), 4, 0.0)
    assert newest_term(directory) is None
    result = runner.run(directory.uri, **QUIET)
    assert result.term.number == 2
    claim(directory, 3, (), 4, 0.0)
    assert RunResult(directory).term.number == 2
    assert truth(TuneRunner.resume(directory.uri, **QUIET)) == truth(result)


def test_a_lease_that_cannot_be_read_is_no_sign_of_life(tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path))
    term = claim(directory, 1, (), 1, 0.0)
    directory.write(term.lease, b"{torn")
    assert last_heartbeat(directory, term) == Heartbeat()
