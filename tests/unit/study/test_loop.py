"""The in-process driver: order, failures, stops, protection, replay, isolation. No cluster."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from mlflow_records import trial as trial_of

import schedulers
from tuning.errors import StudyError
from tuning.records.schema import TrialRecord
from tuning.steps import Step
from tuning.study.core import StudyCore
from tuning.study.local_trial import LocalTrial
from tuning.study.loop import ReplayError, TrialLoop, in_process
from tuning.study.trial import TrialShape


class Hill:
    """Proposes near the best it was told about, so that every word of the past shows in its suggestions."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)
        self.best = (0.0, 0.5)
        self.log: list[tuple[str, str, Any]] = []

    def suggest(self, trial_id: str) -> dict[str, Any]:
        config = {"x": min(max(self.best[1] + self.random.gauss(0, 0.2), 0), 1)}
        self.log.append(("suggest", trial_id, config))
        return config

    def on_trial_result(self, trial_id: str, result: Mapping[str, Any]) -> None:
        self.log.append(("step", trial_id, result["training_iteration"]))

    def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None:
        self.log.append(("error" if error else "complete", trial_id, result and result["score"]))
        if result:
            x = next(entry[2]["x"] for entry in self.log if entry[:2] == ("suggest", trial_id))
            self.best = max(self.best, (result["score"], x))


def train(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
    for step in range(1, 10):
        yield Step(step, (1 - abs(config["x"] - 0.8)) * (1 - 1 / (step + 1)), metrics={"loss": 1 / step})


def build(name: str = "fifo", steps: int = 9, **options: Any) -> Any:
    spec = schedulers.parse({"name": name, **options})
    x = schedulers.Mutations((schedulers.Range(("x",), 0.0, 1.0),))
    return lambda _: spec.build(metric="score", mode="max", max_steps=steps, seed=1, mutations=x)


def drive(searcher: Any = None, scheduler: Any = None, start: Any = train, **options: Any) -> TrialLoop:
    of_loop = {name: options.pop(name) for name in ("shape", "replay") if name in options}
    options = {"n_trials": 10, "metric": "score", "mode": "max", **options}
    core = StudyCore(searcher or Hill(), scheduler or build(), LocalTrial, **options)
    return TrialLoop(core, in_process(start), **of_loop)


def test_every_trial_comes_once_with_all_its_steps() -> None:
    driving = drive()
    finished = list(driving)
    assert [trial.number for trial in finished] == list(range(10))
    assert {trial.state for trial in finished} == {"finished"}
    assert [step.step for step in finished[3].steps] == list(range(1, 10))
    assert finished[3].steps[4].metrics == {"loss": 0.2}
    assert finished[3].score == finished[3].steps[-1].score
    assert [(trial.suggested, trial.told) for trial in finished] == [(2 * n, 2 * n + 1) for n in range(10)]
    assert str(driving.core.closed_by) == "all 10 trials are done"


def test_an_early_stop_frees_the_generator() -> None:
    alive = 0

    def counting(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        nonlocal alive
        alive += 1
        try:
            yield from train(config, number, state)
        finally:
            alive -= 1

    for trial in drive(scheduler=build("asha"), start=counting, n_trials=30):
        assert alive == 0, trial


def test_the_best_step_counts_where_every_prefix_is_a_model() -> None:
    def rise_and_fall(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        yield from (Step(step, score) for step, score in enumerate([0.1, 0.9, 0.3], 1))

    searcher = Hill()
    last, best = (
        next(drive(searcher, start=rise_and_fall, n_trials=1, shape=shape))
        for shape in (lambda _: TrialShape(), lambda _: TrialShape(best_prefix=True))
    )
    assert (last.best, last.score) == (2, 0.3)
    assert (best.best, best.score) == (1, 0.9)
    assert searcher.log[-1] == ("complete", "00000", 0.9)


def test_an_exception_fails_its_trial_only() -> None:
    def failing(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        yield Step(1, 0.5)
        if number == 2:
            raise RuntimeError("no such\nmatrix")
        if number == 3:
            raise SystemExit(3)
        if number == 4:
            raise asyncio.CancelledError  # as the panics of Rust libraries, not an Exception
        yield Step(2, 0.6)

    searcher = Hill()
    finished = list(drive(searcher, build("asha"), failing, n_trials=6))
    assert [trial.state for trial in finished] == ["finished"] * 2 + ["failed"] * 3 + ["finished"]
    assert str(finished[2].reason) == "RuntimeError: no such matrix"
    assert "in failing" in (finished[2].error or "")
    assert len(finished[2].steps) == 1
    assert [entry[1] for entry in searcher.log if entry[0] == "error"] == ["00002", "00003", "00004"]


@pytest.mark.parametrize("score", [math.nan, math.inf, None, "high"])
@pytest.mark.parametrize("name", ["fifo", "asha"])
def test_a_score_that_is_no_finite_number_fails_its_trial(name: str, score: Any) -> None:
    def broken(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        yield Step(1, 0.5)
        yield Step(2, score if number == 1 else 0.6)

    searcher = Hill()
    finished = list(drive(searcher, build(name), broken, n_trials=3))
    assert [trial.state for trial in finished] == ["finished", "failed", "finished"]
    if isinstance(score, float):
        assert str(finished[1].reason) == f"the score is {score} at step 2"
    assert ("error", "00001", None) in searcher.log


def test_training_without_a_step_is_a_failure_that_says_so() -> None:
    finished = list(drive(start=lambda *_: iter(()), n_trials=2))
    assert {(trial.state, str(trial.reason)) for trial in finished} == {
        ("failed", "training ended without a single step")
    }
    assert finished[0].score is None


def test_a_failing_searcher_ends_the_study_as_a_typed_error() -> None:
    class Moody(Hill):
        def suggest(self, trial_id: str) -> dict[str, Any]:
            if trial_id == "00003":
                raise KeyError("posterior")
            return super().suggest(trial_id)

    driving = drive(Moody())
    assert [next(driving).number for _ in range(3)] == [0, 1, 2]
    with pytest.raises(StudyError, match="algorithm failed while proposing trial 3: KeyError: 'posterior'"):
        next(driving)


def test_a_failing_scheduler_ends_the_study_as_a_typed_error() -> None:
    def scheduler_for(family: str) -> Any:
        scheduler = build("asha")(family)
        scheduler.on_trial_result = None
        return scheduler

    with pytest.raises(StudyError, match="scheduler failed while judging trial 0 at step 1: TypeError"):
        next(drive(scheduler=scheduler_for))


def summary(trials: list[LocalTrial]) -> list[Any]:
    return [(t.number, t.config, t.state, str(t.reason), t.steps, t.suggested, t.told, t.spent_steps) for t in trials]


def moody(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
    for step in train(config, number, state):
        if number == 5 and step.step == 3:
            raise RuntimeError("once")
        yield Step(step.step, math.nan) if number == 6 and step.step == 2 else step


def earlier(trials: list[LocalTrial]) -> list[TrialRecord]:
    return [
        trial_of(number=trial.number, config=dict(trial.config), steps=trial.steps, state=trial.state)
        for trial in trials
    ]


@pytest.mark.parametrize("done", range(0, 21, 4))
@pytest.mark.parametrize("name", ["fifo", "asha", "median"])
def test_a_resumed_study_goes_on_as_if_never_stopped(name: str, done: int) -> None:
    whole_searcher, resumed_searcher = Hill(), Hill()
    whole = list(drive(whole_searcher, build(name), moody, n_trials=20))
    trained: list[int] = []

    def start(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
        trained.append(number)
        return moody(config, number, state)

    resumed = list(drive(resumed_searcher, build(name), start, n_trials=20, replay=earlier(whole[:done])))
    assert summary(resumed) == summary(whole[done:])
    assert trained == list(range(done, 20))
    assert resumed_searcher.log == whole_searcher.log


def test_a_resumed_study_goes_on_with_the_seconds_that_it_had_spent() -> None:
    whole = list(drive(n_trials=6))
    known = [replace(trial, spent_seconds=1000.0 * (trial.trial + 1)) for trial in earlier(whole[:3])]
    resumed = list(drive(n_trials=6, replay=known))
    assert [round(trial.spent_seconds / 1000) for trial in resumed] == [3, 3, 3]
    assert resumed[0].spent_seconds < resumed[1].spent_seconds < resumed[2].spent_seconds


def test_trials_behind_a_lost_one_run_again() -> None:
    whole = list(drive(scheduler=build("asha"), n_trials=12))
    known = [trial for trial in earlier(whole[:9]) if trial.trial != 5]
    resumed = list(drive(scheduler=build("asha"), n_trials=12, replay=reversed(known)))
    assert summary(resumed) == summary(whole[5:])


def test_a_replay_that_takes_another_way_is_refused() -> None:
    done = earlier(list(drive(n_trials=4)))
    with pytest.raises(ReplayError, match=r"trial 0 was suggested as .*, now comes .*run the study anew"):
        next(drive(Hill(seed=1), replay=done))
    core = StudyCore(Hill(), build("hyperband"), LocalTrial, n_trials=10, metric="score", mode="max")
    with pytest.raises(ReplayError, match="restarts whole"):
        next(TrialLoop(core, in_process(train), pauses=True, replay=done))


def test_a_scheduler_that_pauses_is_refused_where_trials_run_one_after_another() -> None:
    with pytest.raises(StudyError, match=r"HyperbandScheduler paused trial \d+, but trials run one after another here"):
        list(drive(scheduler=build("hyperband")))
