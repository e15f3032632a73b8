"""What Tune runs next: spread trials first, batches on the slots that they leave; and who gets a free worker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from spread_workers import job_of_one_process, study, together

from tuning.definition.options import Resources
from tuning.evaluation.fixed import FixedConfiguration
from tuning.execution.bridge import RunScheduler
from tuning.execution.jobs import BatchJob, EndedStudy, FitJob, Job, TrialJob
from tuning.execution.run_queue import RunQueue
from tuning.execution.spread.open_studies import OpenStudies
from tuning.models.worker_group import ActorGroup
from tuning.planning.capacity import Capacity, has_room

ONE = Resources()


def batches(count: int, needs: Resources = ONE) -> list[BatchJob]:
    return [BatchJob.from_resources(number, needs) for number in range(count)]


def machines(*cpus: float, patience: float = 900.0) -> Capacity:
    """Of so many CPUs each."""
    return Capacity(lambda: [{"CPU": each} for each in cpus], patience)


def kinds(queue: RunQueue) -> str:
    """What Tune is given until there is nothing now: "t" for a trial, "b" for a batch, "f" for a last fit."""
    letters = {BatchJob: "b", TrialJob: "t", FitJob: "f"}
    return "".join(letters[type(job)] for _, job in iter(queue.next, None))


def giants(folder: Path, n_trials: int = 6, job_of: Any = job_of_one_process, **fields: Any) -> RunQueue:
    """A spread study of so many trials beside twenty batches, on four slots."""
    studies = together(folder, [study("giant", "random", n_trials=n_trials)], job_of=job_of)
    return RunQueue(
        **{"slots": 4, "capacity": machines(4), "batches": batches(20), "studies": studies, "at_once": 4, **fields}
    )


def test_trials_come_first_and_batches_fill_what_they_leave(tmp_path: Path) -> None:
    queue = giants(tmp_path)
    first = [queue.next() for _ in range(4)]
    assert all(found is not None and isinstance(found[1], TrialJob) for found in first)
    assert queue.next() is None  # all slots are taken
    for found in first[:3]:
        assert found is not None
        queue.end(found[0])
    assert kinds(queue) == "ttb"  # the last two trials, and one slot is left
    assert not queue.closed
    queue.end("batch_00000")
    assert kinds(queue) == "b"


def test_as_many_trials_at_once_as_have_room_and_batches_beside_them(tmp_path: Path) -> None:
    assert kinds(giants(tmp_path, at_once=1)) == "tbbb"


def with_group(live: Any, trial: Any) -> TrialJob:
    """A trial of three CPUs."""
    return TrialJob.from_trial(live.study, trial, worker_group=ActorGroup(actors=2))


def test_no_batch_begins_on_cpus_that_a_trial_with_a_group_is_to_have(tmp_path: Path) -> None:
    queue = giants(tmp_path, at_once=1, job_of=with_group)
    assert kinds(queue) == "tb"  # three CPUs and one
    queue.end("batch_00000")
    assert kinds(queue) == "b"
    (trial,) = [name for name, job in queue._flying.items() if isinstance(job, TrialJob)]
    queue.end(trial)
    assert kinds(queue) == "t"  # and not the three batches for which there are CPUs now


def growing(left: list[float], patience: float) -> Capacity:
    return Capacity(lambda: [{"CPU": each} for each in left], patience)


def waiting(queue: RunQueue) -> list[str]:
    """The trials that Tune has no place for: all of them."""
    return [name for name, job in queue._flying.items() if isinstance(job, TrialJob)]


def test_a_trial_that_machines_have_no_room_for_any_more_holds_up_no_batch(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    left = [4.0]
    queue = giants(tmp_path, at_once=1, job_of=with_group, capacity=growing(left, 900.0))
    assert kinds(queue) == "tb"
    left[:] = [0.5, 0.5, 1.0, 1.0]  # a machine is lost; for three bundles of one CPU each there is no room on these
    assert queue.timed_out([]) == []
    assert not caplog.messages  # it trains; Tune says when it does not
    assert kinds(queue) == "bb"
    assert queue.timed_out(waiting(queue)) == queue.timed_out(waiting(queue)) == []
    (said,) = caplog.messages
    assert said == (
        "a trial of 'giant' takes 3 times 1 CPU, for which the machines that are there have no room: it waits up to "
        "900 s for another one."
    )
    left[:] = [4.0]
    assert queue.timed_out(waiting(queue)) == []
    queue.end("batch_00000")
    queue.end("batch_00001")
    assert kinds(queue) == ""
    queue.end("batch_00002")
    assert kinds(queue) == "b"


def test_a_trial_for_which_no_machine_comes_fails_with_a_reason_and_those_after_it_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [4.0]
    now = [0.0]
    monkeypatch.setattr("tuning.planning.capacity.time", SimpleNamespace(monotonic=lambda: now[0]))
    queue = giants(tmp_path, at_once=1, job_of=with_group, capacity=growing(left, 900.0))
    queue.next()
    (first,) = waiting(queue)
    left[:] = [1.0, 1.0]
    assert queue.timed_out([first]) == []
    now[0] = 900.0
    assert queue.timed_out([]) == []  # it has its place, whatever has become of that
    assert queue.timed_out([first]) == [first]
    queue.end(first)
    assert queue.studies is not None
    (study,) = queue.studies._flying
    (record,) = study.records
    assert (record.state, str(record.reason)) == (
        "failed",
        "the trial: it takes 3 times 1 CPU, for which the machines that are there have no room, and none has joined "
        "them within 900 s; add one, then resume the run with more `trials`",
    )
    assert not queue.idle_end([])
    queue.next()
    (second,) = waiting(queue)
    assert queue.idle_end([second])  # the first one's worker may be idle, and its actors have no place any more
    assert queue.timed_out([second]) == [second]  # at once
    queue.end(second)
    queue.next()
    left[:] = [4.0]  # a machine has come
    assert queue.timed_out(waiting(queue)) == []
    left[:] = [1.0]
    assert queue.timed_out(waiting(queue)) == []  # time begins anew
    assert not queue.closed


def test_a_batch_for_which_no_machine_comes_is_left_with_a_reason_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    left, now, said = [4.0], [0.0], dict[int, str]()
    monkeypatch.setattr("tuning.planning.capacity.time", SimpleNamespace(monotonic=lambda: now[0]))
    large = [BatchJob.from_resources(number, Resources(cpus=4)) for number in range(4)]
    queue = RunQueue(
        3,
        growing(left, 900.0),
        [*large, BatchJob.from_resources(4, ONE)],
        no_place=lambda batch, why: said.update({batch: str(why)}),
    )
    first = [name for name, _ in iter(queue.next, None)]
    left[:] = [2.0, 2.0]  # the only machine with four CPUs is lost
    assert queue.timed_out(first) == []
    (warned,) = caplog.messages
    no_room = "takes 4 CPU, for which the machines that are there have no room"
    assert warned == f"a worker {no_room}: it waits up to 900 s for another one."
    now[0] = 899.0
    assert (queue.timed_out(first), said) == ([], {})
    now[0] = 900.0
    assert queue.timed_out(first[1:]) == first[1:]  # the first one has a worker, wherever that is
    for name in first:
        queue.end(name)
    second = [name for name, _ in iter(queue.next, None)]
    assert second == ["batch_00003", "batch_00004"]
    assert queue.timed_out(second) == ["batch_00003"]  # at once; for the other one there is room
    for name in second:
        queue.end(name)
    assert queue.closed
    none_came = "none has joined them within 900 s; add one, then resume the run"
    assert said == dict.fromkeys((1, 2, 3), f"a worker: it {no_room}, and {none_came}")


def test_nothing_is_given_up_while_all_machines_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run starts its own Ray again, and a cluster may restart: that is no reason of a customer."""
    left, now = [4.0], [0.0]
    monkeypatch.setattr("tuning.planning.capacity.time", SimpleNamespace(monotonic=lambda: now[0]))
    queue = RunQueue(3, growing(left, 10.0), batches(3))
    names = [name for name, _ in iter(queue.next, None)]
    left.clear()
    assert queue.timed_out(names) == []
    now[0] = 1000.0
    assert queue.timed_out(names) == []
    left[:] = [0.5]  # one comes back, too small
    assert queue.timed_out(names) == []
    now[0] = 1010.0
    assert queue.timed_out(names) == names


@pytest.mark.parametrize(
    ("cpus", "bundles", "strategy", "room"),
    [
        ([4, 5], [3, 2, 2, 2], "PACK", True),  # the largest on the smaller machine would leave no room for the others
        ([4, 4], [3, 2, 2, 2], "PACK", False),
        ([8], [1, *[1] * 7], "PACK", True),
        ([8], [1, *[1] * 8], "SPREAD", False),
        ([2, 2, 2], [0.5, 1, 1], "STRICT_SPREAD", True),
        ([4, 2], [0.5, 1, 1], "STRICT_SPREAD", False),
        ([4, 4], [2, 2, 2], "STRICT_PACK", False),
        ([0, 6], [2, 2, 2], "STRICT_PACK", True),
        ([], [1], "PACK", False),
    ],
)
def test_room_is_for_bundles_and_not_for_their_sum(
    cpus: list[float], bundles: list[float], strategy: str, room: bool
) -> None:
    there = [{"CPU": float(each), "memory": 1e9} for each in cpus]
    assert has_room(there, [{}, *({"CPU": float(each)} for each in bundles)], strategy) is room


def fitted(studies: OpenStudies, name: str, **fields: Any) -> None:
    """A study without trials is to be fitted."""
    studies.last_fit = lambda ended: FitJob.from_study(ended, worker_groups=False)
    studies.conclude(EndedStudy(replace(study(name, "random").study, fixed=FixedConfiguration(()), **fields), []))


def test_a_last_fit_comes_before_trials_and_has_the_place_of_one(tmp_path: Path) -> None:
    queue = giants(tmp_path, at_once=2)
    assert queue.studies is not None
    assert queue.next() is not None
    fitted(queue.studies, "b", resources=Resources(cpus=2))
    assert kinds(queue) == "fb"  # one CPU, two for the fit, and one


def test_a_run_goes_on_until_its_last_fits_have_ended(tmp_path: Path) -> None:
    queue = giants(tmp_path, n_trials=0, batches=())
    assert queue.studies is not None
    fitted(queue.studies, "b")
    assert not queue.closed
    found = queue.next()
    assert found is not None
    assert not queue.closed
    queue.end(found[0])
    assert queue.closed


def test_a_last_fit_whose_workers_die_is_given_up_unless_their_machine_is_gone(tmp_path: Path) -> None:
    left, crashed = [1.0, 1.0], list[EndedStudy]()
    queue = giants(tmp_path, n_trials=0, batches=())
    assert queue.studies is not None
    queue.studies.capacity = growing(left, 900.0)
    for name in ("b", "c"):
        fitted(queue.studies, name)
    queue.studies.last_fit = crashed.append
    first, second = queue.next(), queue.next()
    assert first is not None
    assert second is not None
    queue.end(first[0], died=True)
    assert [(each.study.id, each.crashed) for each in crashed] == [("b", "the final fits")]
    left.pop()
    queue.end(second[0], died=True)
    assert [each.study.id for each in crashed] == ["b"]
    assert queue.closed


def test_alone_batches_count_as_slots_whatever_they_take() -> None:
    """A cluster may have more CPUs than there are slots."""
    assert kinds(RunQueue(4, machines(4), batches(20, Resources(cpus=4)))) == "bbbb"


def test_a_free_worker_is_kept_until_the_last_batch_has_ended() -> None:
    """For that of a worker that dies: a new process would take seconds."""
    queue = RunQueue(2, machines(2), batches(2))
    assert kinds(queue) == "bb"
    queue.end("batch_00000")
    assert not queue.closed
    queue.end("batch_00001")
    assert queue.closed


def test_records_that_cannot_be_written_end_all(tmp_path: Path) -> None:
    queue = giants(tmp_path)
    assert queue.studies is not None
    queue.studies.broken = OSError("the disk is full")
    assert queue.next() is None
    assert queue.closed


def test_a_worker_that_dies_ends_the_study_of_its_trial_and_nothing_of_a_batch(tmp_path: Path) -> None:
    queue = giants(tmp_path, at_once=1)
    found = queue.next()
    assert found is not None
    assert kinds(queue) == "bbb"
    queue.end("batch_00001", died=True)
    assert queue.studies is not None
    assert not queue.studies.closed
    queue.end(found[0], died=True)
    assert queue.studies.closed
    assert kinds(queue) == "bb"


def waits(name: str, job: Job) -> SimpleNamespace:
    """A trial of Tune's that waits for a place."""
    return SimpleNamespace(trial_id=name, status="PENDING", config=job.to_config())


def test_a_worker_that_is_free_takes_the_batch_that_waits_for_the_shortest_time() -> None:
    """For those that wait longer a process is being started."""
    trials = [waits(str(number), job) for number, job in enumerate(batches(5))]
    spread = waits("spread", TrialJob(study="giant", trial=0, config={}, bundles=[]))
    controller: Any = SimpleNamespace(get_trials=lambda: [spread, *trials[:3]], _staged_trials=())
    scheduler = RunScheduler(RunQueue(4, machines(4)))
    trials[0].status = trials[1].status = "RUNNING"
    assert scheduler.choose_trial_to_run(controller) is trials[2]
    trials[0].status = "PENDING"  # its worker died; one is started for the batch that waited already
    assert scheduler.choose_trial_to_run(controller) is trials[0]
    trials[1].status = "TERMINATED"
    assert scheduler.choose_trial_to_run(controller) is trials[0]
    trials[2].status = "RUNNING"
    trials[0].status = "TERMINATED"
    assert scheduler.choose_trial_to_run(controller) is None


def test_what_tune_has_not_taken_up_yet_is_stopped_when_it_has() -> None:
    """Before that Tune raises, and the reason would be lost among its own words."""
    queue = RunQueue(2, machines(4, patience=0.0), batches(2, Resources(cpus=9)))
    given = list(iter(queue.next, None))
    trials = [waits(name, job) for name, job in given]
    stopped = list[Any]()
    controller: Any = SimpleNamespace(get_trials=lambda: trials, _staged_trials=trials[:1], stop_trial=stopped.append)
    scheduler = RunScheduler(queue)
    scheduler.choose_trial_to_run(controller)
    assert stopped == trials[:1]
    trials[0].status, controller._staged_trials = "TERMINATED", trials
    scheduler.choose_trial_to_run(controller)
    assert stopped == trials
