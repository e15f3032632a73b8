"""Learning from other customers: who learns from whom, what is taught, and when a customer goes on by itself."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mlflow_records import study as study_record
from mlflow_records import trial

from tuning import RunResult, TuneRunner
from tuning.definition.options import Resources
from tuning.definition.run_spec import RunSpec
from tuning.errors import PlanError, StorageError
from tuning.execution import transfer
from tuning.execution.room import Room
from tuning.execution.run_queue import RunQueue
from tuning.execution.told import shard_told
from tuning.execution.transfer import AgreementStopper, Lesson, draw_lesson, find_lesson
from tuning.planning import transfer as groups
from tuning.planning.plan import Plan
from tuning.records.schema import FINISHED, TrialRecord, canonical
from tuning.runs.transfer_gain import transfer_gain
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import CONTROL, FOLLOWER, PILOT
from tuning.study.warm_start import Start, points_to_try

QUICK: dict[str, Any] = {"progress": False, "in_process": True}


def frames(count: int, rows: int = 24) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    found = {}
    for number in range(count):
        x = rng.normal(size=(rows + number % 5, 2))
        noise = rng.normal(size=len(x))
        found[f"c{number:03d}"] = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x[:, 0] ** 2 + x[:, 1] + 0.1 * noise})
    return found


def runner(count: int = 40, **fields: Any) -> TuneRunner:
    given: dict[str, Any] = {"models": ["ridge", "knn"], "trials": 8, "split": {"folds": 2}, "save_models": False}
    given |= {"task": "regression", "mlflow": False, "transfer": "on", "algorithm": "random"}
    return TuneRunner(**{**given, "data": frames(count), "target": "y", **fields})


def members(plan: Plan, group: str) -> set[str]:
    return {study.id for study in plan.studies if study.group == group}


def test_pilots_and_controls_are_spread_over_sizes_and_the_same_every_time() -> None:
    plan = runner(100).plan()
    pilots, controls, followers = (members(plan, group) for group in (PILOT, CONTROL, FOLLOWER))
    assert (len(pilots), len(controls), len(followers)) == (20, 30, 50)
    sizes = {study.id: study.customer.about_rows for study in plan.studies}
    assert {sizes[name] for name in pilots} == {*sizes.values()} == {sizes[name] for name in controls}
    shuffled = dict(reversed(frames(100).items()))
    again = runner(data=shuffled).plan()
    assert [members(again, group) for group in (PILOT, CONTROL, FOLLOWER)] == [pilots, controls, followers]
    assert members(runner(100, seed=1).plan(), PILOT) != pilots
    (note,) = [note for note in plan.notes if note.startswith("transfer: ")]
    assert note.startswith("transfer: 20 customers are searched first; 50 others try what these have found")
    assert {study.n_trials for study in plan.studies} == {8}


def test_small_fleets_learn_nothing_or_are_not_measured_and_the_plan_says_so() -> None:
    small = runner(29).plan()
    assert {study.group for study in small.studies} == {""}
    assert "transfer: no effect, since 29 customers are fewer than 30." in small.notes
    middle = runner(40).plan()
    assert (len(members(middle, PILOT)), len(members(middle, CONTROL)), len(members(middle, FOLLOWER))) == (10, 0, 30)
    assert any("What it gained is not measured: that takes 60 customers" in note for note in middle.notes)
    assert {study.group for study in runner(40, transfer="off").plan().studies} == {""}
    short = runner(40, trials=6).plan()
    assert {study.group for study in short.studies} == {""}
    assert "transfer: no effect, since the portfolio leaves fewer than 4 of 6 trials." in short.notes
    with pytest.raises(PlanError, match="needs placement: packed"):
        runner(40, placement="spread").plan()


def test_who_asks_for_something_else_is_searched_as_asked(tmp_path: Path) -> None:
    for name, frame in frames(40).items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    data = {name: {"path": str(tmp_path / f"{name}.csv")} for name in frames(40)}
    plan = runner(data={**data, "c003": {**data["c003"], "trials": 2}}).plan()
    found = {study.id: study for study in plan.studies}
    assert (found["c003"].group, found["c003"].n_trials) == ("", 2)
    assert len(members(plan, PILOT)) + len(members(plan, FOLLOWER)) == 39
    last, first = max(plan.shards_of(PILOT)), min(plan.shards_of(FOLLOWER))
    assert last < first


def test_shards_that_learn_wait_for_those_that_teach() -> None:
    """Two pilots' shards, one of nobody's, two of followers; three slots."""
    room = Room(lambda: [{"CPU": 3.0}])
    queue = RunQueue(3, room, [shard_told(shard, Resources()) for shard in range(5)], first=2, held=2)

    def given() -> list[str]:
        return [name for name, _ in iter(queue.next, None)]

    assert given() == ["shard_00000", "shard_00001", "shard_00002"]
    queue.end("shard_00002")
    queue.end("shard_00000")
    assert given() == []  # two slots are free, and one pilot has not ended
    assert not queue.closed
    queue.end("shard_00001")
    assert given() == ["shard_00003", "shard_00004"]


def records_of(spec: RunSpec, losses: Mapping[int, Mapping[int, float]]) -> list[TrialRecord]:
    """Trials by customer and configuration: 0 is the baseline, the others are drawn from the space."""
    rng = np.random.default_rng(0)
    configs = [dict(runner().plan().portfolio[0]), *(spec.space.sample(rng) for _ in range(30))]
    return [
        replace(trial(f"c{number}", place), config=configs[place], score=-loss, mode="max")
        for number, by_config in losses.items()
        for place, loss in by_config.items()
    ]


def test_a_lesson_is_the_best_that_each_search_has_found_and_one_odd_pilot_has_one_say() -> None:
    """First what beat by most what all have tried; a quarter of what the portfolio leaves is for the lesson."""
    plan = runner().plan()
    spec = runner(trials=12 + len(points_to_try(plan.spec.space, Start(plan.spec.portfolio)))).plan().spec
    usual = {0: 3.0, 1: 4.0, 2: 5.0, 3: 6.0, 4: 7.0}
    own = {1: {11: 2.9, 12: 8.0}, 2: {13: 1.0}, 3: {14: 9.0}, 4: {15: 2.0, 16: 2.5}}
    strange = {0: 1e300, 1: 1e300, 2: float("nan"), 3: 1.0, 17: -1e300, 18: -1e299}
    by_customer = {number: usual | own.get(number, {}) for number in range(10)}

    def taught(losses: Mapping[int, Mapping[int, float]]) -> tuple[list[int], list[int]]:
        records = records_of(spec, losses)
        number_of = {canonical(record.config): int(record.trial) for record in records}
        lesson = draw_lesson(spec, records)
        assert draw_lesson(spec, records[::-1]) == lesson
        found, best = ([number_of[canonical(config)] for config in each] for each in (lesson.portfolio, lesson.best))
        return found, best

    assert taught(by_customer) == ([13, 15, 11], [0, 1])
    found, best = taught({**by_customer, 0: strange})
    assert [number for number in found if number != 17] == [13, 15]
    assert best == [0, 1]
    assert draw_lesson(spec, []) == Lesson((), (), 0)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """So small that a test can run it."""
    for name, value in (("FEWEST", 6), ("FEWEST_PILOTS", 4), ("MOST_PILOTS", 4), ("CONTROLS", 3)):
        monkeypatch.setattr(groups, name, value)
    monkeypatch.setattr("tuning.runs.transfer_gain.FEWEST", 2)


def tried(result: RunResult) -> pd.DataFrame:
    found = result.trials().sort_values(["study", "trial"]).reset_index(drop=True)
    return found[["study", "trial", "score", *(name for name in found if name.startswith("config."))]]


@pytest.mark.usefixtures("few")
def test_a_run_learns_once_is_resumed_with_the_same_and_says_what_it_gained(tmp_path: Path) -> None:
    whole = runner(14).run(tmp_path / "whole", **QUICK)
    lesson = json.loads((tmp_path / "whole" / transfer.FILE).read_text().splitlines()[0])
    followers = [record for record in whole.study_records if record.group == FOLLOWER]
    spec = runner(14).plan().spec
    assert len(followers) == 7
    assert lesson["portfolio"]
    advised = {canonical(config) for config in (*lesson["portfolio"], *lesson["best"])}
    ends = dict[str, int]()
    for record in followers:
        trials = [each for each in whole.trial_records if each.study == record.study]
        shipped = points_to_try(spec.space, Start(spec.portfolio))
        begun = [*shipped, *lesson["portfolio"]]
        assert [each.config for each in trials[: len(begun)]] == begun
        best = max(trials[:6], key=lambda each: -math.inf if each.state != FINISHED else each.score or 0.0)
        ends[record.study] = 6 if canonical(best.config) in advised else 8
        assert (
            f"the best trial, {best.trial}, is one that other customers advise; 6 of 8 trials were run"
            in (record.notes or "")
        ) == (ends[record.study] == 6)
    assert {record.study: record.trials for record in followers} == ends
    assert {*ends.values()} == {6, 8}
    by_group = {record.group: record.trials for record in whole.study_records if record.group != FOLLOWER}
    assert by_group == {PILOT: 8, CONTROL: 8}
    assert whole.transfer_gain is not None
    assert whole.transfer_gain.controls == 3
    assert whole.summary()["transfer"]["followers"] == 7

    broken = tmp_path / "broken"
    with pytest.MonkeyPatch.context() as patch:
        counted = iter(range(9))
        original = transfer.start_in_group

        def start(*given: Any) -> Any:
            if next(counted, None) is None:
                raise KeyboardInterrupt
            return original(*given)

        patch.setattr("tuning.execution.study_run.start_in_group", start)
        with pytest.raises(KeyboardInterrupt):
            runner(14).run(broken, **QUICK)
    assert 0 < len(RunResult(broken).study_records) < 14
    again = TuneRunner.resume(broken, **QUICK)
    pd.testing.assert_frame_equal(tried(again), tried(whole))
    assert (broken / transfer.FILE).read_text() == (tmp_path / "whole" / transfer.FILE).read_text()


@pytest.mark.usefixtures("few")
def test_nobody_begins_with_what_half_of_the_pilots_taught(tmp_path: Path) -> None:
    whole = runner(14).run(tmp_path / "run", **QUICK)
    directory = RunDirectory(tmp_path / "run")
    (tmp_path / "run" / transfer.FILE).unlink()
    for part in (tmp_path / "run" / "records").rglob("studies-s00000-*"):
        part.unlink()
    with pytest.raises(StorageError, match=r"of 4 customers to learn from have no result yet"):
        find_lesson(directory, runner(14).plan().spec)
    assert whole.summary()["customers"] == 14


@pytest.mark.usefixtures("few")
def test_a_damaged_lesson_is_drawn_again_if_the_pilots_teach_the_same(tmp_path: Path) -> None:
    runner(14).run(tmp_path / "run", **QUICK)
    directory, file = RunDirectory(tmp_path / "run"), tmp_path / "run" / transfer.FILE
    written = file.read_bytes()
    taught = find_lesson(directory, runner(14).plan().spec)
    for damaged in (
        written.replace(b"portfolio", b"p\0rtfolio", 1),
        written[:-5],
        b"{" + written.partition(b"\n")[1] + written[-64:],
    ):
        file.write_bytes(damaged)
        assert find_lesson(directory, runner(14).plan().spec) == taught
        assert file.read_bytes() == written
    file.write_bytes(b"")
    with pytest.raises(StorageError, match="its SHA-256 differs"):
        find_lesson(directory, runner(14).plan().spec)


@pytest.mark.usefixtures("few")
def test_more_trials_on_a_resume_keep_the_lesson_and_what_was_tried(tmp_path: Path) -> None:
    first = runner(14).run(tmp_path / "run", **QUICK)
    lesson = (tmp_path / "run" / transfer.FILE).read_bytes()
    more = runner(14, trials=9).run(tmp_path / "run", resume=True, **QUICK)
    before = {record.study: record.trials for record in first.study_records}
    # Who agreed with the others has ended for good, as after any other stopping rule.
    assert {record.study: record.trials for record in more.study_records} == {
        name: 9 if trials == 8 else 6 for name, trials in before.items()
    }
    assert (tmp_path / "run" / transfer.FILE).read_bytes() == lesson
    begun = tried(more).query("trial < 8").reset_index(drop=True)
    pd.testing.assert_frame_equal(begun[["study", "trial", "score"]], tried(first)[["study", "trial", "score"]])


@pytest.mark.parametrize(
    ("scores", "ended"),
    [
        ([0.1, 0.9, 0.2, 0.3, 0.4], 4),  # 1 is advised: after the least number of trials that is enough
        ([0.9, 0.1, 0.2, 0.3, 0.4], None),  # 0 is not
        ([0.1, 0.2, 0.3, 0.9, 0.4], None),  # its own search has found something better
        ([0.1, 0.9, None, 0.3, 0.9], 4),  # a failure is not the best; who is as good later is no better
        ([None] * 5, None),
    ],
)
def test_a_study_ends_early_only_if_the_best_it_has_is_what_others_advise(
    scores: list[float | None], ended: int | None
) -> None:
    for sign in (1.0, -1.0):
        rule = AgreementStopper({1, 2}, 4, sign)
        ends = []
        for number, score in enumerate(scores):
            rule.on_trial_end(f"{number:05d}", score is not None, None if score is None else sign * score)
            ends.append(bool(rule.study_reason()))
        assert ends == [ended is not None and number + 1 >= ended for number in range(len(scores))]


def test_the_gain_of_those_who_learned_is_compared_with_those_who_did_not() -> None:
    def side(group: str, gains: list[float]) -> list[Any]:
        return [
            study_record(f"{group}{number}", group=group, gain=gain, baseline_test_score=-2.0, notes=None)
            for number, gain in enumerate(gains)
        ]

    spread = [0.1 * (number % 5) for number in range(30)]
    found = transfer_gain([*side(FOLLOWER, [gain + 0.5 for gain in spread]), *side(CONTROL, spread)])
    assert found is not None
    assert found.difference == pytest.approx(0.25)
    assert found.low < 0.25 < found.high
    assert found.low > 0.2
    assert "differs by +25.0 % of its score (95 % interval +2" in found.sentence
    assert transfer_gain([*side(FOLLOWER, spread), *side(CONTROL, spread[:9])]) is None
