"""The names of a result, what other tools call these things, and what is typed next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tuning.basics.public import Public
from tuning.basics.wording import resume_advice
from tuning.definition.definition import Definition
from tuning.definition.plain_values import IN_MEMORY

BEST = "best_config(), of one customer of many best_config('acme'); of an ensemble it is its best trial's"
SCORE = "leaderboard()['cv_score'], on the hold-out rows leaderboard()['test_score']; of others model().score(X, y)"
RECORDED = (
    "result.leaderboard()['cv_score'], on the hold-out rows ['test_score']; this customer's are study.cv_score and "
    "study.test_score, where an error has a minus before it"
)
MODEL = "model(), of one customer of many model('acme')"
FIGURES = "in tuning.runs.plots, such as plots.gains(result)"


class OfResult(Public):
    """Those of `RunResult`."""

    public = (
        *("leaderboard", "trials", "customer", "best_config", "model", "predict", "importance", "parameter_effects"),
        *("to_optuna", "warm_start", "fixed_configurations", "best_studies", "trial_records", "study_records"),
        *("summary", "notes", "unfinished", "directory"),
    )
    elsewhere: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("best_params", "best_params_", "get_best_params", "get_best_config"), BEST),
        **dict.fromkeys(("best_score", "best_score_", "best_value", "best_loss", "score", "scores"), SCORE),
        **dict.fromkeys(("best_model", "get_best_model", "best_estimator", "best_estimator_", "get_model"), MODEL),
        **dict.fromkeys(("best_trial", "get_best_trial", "get_best_result", "best_result"), "customer().winner"),
        "predict_proba": "predict(rows), which has a column for each class, or model('acme').predict_proba(rows)",
        **dict.fromkeys(
            ("models", "estimators"),
            "model('acme'); of all that have one: "
            "{each: result.model(each) for each in result.leaderboard().query(\"status == 'ok'\")['customer']}",
        ),
        **dict.fromkeys(("trials_dataframe", "get_dataframe", "cv_results_", "results_df", "history"), "trials()"),
        **dict.fromkeys(("to_df", "to_frame", "to_pandas", "df", "results"), "leaderboard(), of the trials trials()"),
        **dict.fromkeys(("feature_importances_", "feature_importance", "importances"), "importance()"),
        **dict.fromkeys(
            ("study", "studies"), "customer('acme').study, its record; to_optuna('acme') is one of Optuna's"
        ),
        "mlflow": "a copy in the run's folder, if the run had one: "
        "mlflow.set_tracking_uri(f'sqlite:///{result.directory.root}/mlflow.db')",
        **dict.fromkeys(("plot", "show"), FIGURES),
        **dict.fromkeys(("customers", "keys"), "list(result), their ids"),
    }


class OfCustomer(Public):
    """Those of `CustomerResult`."""

    public = (
        *("customer", "study", "params", "reason", "winner", "notes", "trials", "trial_records", "curves", "hold_out"),
        *("schedule", "importance", "partial_dependence", "parameter_effects", "to_optuna", "directory"),
    )
    elsewhere: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("best_params", "best_config", "config"), "params"),
        **dict.fromkeys(("best_score", "score", "best_value", "cv_score", "test_score", "gain"), RECORDED),
        **dict.fromkeys(("model", "best_model", "predict"), "the result's model('acme'), which predicts"),
        **dict.fromkeys(("feature_importances_", "feature_importance", "importances"), "importance()"),
        **dict.fromkeys(("best_trial", "trial"), "winner"),
        "plot": "in tuning.runs.plots, such as plots.learning_curves(result.customer('acme'))",
    }


def next_steps(customer: str | None, *, of_objective: bool) -> list[str]:
    """What somebody who looks at a result may want to type now. customer: one of several; None of a single one."""
    given = "" if customer is None else repr(customer)
    best = f"best_config({given})" if of_objective else f"model({given}).predict(new_rows)"
    return [f"result.customer({given})", f"result.{best}", "result.leaderboard()"]


def resume_here(definition: Definition, shown: str) -> str:
    """The same of a run that has not ended. shown: where it lies."""
    return resume_advice(shown, by_runner=definition.objective == IN_MEMORY)
