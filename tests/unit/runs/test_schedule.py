"""Population-based training finds a schedule, of which the best configuration is the end: both are said and drawn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from matplotlib import pyplot
from mlflow_records import trial
from ray import tune

from search_spaces import Choice, Float, SearchSpace
from tuning import RunResult, TuneRunner
from tuning.cli.program import main
from tuning.records.schema import StepRecord
from tuning.runs import plots
from tuning.runs.outcome import sentences
from tuning.steps import Step

STEPS = 8
PBT = {"name": "pbt", "perturbation_interval": 2}
SPACE = SearchSpace([Float("rate", 0.1, 10, log=True), Choice("kind", ["slow", None, 1.0]), Float("fixed", 2, 2)])


def grown(weight: float, step: int, config: dict[str, Any]) -> float:
    """A large rate is best in the first half, a small one in the second."""
    fits = config["kind"] == (None if step <= 4 else 1.0)
    return weight + (config["rate"] / 10 if step <= 4 else 1 / (1 + 10 * config["rate"])) + fits / 2


def objective(config: dict[str, Any], state: Any) -> Iterator[Step]:
    done, weight = state or (0, 0.0)
    for step in range(done + 1, STEPS + 1):
        weight = grown(weight, step, config)
        yield Step(step, weight, get_state=lambda step=step, weight=weight: (step, weight))


def searched(folder: Path, **fields: Any) -> RunResult:
    fields = {"objective": objective, "search_space": SPACE, "scheduler": PBT, **fields}
    runner = TuneRunner(metric="weight", steps=STEPS, trials=17, algorithm="random", mlflow=False, **fields)
    return runner.run(str(folder), progress=False, in_process=True)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return searched(tmp_path_factory.mktemp("pbt") / "run")


def along(schedule: list[tuple[int, Any]]) -> float:
    weight = 0.0
    for step in range(1, STEPS + 1):
        weight = grown(weight, step, next(config for first, config in reversed(schedule) if first <= step))
    return weight


@pytest.mark.long
def test_training_along_the_schedule_is_what_won_and_its_end_alone_is_not(result: RunResult) -> None:
    found = result.customer()
    schedule = found.schedule()
    assert len(schedule) > 2
    assert schedule[0][0] == 1
    assert schedule[-1][1] == result.best_config() == found.params
    assert found.winner is not None
    assert along(schedule) == pytest.approx(found.winner.score)
    assert along([(1, result.best_config())]) < found.winner.score - 0.1


@pytest.mark.long
def test_all_that_is_said_of_the_winner_says_that_its_parameters_are_the_end_of_a_schedule(result: RunResult) -> None:
    found, count = result.customer(), len(result.customer().schedule())
    facts = dict(found.facts())
    assert facts["parameters of"] == "its last stage"
    assert facts["schedule"].count("from step ") == count
    assert "fixed" not in facts["schedule"]  # it never changes
    assert result.leaderboard()["stages"].tolist() == [count]
    shown = CliRunner().invoke(main, ["show", result.directory.root]).stdout
    assert "from step 1 " in shown
    assert "its last stage" in shown
    assert any(f"at the end of a schedule of {count} stages." in text for text in sentences(result, result.summary()))
    page = Path(result.directory.root, "report.html").read_text()
    assert "parameters are those of the last stage" in page


@pytest.mark.long
def test_the_picture_has_a_row_for_each_hyperparameter_that_changed(result: RunResult) -> None:
    found = result.customer()
    axes = plots.schedule(found)
    changed = [name for name in SPACE.labelled if len({repr(each[name]) for _, each in found.schedule()}) > 1]
    assert sorted(label.get_text() for label in axes.get_yticklabels()) == sorted(changed)
    assert "rate" in changed
    assert len(axes.patches) == len(axes.texts) == len(changed) * len(found.schedule())
    pyplot.close("all")


@pytest.mark.long
def test_a_nested_configuration_is_nested_in_every_stage(tmp_path: Path) -> None:
    def nested(config: dict[str, Any], state: Any) -> Iterator[Step]:
        return objective({**config["a"], "kind": 1.0}, state)

    result = searched(tmp_path / "run", objective=nested, search_space={"a": {"rate": tune.loguniform(0.1, 10)}})
    stages = result.customer().schedule()
    assert len(stages) > 1
    assert all(set(config) == {"a"} and set(config["a"]) == {"rate"} for _, config in stages)


@pytest.mark.long
def test_a_search_whose_values_never_change_has_one_stage(tmp_path: Path) -> None:
    result = searched(tmp_path / "run", scheduler="fifo")
    found = result.customer()
    assert found.schedule() == [(1, result.best_config())]
    assert "schedule" not in dict(found.facts())
    assert "schedule" not in " ".join(sentences(result, result.summary()))
    assert result.leaderboard()["stages"].isna().all()
    assert plots.schedule(found).get_title().startswith("The winner has trained with the same hyperparameters")
    pyplot.close("all")


@pytest.mark.parametrize(
    ("schedule", "best_step", "stages"),
    [
        (None, 3, [(1, 9)]),
        ("[[0, {\"a\": 1}], [2, {\"a\": 9}]]", 3, [(1, 1), (3, 9)]),
        ("[[0, {\"a\": 1}], [2, {\"a\": 9}]]", 2, [(1, 1)]),  # the step that counts came before the change
        ("[[0, {\"a\": 1}], [1, {\"a\": 5}], [1, {\"a\": 9}]]", 3, [(1, 1), (2, 9)]),  # nothing was trained with 5
        ("[[0, {\"a\": 1}], [3, {\"a\": 9}]]", 3, [(1, 1)]),
    ],
)  # fmt: skip
def test_stages_are_those_on_the_way_to_the_model(schedule: str | None, best_step: int, stages: Any) -> None:
    steps = [StepRecord(number, 0.1) for number in (1, 2, 3)]
    record = trial(config={"a": 9}, schedule=schedule, best_step=best_step, steps=steps)
    assert [(first, config["a"]) for first, config in record.stages] == stages
