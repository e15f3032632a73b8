"""Trials that were trained to their end, as a study has them when it is concluded."""

from __future__ import annotations

from mlflow_records import trial

from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import StudyData, full_steps, train
from tuning.records.schema import Config, TrialRecord


def trained(config: Config, data: StudyData, metric: Metric, number: int = 0) -> TrialRecord:
    """Return the record of a trial with this configuration."""
    *_, last = train(config, data, metric, 5)
    return trial(
        config=config, family=config["model"], metric=metric.name, mode=metric.mode, seed=5, score=last.score,
        trial=number, fold_scores=last.fold_scores, best_step=full_steps(config, data), schedule=None, lineage=None,
    )  # fmt: skip
