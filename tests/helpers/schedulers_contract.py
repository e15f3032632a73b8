"""What the tests of schedulers share: a searcher, training with a state, a study driven in process."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import schedulers
from tuning.steps import Step
from tuning.study.core import StudyCore
from tuning.study.local_trial import LocalTrial
from tuning.study.loop import TrialLoop, in_process

STEPS = 9
#: Trials of a study. Each exploit of pb2 fits Gaussian processes and costs some tenths of a second.
TRIALS = {"pb2": 6}
OPTIONS: dict[str, dict[str, Any]] = {"pb2": {"perturbation_interval": 4, "quantile_fraction": 0.1}}
MUTATIONS = schedulers.Mutations(
    (
        schedulers.Range(("x",), 0.0, 1.0),
        schedulers.Range(("n",), 1, 4, whole=True),
        schedulers.Choices(("kind",), ("a", "b", "c")),
    )
)


class Chance:
    """Random search that remembers what it was told."""

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)
        self.told: dict[str, str] = {}

    def suggest(self, trial_id: str) -> dict[str, Any]:
        return {
            "x": self.random.random(),
            "n": self.random.randint(1, 4),
            "kind": self.random.choice("abc"),
        }

    def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None:
        assert trial_id not in self.told
        self.told[trial_id] = "error" if error else "complete"

    def on_pause(self, trial_id: str) -> None: ...

    def on_unpause(self, trial_id: str) -> None: ...


def climb(config: Mapping[str, Any], number: int, state: Any) -> Iterator[Step]:
    """A model with one weight that approaches 1 the faster the larger x is; the state is (step, weight)."""
    done, weight = state or (0, 0.0)
    for step in range(done + 1, STEPS + 1):
        weight += (1 - weight) * 0.3 * config["x"]
        yield Step(step, weight, get_state=lambda now=(step, weight): now)


def build(name: str, seed: int = 1, mode: str = "max", **options: Any) -> Callable[[Any], Any]:
    spec = schedulers.parse({"name": name, **OPTIONS.get(name, {}), **options})
    mutations = MUTATIONS if name != "pb2" else schedulers.Mutations(MUTATIONS.parameters[:1])
    return lambda _: spec.build(metric="score", mode=mode, max_steps=STEPS, seed=seed, mutations=mutations)


def study(
    name: str, start: Any = climb, seed: int = 1, options: Mapping[str, Any] | None = None, **more: Any
) -> TrialLoop:
    searcher = more.pop("searcher", None) or Chance(seed)
    own = more.pop("scheduler_for", None)
    scheduler_for = own or build(name, seed, more.get("mode", "max"), **(options or {}))
    of_loop = {option: more.pop(option) for option in ("shape", "replay", "on_start") if option in more}
    arguments = {"n_trials": count(name), "metric": "score", "mode": "max", **more}
    core = StudyCore(searcher, scheduler_for, LocalTrial, **arguments)
    return TrialLoop(core, in_process(start), pauses=bool(own) or schedulers.parse(name).pauses, **of_loop)


def count(name: str) -> int:
    """Trials of a study under this scheduler."""
    return TRIALS.get(name, 20)


def summary(trials: list[LocalTrial]) -> list[Any]:
    """All that two runs of the same study must agree on."""
    return [
        (t.number, t.config, t.state, t.reason, t.steps, t.suggested, t.told, t.lineage, t.schedule) for t in trials
    ]
