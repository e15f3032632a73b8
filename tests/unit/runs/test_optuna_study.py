"""A recorded study as one of Optuna's: the same trials, whatever algorithm searched."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import optuna
import pytest
from builders import grows, reason, tuner_of
from matplotlib import pyplot
from optuna.trial import TrialState

from search_spaces import Choice, Float, Int, SearchSpace
from tuning.records.schema import StepRecord, TrialRecord
from tuning.runs.optuna_study import optuna_study
from tuning.runs.plots import learning_curves
from tuning.runs.results import RunResult


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    runner = tuner_of(grows, steps=4, algorithm="random", scheduler={"name": "asha", "grace_period": 1})
    return runner.run(tmp_path_factory.mktemp("study") / "run", in_process=True, progress=False)


def test_every_trial_is_there_with_its_scores_and_how_it_ended(result: RunResult) -> None:
    study = result.customer().to_optuna()
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
        assert len(result.customer().to_optuna(storage=storage).trials) == len(result.trial_records)


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
    from optuna.visualization.matplotlib import plot_optimization_history, plot_param_importances

    study = result.customer().to_optuna()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna's, that they are new
        assert plot_optimization_history(study).collections
        assert plot_param_importances(study).patches
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
    axes = learning_curves(result.trial_records)
    stopped = sum(record.state == "stopped" for record in result.trial_records)
    assert sum(line.get_marker() == "x" and len(line.get_xdata()) == 1 for line in axes.get_lines()) == stopped > 0
    said = [text.get_text() for text in axes.get_legend().get_texts()]
    assert f"{stopped} stopped early" in said
    assert any(text.startswith("the best: trial ") for text in said)
    pyplot.close("all")


def test_the_legend_of_learning_curves_names_the_lines_that_are_drawn(result: RunResult) -> None:
    first, second, *_ = (record for record in result.trial_records if record.state == "finished")
    none = replace(first, state="failed", score=None, steps=())

    def named(*trials: TrialRecord) -> list[str]:
        return [text.get_text() for text in learning_curves(trials).get_legend().get_texts()]

    assert named(first) == [f"the best: trial {first.trial}"]
    best = min(first, second, key=lambda record: record.score)
    assert named(first, second, none) == [f"the best: trial {best.trial}", "1 more went the whole way"]
    assert learning_curves([none]).get_legend() is None
    pyplot.close("all")


def test_a_study_that_has_no_trial_yet_is_one_of_optunas(result: RunResult) -> None:
    customer = result.customer()
    early = replace(customer, study=None, params=None, reason=reason("not finished yet"), trial_records=())
    assert "not finished yet; 0 trials" in early._repr_html_()
    assert early.to_optuna().trials == []
    assert early.parameter_effects() == {}
