"""What spread trials said of the rows that their folds left out: a file per trial, until their study has ended.

Workers write them and the driver reads them, which would have to train every trial once more else. A file that is not
there, or not whole, costs just that.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Generator, Iterator

import numpy as np

from tuning.errors import StorageError
from tuning.evaluation.out_of_fold import KeptPredictions, OutOfFold
from tuning.execution.reports import StepReport
from tuning.execution.spread.state import Reported
from tuning.storage.names import slug
from tuning.storage.run_directory import RunDirectory
from tuning.study.interfaces import Configuration

FOLDER = "predictions"


def folder_of(study: str) -> str:
    """Where a study's files are."""
    return f"{FOLDER}/{slug(study)}"


def write_predictions(directory: RunDirectory, study: str, trial: int, found: OutOfFold) -> None:
    """Write a trial's file. study: its id."""
    content = io.BytesIO()
    np.savez(content, np.int64(found.step), np.float64(found.score), *found.folds)
    directory.write(f"{folder_of(study)}/{trial}.npz", content.getvalue())


def read_predictions(directory: RunDirectory, study: str, trial: int) -> OutOfFold | None:
    """What `write_predictions` wrote; None where there is nothing that can be read."""
    try:
        content = directory.read(f"{folder_of(study)}/{trial}.npz")
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            step, score, *folds = (file[name] for name in file.files)
            return OutOfFold(int(step), float(score), tuple(folds))
    except (OSError, StorageError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def with_predictions(
    reports: Iterator[Reported],
    kept: KeptPredictions,
    config: Configuration,
    seed: int,
    write: Callable[[OutOfFold], None],
) -> Generator[Reported, None, None]:
    """A trial's reports; what it said is written before its last possible one, and whenever it ends."""
    written: OutOfFold | None = None
    try:
        for report, state in reports:
            last = isinstance(report, StepReport) and report.step.step == report.length.full_steps
            if last and (found := kept.of(config, seed)) is not None:
                write(found)
                written = found
            yield report, state
    finally:
        if (found := kept.of(config, seed)) is not None and found is not written:
            write(found)
        kept.clear()
