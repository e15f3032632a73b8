"""What becomes of schedulers that pause when each trial is a Ray Tune trial: the experiment behind
docs/decisions/placements-and-hosts.md#populations-on-all-cores.

    python -m benchmarks.experiments.spread_spike hyperband|bohb|pbt [--kill] [--plain]

Two studies, an easy and a hard one, each with a searcher and a scheduler of its own behind one `SearchAlgorithm` and
one `TrialScheduler`, on a local cluster with two slots. --kill: one worker ends itself at its fourth step. --plain: a
single study whose searcher and scheduler are given to the Tuner as they are. Prints each study's steps by trial, and
the time that the same studies take packed.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TRIALS, STEPS = 8, 9
LEVELS = {"easy": 0.0, "hard": -100.0}


@dataclass
class Study:
    level: float
    searcher: Any
    scheduler: Any
    proposed: int = 0
    steps: dict[int, list[int]] = field(default_factory=dict)


STUDIES: dict[str, Study] = {}


def climb(config: Mapping[str, Any], weight: float, done: int) -> Iterator[tuple[int, float]]:
    for step in range(done + 1, STEPS + 1):
        weight += (1 - weight) * 0.3 * config["x"]
        yield step, weight


def build(scheduler: str, level: float, seed: int) -> Study:
    import schedulers
    from search_spaces import Float, SearchSpace, algorithms
    from tuning.study.mutations import mutations

    space = SearchSpace([Float("x", 0, 1, default=0.5), Float("y", 0, 1, default=0.5)])
    algorithm = algorithms.parse("bohb" if scheduler == "bohb" else "random")
    return Study(
        level,
        algorithm.build(space, metric="score", mode="max", seed=seed, n_trials=TRIALS, points=[space.default()]),
        schedulers.parse(scheduler).build(
            metric="score",
            mode="max",
            max_steps=STEPS,
            seed=0,
            mutations=mutations(space, space.default(), (), "model"),
        ),
    )


def packed(scheduler: str) -> float:
    """Seconds for the same two studies in process."""
    from tuning.steps import Step
    from tuning.study.core import StudyCore
    from tuning.study.local_trial import LocalTrial
    from tuning.study.loop import TrialLoop, in_process

    def start(config: Mapping[str, Any], _number: int, state: Any) -> Iterator[Step]:
        done, weight = state or (0, 0.0)
        for now in climb(config, weight, done):
            yield Step(now[0], now[1], get_state=lambda now=now: now)

    began = time.perf_counter()
    for number, level in enumerate(LEVELS.values()):
        study = build(scheduler, level, number)
        arguments = {"n_trials": TRIALS, "metric": "score", "mode": "max"}
        core = StudyCore(study.searcher, lambda _: study.scheduler, LocalTrial, **arguments)  # noqa: B023  # used up within this turn
        assert len(list(TrialLoop(core, in_process(start), pauses=True))) == TRIALS
    return time.perf_counter() - began


def trainable(marker: str) -> Any:
    def train(config: dict[str, Any]) -> None:
        from ray import tune

        checkpoint, weight, done = tune.get_checkpoint(), 0.0, 0
        if checkpoint:
            with checkpoint.as_directory() as folder:
                weight, done = json.loads(Path(folder, "state.json").read_text())
        for step, now in climb(config, weight, done):
            if marker and step == 4 and not os.path.exists(marker):
                Path(marker).touch()
                os._exit(3)
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "state.json").write_text(json.dumps([now, step]))
                report = {"score": now + config.get("level", 0.0), "training_iteration": step}
                tune.report(report, checkpoint=tune.Checkpoint.from_directory(folder))

    return train


class View:
    """The controller, with the trials of one study only."""

    def __init__(self, controller: Any, name: str) -> None:
        self._controller, self._name = controller, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._controller, name)

    def get_trials(self) -> list[Any]:
        return [trial for trial in self._controller.get_trials() if trial.config["study"] == self._name]

    def get_live_trials(self) -> list[Any]:
        return [trial for trial in self.get_trials() if not trial.is_finished()]

    @property
    def search_alg(self) -> View:
        return self  # BOHB reaches its searcher through it

    @property
    def searcher(self) -> Any:
        return STUDIES[self._name].searcher

    @property
    def more_to_come(self) -> bool:
        waiting = any(trial.status == "PENDING" for trial in self.get_trials())
        return waiting or STUDIES[self._name].proposed < TRIALS


def adapters() -> tuple[Any, Any]:
    from ray.tune.experiment.config_parser import _create_trial_from_spec, _make_parser
    from ray.tune.schedulers import TrialScheduler
    from ray.tune.search.search_algorithm import SearchAlgorithm

    class Search(SearchAlgorithm):
        metric = None

        def set_search_properties(self, *args: Any, **spec: Any) -> bool:
            return True

        def add_configurations(self, experiments: Any) -> None:
            self.spec = dict((experiments[0] if isinstance(experiments, list) else experiments).spec)

        @property
        def total_samples(self) -> int:
            return TRIALS * len(STUDIES)

        def next_trial(self) -> Any:
            name, study = min(STUDIES.items(), key=lambda item: item[1].proposed)
            if study.proposed >= TRIALS:
                return None
            trial_id = f"{study.proposed:05d}"
            config = {**study.searcher.suggest(trial_id), "study": name, "level": study.level}
            study.proposed += 1
            names = {"experiment_tag": name, "trial_id": f"{name}_{trial_id}"}
            spec = {**self.spec, "config": config}
            return _create_trial_from_spec(spec, _make_parser(), evaluated_params={}, **names)

        def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None:
            pass

        def is_finished(self) -> bool:
            return all(study.proposed >= TRIALS for study in STUDIES.values())

        def has_checkpoint(self, dirpath: str) -> bool:
            return False

        def save_to_dir(self, dirpath: str, **kwargs: Any) -> None:
            pass

        def __reduce__(self) -> Any:
            return object, ()  # Tune pickles it and never needs the copy

    class Scheduler(TrialScheduler):
        metric = None

        def set_search_properties(self, *args: Any, **spec: Any) -> bool:
            return True

        def __reduce__(self) -> Any:
            return object, ()

        def choose_trial_to_run(self, tune_controller: Any) -> Any:
            for name, study in STUDIES.items():
                chosen = study.scheduler.choose_trial_to_run(View(tune_controller, name))
                if chosen is not None:
                    return chosen
            return None

        def on_trial_result(self, tune_controller: Any, trial: Any, result: Any) -> Any:
            study = STUDIES[trial.config["study"]]
            study.steps.setdefault(int(trial.trial_id[-5:]), []).append(result["training_iteration"])
            return hand_on("on_trial_result", tune_controller, trial, result)

        def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
            hand_on("on_trial_add", tune_controller, trial)

        def on_trial_error(self, tune_controller: Any, trial: Any) -> None:
            hand_on("on_trial_error", tune_controller, trial)

        def on_trial_complete(self, tune_controller: Any, trial: Any, result: Any) -> None:
            hand_on("on_trial_complete", tune_controller, trial, result)

        def on_trial_remove(self, tune_controller: Any, trial: Any) -> None:
            hand_on("on_trial_remove", tune_controller, trial)

    def hand_on(what: str, controller: Any, trial: Any, *result: Any) -> Any:
        name = trial.config["study"]
        return getattr(STUDIES[name].scheduler, what)(View(controller, name), trial, *result)

    return Search(), Scheduler()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scheduler", choices=["hyperband", "bohb", "pbt"])
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    os.environ |= {"TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1", "TUNE_MAX_PENDING_TRIALS_PG": "2"}
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    import ray
    from ray import tune

    before = packed(options.scheduler)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    STUDIES.update({name: build(options.scheduler, level, at) for at, (name, level) in enumerate(LEVELS.items())})
    if options.plain:
        alone = STUDIES["easy"]
        how = tune.TuneConfig(
            search_alg=alone.searcher, scheduler=alone.scheduler, num_samples=TRIALS, reuse_actors=True
        )
    else:
        search, scheduler = adapters()
        how = tune.TuneConfig(search_alg=search, scheduler=scheduler, reuse_actors=True)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        results = tune.Tuner(
            trainable(f"{folder}/killed" if options.kill else ""),
            tune_config=how,
            run_config=tune.RunConfig(
                storage_path=folder, name="spike", verbose=0, failure_config=tune.FailureConfig(max_failures=3)
            ),
        ).fit()
        seconds = time.perf_counter() - began
    print(f"{len(results)} trials, {len(results.errors)} failed, {seconds:.0f} s; packed {before:.2f} s")
    print("last steps:", [result.metrics["training_iteration"] for result in results if result.metrics])
    for name, study in STUDIES.items():
        print(name, {trial: study.steps[trial] for trial in sorted(study.steps)})
    ray.shutdown()


if __name__ == "__main__":
    main()
