"""ASHA decides as Ray's own class does, says why, stops NaN and stays within its study."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

import schedulers


class Light:
    """What these schedulers look at."""

    def __init__(self, trial_id: str) -> None:
        self.trial_id, self.status = trial_id, "RUNNING"


def trial(trial_id: str) -> Any:
    return Light(trial_id)


def result(step: int, score: float) -> dict[str, Any]:
    return {"training_iteration": step, "score": score}


def decisions(scheduler: Any, curves: list[list[float]]) -> list[int]:
    """How many steps each trial ran, one trial after the other."""
    lengths = []
    for number, curve in enumerate(curves):
        light = trial(str(number))
        scheduler.on_trial_add(None, light)
        for step, score in enumerate(curve, 1):
            last = result(step, score)
            if scheduler.on_trial_result(None, light, last) == "STOP":
                break
        scheduler.on_trial_complete(None, light, last)
        lengths.append(step)
    return lengths


@pytest.mark.parametrize("mode", ["max", "min"])
@pytest.mark.parametrize("factor", [2, 3, 4, 2.5])
@pytest.mark.parametrize(("grace", "steps"), [(1, 27), (2, 30), (5, 7)])
def test_same_decisions_as_ray(mode: Any, factor: float, grace: int, steps: int) -> None:
    from ray.tune.schedulers import ASHAScheduler

    noise = random.Random(f"{mode}{factor}{grace}")
    curves = [[noise.choice([noise.random(), 0.5]) for _ in range(steps)] for _ in range(60)]
    rays = ASHAScheduler(metric="score", mode=mode, max_t=steps, grace_period=grace, reduction_factor=factor)
    spec = schedulers.parse({"name": "asha", "grace_period": grace, "reduction_factor": factor})
    ours = spec.build(metric="score", mode=mode, max_steps=steps, seed=0)
    expected = decisions(rays, curves)
    assert decisions(ours, curves) == expected
    assert len(set(expected)) > 1


def test_a_stop_says_why() -> None:
    scheduler = schedulers.parse({"name": "asha", "grace_period": 4}).build(
        metric="score", mode="max", max_steps=20, seed=0
    )
    assert decisions(scheduler, [[0.7] * 20, [0.61] * 20]) == [20, 4]
    assert scheduler.reason("1") == ("rung_cutoff", "asha", {"rung": 4, "score": 0.61, "cutoff": pytest.approx(0.7)})
    assert scheduler.reason("0") is None


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_a_number_is_stopped_and_never_a_yardstick(score: float) -> None:
    scheduler = schedulers.parse("asha").build(metric="score", mode="max", max_steps=9, seed=0)
    assert decisions(scheduler, [[score] * 9, [0.1] * 9, [0.2] * 9]) == [1, 9, 9]
    assert scheduler.reason("0").code == "score_not_finite"


def test_a_result_without_the_metric_is_an_error_and_not_silence() -> None:
    scheduler = schedulers.parse("asha").build(metric="score", mode="max", max_steps=9, seed=0)
    scheduler.on_trial_add(None, trial("0"))
    with pytest.raises(schedulers.SchedulerError, match=r"no 'score', only \['auc', 'training_iteration'\]"):
        scheduler.on_trial_result(None, trial("0"), {"training_iteration": 1, "auc": 0.5})


def test_trials_shorter_than_the_grace_period_are_never_stopped() -> None:
    scheduler = schedulers.parse({"name": "asha", "grace_period": 50}).build(
        metric="score", mode="max", max_steps=3, seed=0
    )
    assert decisions(scheduler, [[1.0 / n] * 3 for n in range(1, 20)]) == [3] * 19


@pytest.mark.parametrize("mode", ["max", "min"])
@pytest.mark.parametrize("grace", [1, 3])
def test_median_decides_as_ray_does(mode: Any, grace: int) -> None:
    from ray.tune.schedulers import MedianStoppingRule

    class Rays(MedianStoppingRule):
        def on_trial_complete(self, tune_controller: Any, trial: Any, result: Any) -> None:
            """Ray counts the last result again here, and with it once too often."""

        def _on_insufficient_samples(self, *_: Any) -> str:
            return "CONTINUE"  # never pause

    noise = random.Random(grace)
    curves = [[noise.random() + number / 50 for _ in range(12)] for number in noise.sample(range(60), 60)]
    rays = Rays(time_attr="training_iteration", metric="score", mode=mode, grace_period=grace)
    ours = schedulers.parse({"name": "median", "grace_period": grace}).build(
        metric="score", mode=mode, max_steps=12, seed=0
    )
    expected = decisions(rays, curves)
    assert decisions(ours, curves) == expected
    assert len(set(expected)) > 2


def test_median_copes_with_trials_that_report_every_other_step() -> None:
    scheduler = schedulers.parse({"name": "median", "min_samples_required": 2}).build(
        metric="score", mode="max", max_steps=12, seed=0
    )
    for number, level in enumerate([1.0, 1.0, 1.0]):
        scheduler.on_trial_add(None, trial(str(number)))
        for step in (1, 3, 5):
            assert scheduler.on_trial_result(None, trial(str(number)), result(step, level)) == "CONTINUE"
    scheduler.on_trial_add(None, trial("low"))
    assert scheduler.on_trial_result(None, trial("low"), result(2, 0.5)) == "STOP"
    values = {"step": 2, "score": 0.5, "median": 1.0, "others": 3}
    assert scheduler.reason("low") == ("median_cutoff", "median", values)
