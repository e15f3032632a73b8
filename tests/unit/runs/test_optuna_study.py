"""A recorded study as one of Optuna's: the same trials, whatever algorithm searched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import optuna
import pytest
from builders import grows, reason, tuner_of
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from optuna.trial import TrialState

from search_spaces import Choice, Float, Int, SearchSpace
from tuning.records.schema import StepRecord, TrialRecord
from tuning.runs.optuna_study import optuna_study
from tuning.runs.parameter_effects import LEAST, TOO_FEW
from tuning.runs.plots import (
    BLUE,
    NOTHING_TO_COMPARE,
    learning_curves,
    optimisation_history,
    parallel_coordinates,
    parameter_importance,
)
from tuning.runs.results import RunResult

MANY = 40  # trials of one family


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    runner = tuner_of(grows, steps=4, algorithm="random", scheduler={"name": "asha", "grace_period": 1})
    return runner.run(tmp_path_factory.mktemp("study") / "run", in_process=True, progress=False)


def test_every_trial_is_there_with_its_scores_and_how_it_ended(result: RunResult) -> None:
    study = result.to_optuna()
    records = result.trial_records
    ends = {"finished": TrialState.COMPLETE, "stopped": TrialState.PRUNED, "failed": TrialState.FAIL}
    assert [trial.state for trial in study.trials] == [ends[record.state] for record in records]
    assert {TrialState.COMPLETE, TrialState.PRUNED} <= {trial.state for trial in study.trials}
    assert [trial.params for trial in study.trials] == [record.config for record in records]
    assert [list(trial.intermediate_values.values()) for trial in study.trials] == [
        [step.score for step in record.steps] for record in records
    ]
    assert study.best_value == min(record.score for record in records if record.state == "finished")
    assert study.best_params == result.best_config()


def test_what_a_storage_has_of_a_study_is_not_added_again(result: RunResult) -> None:
    storage = optuna.storages.InMemoryStorage()
    for _ in range(2):
        assert len(result.to_optuna(storage=storage).trials) == len(result.trial_records)


def test_values_that_optuna_mixes_up_or_does_not_expect_are_kept(result: RunResult) -> None:
    space = SearchSpace([Choice("odd", [1, "1", [1, 2]], default=1), Int("n", 1, 4), Float("x", 1, 8, log=True)])
    tried = [{"odd": 1, "n": 4, "x": 1.0}, {"odd": "1", "n": 9, "x": 0.5}, {"odd": [1, 2], "n": 1, "x": 2.0}]
    first = result.trial_records[0]
    records = [replace(first, trial=number, config=config) for number, config in enumerate(tried)]
    study = optuna_study(records, space, "max")
    assert [trial.params["odd"] for trial in study.trials] == ["1", '"1"', "[1, 2]"]
    assert [trial.params["n"] for trial in study.trials] == [4, 9, 1]  # 9 was explored, or known from before
    assert [trial.params["x"] for trial in study.trials] == [1.0, 0.5, 2.0]


def test_optunas_own_pictures_show_it(result: RunResult) -> None:
    from matplotlib import pyplot

    before = dict(pyplot.rcParams)
    study = result.to_optuna()
    assert optimisation_history(study).get_ylabel() == "loss"
    assert parallel_coordinates(study).figure.axes
    assert dict(pyplot.rcParams) == before  # pictures drawn later look as before
    pyplot.close("all")


@pytest.mark.parametrize("points", [LEAST, 12, 60])
def test_parameters_are_weighed_by_the_trials_that_there_are(result: RunResult, points: int) -> None:
    from matplotlib import pyplot

    first = next(record for record in result.trial_records if record.state == "finished")
    space = SearchSpace([Float("x", 0, 1), Float("y", 0, 1)])

    def drawn(points: int, times: int) -> Axes:
        rng = np.random.default_rng(0)
        configs = [{"x": x, "y": y} for x, y in rng.uniform(size=(points, 2)).tolist()] * times
        records = [
            replace(first, trial=number, config=config, score=config["x"] + 0.01 * config["y"])
            for number, config in enumerate(configs)
        ]
        return parameter_importance(optuna_study(records, space, "min"))

    axes = drawn(points, 1)
    assert axes.get_yticklabels()[-1].get_text() == "x"
    assert f"{points} configurations" in axes.get_title()
    (lines,) = axes.collections  # two standard errors to either side
    for bar, (low, high) in zip(axes.patches, (line[:, 0] for line in lines.get_segments()), strict=True):
        assert low <= bar.get_width() <= high
        assert (bar.get_facecolor() == to_rgba(BLUE)) == (low > 0 or high == low > 0)  # grey: not clearly
    if points > LEAST:
        assert [bar.get_facecolor() == to_rgba(BLUE) for bar in axes.patches] == [False, True]
    few = drawn(LEAST - 1, 20)
    assert [text.get_text() for text in few.texts] == [TOO_FEW]
    assert not few.patches
    pyplot.close("all")


CURVES = [
    ("loss", "min", [4.0, 0.1], None, "log"),
    ("loss", "min", [0.4, 0.2], None, "linear"),
    ("accuracy", "max", [0.05, 0.9], None, "linear"),
    ("reward", "max", [1.0, 900.0], None, "linear"),
    ("rmse", "min", [90.0, 1.0], None, "log"),
    ("roc_auc", "max", [0.05, 0.9], None, "linear"),
    ("loss", "min", [-1.0, 90.0], None, "linear"),
    ("loss", "min", [4.0, 0.1], "accuracy", "linear"),
    ("accuracy", "max", [0.1, 0.9], "cost", "log"),
]


@pytest.mark.parametrize("case", CURVES, ids=str)
def test_only_errors_are_drawn_on_a_logarithmic_axis(result: RunResult, case: Any) -> None:
    from matplotlib import pyplot

    metric, mode, scores, figure, scale = case
    further = [{"accuracy": 0.02, "cost": 1.0}, {"accuracy": 0.9, "cost": 90.0, "late": 2.0}]
    steps = [StepRecord(n, *each) for n, each in enumerate(zip(scores, (0, 1), further, strict=True), start=1)]
    record = replace(result.trial_records[0], metric=metric, mode=mode, steps=steps, best_step=2, score=scores[-1])
    axes = learning_curves([record], figure=figure)
    assert axes.get_yscale() == scale
    if figure is not None:
        assert axes.get_ylabel() == figure
        assert axes.get_lines()[0].get_ydata().tolist() == [each[figure] for each in further]
    assert learning_curves([record], figure="late").get_lines()[0].get_ydata()[1] == 2.0
    pyplot.close("all")


def test_figures_of_every_step_are_columns_of_the_curves(result: RunResult) -> None:
    customer, record = result.customer(), result.trial_records[0]
    steps = [StepRecord(1, 0.5, 1.0, {"score": 9.0}), StepRecord(2, 0.4, 2.0, {"accuracy": 0.7, "score": 8.0})]
    found = replace(customer, trial_records=(replace(record, steps=steps),)).curves()
    assert found["metrics.score"].tolist() == [9.0, 8.0]
    assert found["metrics.accuracy"].isna().tolist() == [True, False]
    assert found["score"].tolist() == [0.5, 0.4]
    assert list(replace(customer, trial_records=()).curves()) == [*found.columns[:6]]


def test_learning_curves_show_where_trials_were_stopped(result: RunResult) -> None:
    from matplotlib import pyplot

    axes = learning_curves(result.trial_records)
    stopped = sum(record.state == "stopped" for record in result.trial_records)
    assert sum(line.get_marker() == "x" and len(line.get_xdata()) == 1 for line in axes.get_lines()) == stopped > 0
    said = [text.get_text() for text in axes.get_legend().get_texts()]
    assert f"{stopped} stopped early" in said
    assert any(text.startswith("the best: trial ") for text in said)
    pyplot.close("all")


def test_the_legend_of_learning_curves_names_the_lines_that_are_drawn(result: RunResult) -> None:
    from matplotlib import pyplot

    first, second, *_ = (record for record in result.trial_records if record.state == "finished")
    none = replace(first, state="failed", score=None, steps=())

    def named(*trials: TrialRecord) -> list[str]:
        return [text.get_text() for text in learning_curves(trials).get_legend().get_texts()]

    assert named(first) == [f"the best: trial {first.trial}"]
    best = min(first, second, key=lambda record: record.score)
    assert named(first, second, none) == [f"the best: trial {best.trial}", "1 more went the whole way"]
    assert learning_curves([none]).get_legend() is None
    pyplot.close("all")


def test_a_study_without_two_trials_that_compare_says_so_in_place_of_a_picture(result: RunResult) -> None:
    from matplotlib import pyplot

    customer = result.customer()
    early = replace(customer, study=None, params=None, reason=reason("not finished yet"), trial_records=())
    assert "not finished yet; 0 trials" in early._repr_html_()
    for study in (optuna.create_study(), early.to_optuna()):
        assert [text.get_text() for text in parameter_importance(study).texts] == [TOO_FEW]
        assert [text.get_text() for text in parallel_coordinates(study).texts] == [NOTHING_TO_COMPARE]
        optimisation_history(study)
    pyplot.close("all")


@pytest.mark.long
def test_optunas_pictures_say_which_trials_they_are_of_and_have_room_for_all_names() -> None:
    from matplotlib import pyplot

    names = [f"p{number:02}" for number in range(30)]
    rng = np.random.default_rng(0)
    wide = optuna.distributions.FloatDistribution(0, 1)

    def tried(family: str, parameters: list[str]) -> optuna.trial.FrozenTrial:
        params = dict(zip(parameters, rng.random(len(parameters)).tolist(), strict=True))
        distributions = dict.fromkeys(parameters, wide)
        return optuna.create_trial(
            params=params, distributions=distributions, value=sum(params.values()), user_attrs={"family": family}
        )

    study = optuna.create_study()
    study.add_trials([*(tried("mlp", names) for _ in range(MANY)), *(tried("knn", ["k"]) for _ in range(8))])
    axes = parallel_coordinates(study)
    assert axes.get_title() == f"{MANY} of {MANY + 8} trials, those that have the same parameters"
    assert {label.get_text() for label in axes.get_xticklabels()} >= set(names)
    pyplot.close("all")
