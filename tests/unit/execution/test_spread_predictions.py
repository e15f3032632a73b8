"""What spread trials leave for an ensemble."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tuning.evaluation.out_of_fold import KeptPredictions, OutOfFold
from tuning.execution.reports import StepReport, TrialLength
from tuning.execution.spread.state import (
    Reported,
    folder_of,
    read_predictions,
    with_predictions,
    write_predictions,
)
from tuning.preprocessing.task import REGRESSION, Prediction, Task
from tuning.steps import Step
from tuning.storage.run_directory import RunDirectory


def test_a_file_gives_back_what_was_said_and_a_damaged_one_nothing(tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path))
    said = OutOfFold(7, 0.1 + 0.2, (np.array([[0.1, 0.9], [0.25, 0.75]], dtype=np.float32), np.array([[1.0, 0.0]])))
    write_predictions(directory, "ä/b", 12, said)
    found = read_predictions(directory, "ä/b", 12)
    assert found is not None
    assert (found.step, found.score) == (7, 0.1 + 0.2)
    for ours, theirs in zip(found.folds, said.folds, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
    assert read_predictions(directory, "ä/b", 13) is None
    (file,) = (tmp_path / folder_of("ä/b")).iterdir()
    for content in (b"", file.read_bytes()[:-40], np.array([object()], dtype=object).dumps()):
        file.write_bytes(content)
        assert read_predictions(directory, "ä/b", 12) is None


@pytest.mark.parametrize(("taken", "steps"), [(2, [2]), (3, [3]), (9, [3])], ids=["stopped", "at its last", "whole"])
def test_a_trial_leaves_what_it_said_before_anybody_hears_that_it_has_ended(taken: int, steps: list[int]) -> None:
    kept, written = KeptPredictions(Task(REGRESSION), "max", 20), []
    watch = kept.watch({"model": "m"}, 5)

    def training() -> Iterator[Reported]:
        for step in (1, 2, 3):
            watch(step, float(step), [Prediction(np.array([1.0]))])
            yield StepReport(Step(step, float(step)), 0.1, 0.1, TrialLength(3, True, True, 3)), None

    reports = with_predictions(training(), kept, {"model": "m"}, 5, lambda found: written.append(found.step))
    for _ in range(taken):
        next(reports, None)
        if taken == 3:
            heard = list(written)
    if taken == 3:
        assert heard == steps
    reports.close()
    assert written == steps
    assert kept.of({"model": "m"}, 5) is None, "the next trial begins with nothing"
