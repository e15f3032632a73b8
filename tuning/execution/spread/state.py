"""What a spread trial leaves for others: its checkpoint, and what it said of the rows that its folds left out.

The state in a checkpoint is a pickle, because it holds whatever a model or the user's objective is. Unpickling runs
code, so only what this run wrote itself is read: from a folder below the run directory, which is its owner's only, and
with the digest that stands before it. The driver reads the description alone, which is JSON.

What a trial said of its rows is a file until its study has ended: workers write it, and the last fit reads it, which
would have to train every trial once more else. A file that is not there, or not whole, costs just that.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import TypeAlias

import numpy as np

from tuning.basics.documents import Json
from tuning.errors import StorageError
from tuning.evaluation.out_of_fold import KeptPredictions, OutOfFold
from tuning.execution.reports import FailureReport, StepReport, TrialLength
from tuning.steps import Step
from tuning.storage.names import slug
from tuning.storage.run_directory import RunDirectory
from tuning.study.interfaces import Configuration
from tuning.study.record import versions
from tuning.study.study import Study

FOLDER, STATE, TRIAL = "tune", "state.pkl", "trial.json"
PREDICTIONS = "predictions"
DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True)
class SavedState:
    """From which a trial goes on.

    Attributes:
        state: of its training.
        reports: of its steps until then.
    """

    state: object
    reports: tuple[StepReport, ...] = ()


#: A trial's report, and the state to save with it where one is due.
Reported: TypeAlias = tuple[StepReport | FailureReport, SavedState | None]


@dataclass(frozen=True)
class BegunTrial:
    """A trial that has a checkpoint, as that says.

    Attributes:
        study: its id.
        basis: of what it was trained, see `basis_of`.
        number, config: which trial.
        reports: of its steps until then.
        path: of the checkpoint in the run directory.
    """

    study: str
    basis: str
    number: int
    config: Configuration
    reports: tuple[StepReport, ...] = ()
    path: str = field(default="", compare=False)


def basis_of(study: Study) -> str:
    """Return what a trial's state depends on: a checkpoint of other data or of other libraries is none."""
    customer = study.customer
    known_by = f"{customer.digest or customer.stamp}\n{versions()}"
    return hashlib.blake2b(known_by.encode(), digest_size=8).hexdigest()


def write_state(folder: str, content: SavedState, trial: BegunTrial) -> None:
    """Put a state and its trial into a local folder, which becomes a checkpoint."""
    data = pickle.dumps((content.state, content.reports))
    with open(os.path.join(folder, STATE), "wb") as stream:
        stream.write(hashlib.sha256(data).digest() + data)
    with open(os.path.join(folder, TRIAL), "w", encoding="utf-8") as text:
        json.dump(asdict(replace(trial, reports=content.reports)), text)


def read_state(directory: RunDirectory, path: str) -> SavedState | None:
    """Return the state in a checkpoint; None when it is gone, damaged or not of this run: the trial starts again.

    path: of the checkpoint's folder, on the run directory's filesystem.
    """
    name = path.removeprefix(f"{directory.root}/")
    if name == path or not name.startswith(f"{FOLDER}/"):
        return None
    try:
        content = directory.read(f"{name}/{STATE}")
    except (OSError, StorageError):
        return None
    digest, data = content[:DIGEST], content[DIGEST:]
    if hashlib.sha256(data).digest() != digest:
        return None
    return SavedState(*pickle.loads(data))  # noqa: S301  # see above


def checkpoints(directory: RunDirectory) -> list[str]:
    """Return the folders of all checkpoints in a run directory."""
    ends = (f"/{STATE}", f"/{TRIAL}")
    return sorted({name.rpartition("/")[0] for name in directory.list(FOLDER) if name.endswith(ends)})


def begun_trials(directory: RunDirectory) -> dict[str, dict[int, BegunTrial]]:
    """Return the trials that have a checkpoint, by study and number, each as it was in its latest one."""
    found: dict[str, dict[int, BegunTrial]] = {}
    for trial in sorted(_read_all(directory), key=_age):
        found.setdefault(trial.study, {})[trial.number] = trial
    return found


def _age(trial: BegunTrial) -> tuple[str, int]:
    """Return the term of the driver that had it, and how far it was."""
    tuner = trial.path.split("/")[1]
    return tuner.rpartition("-")[0], len(trial.reports)


def _read_all(directory: RunDirectory) -> Iterator[BegunTrial]:
    for path in checkpoints(directory):
        try:
            content: Json = json.loads(directory.read(f"{path}/{TRIAL}"))
            reports = tuple(_report_of(each) for each in content["reports"])
            yield BegunTrial(**{**content, "reports": reports, "path": path})
        except (OSError, StorageError, ValueError, TypeError, KeyError):  # its writer was killed
            continue


def _report_of(row: Json) -> StepReport:
    step, length = Step(**{**row["step"], "fold_scores": tuple(row["step"]["fold_scores"])}), row["length"]
    return StepReport(**{**row, "step": step, "length": TrialLength(**length)})


def folder_of(study: str) -> str:
    """Return where a study's files are."""
    return f"{PREDICTIONS}/{slug(study)}"


def write_predictions(directory: RunDirectory, study: str, trial: int, found: OutOfFold) -> None:
    """Write a trial's file. study: its id."""
    content = io.BytesIO()
    np.savez(content, np.int64(found.step), np.float64(found.score), *found.folds)
    directory.write(f"{folder_of(study)}/{trial}.npz", content.getvalue())


def read_predictions(directory: RunDirectory, study: str, trial: int) -> OutOfFold | None:
    """Return what `write_predictions` wrote; None where there is nothing that can be read."""
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
    """Return a trial's reports; what it said is written before its last possible one, and whenever it ends."""
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
