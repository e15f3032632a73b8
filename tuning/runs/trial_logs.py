"""Trials as Ray Tune's loggers write them, for TensorBoard and for programs that read `progress.csv` and `result.json`.

Tune itself knows batches or bare reports here, and nothing of a study's trials. So the files are made from the records,
in both placements, by the classes of Tune: a folder per trial, once it has ended. Whoever records a trial writes them;
what a crash has kept from it is made up for at the end. A file that is written again replaces the one before.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tuning.records.parts import TRIALS, of_kind, tables_in
from tuning.records.schema import TrialRecord
from tuning.records.tables import KEYS, decode_table, records_of
from tuning.storage.names import slug
from tuning.storage.run_directory import RunDirectory

FOLDER = "logs"
EVENTS = "events.out.tfevents"
#: By logger the class of `ray.tune.logger`, and the file here that it is done with.
LOGGERS = {
    "tensorboard": ("TBXLoggerCallback", f"{EVENTS}.trial"),  # no time and host in the name: a trial has one
    "csv": ("CSVLoggerCallback", "progress.csv"),
    "json": ("JsonLoggerCallback", "result.json"),
}
PICKLED = ".pkl"  # the configuration once more, in a format that runs code when it is read


@dataclass(frozen=True)
class TrialLogs:
    """The logs of a run. loggers: names of `LOGGERS`; with none, nothing is done."""

    directory: RunDirectory
    loggers: Sequence[str] = ()

    def write(self, records: Iterable[TrialRecord]) -> None:
        """Write the files of these trials. Never raises: `complete` does what is missing, or says why it cannot."""
        if self.loggers:
            with suppress(Exception):
                self._write(records)

    def complete(self, parts: Sequence[str]) -> None:
        """Write the files that are missing. parts: names of those that count."""
        if not self.loggers:
            return
        there = set(self.directory.list(FOLDER))
        files = [LOGGERS[each][1] for each in self.loggers]
        for name, table in tables_in(self.directory, of_kind(parts, TRIALS), KEYS[TRIALS], _left_out):
            keys = set(zip(*(table[key].to_pylist() for key in KEYS[TRIALS]), strict=True))
            lacking = {key for key in keys if not there.issuperset(f"{_folder(*key)}/{file}" for file in files)}
            if lacking:
                records = records_of(decode_table(self.directory.read(name)), TrialRecord)
                self._write(record for record in records if record.key in lacking)

    def _write(self, records: Iterable[TrialRecord]) -> None:
        for record in records:
            with tempfile.TemporaryDirectory() as folder:
                for each in self.loggers:
                    _log(LOGGERS[each][0], record, folder)
                for file in sorted(Path(folder).iterdir()):
                    name = LOGGERS["tensorboard"][1] if file.name.startswith(EVENTS) else file.name
                    if file.suffix != PICKLED:
                        self.directory.write(f"{_folder(*record.key)}/{name}", file.read_bytes())


def _left_out(name: str, error: Exception) -> None:
    """A damaged part's trials are run again, and then logged."""


def _folder(study: str, trial: int) -> str:
    return f"{FOLDER}/{slug(study)}/{trial:05d}"


@dataclass(eq=False)
class _Trial:
    """A recorded trial as Tune's loggers look at one. local_path: where they write."""

    trial_id: str
    config: dict[str, object]
    local_path: str
    checkpoint: None = None

    @property
    def evaluated_params(self) -> dict[str, object]:
        return self.config

    def init_local_path(self) -> None:
        """Does nothing: the folder exists."""


def _log(kind: str, record: TrialRecord, folder: str) -> None:
    """Have a logger write a trial from its start to its end."""
    from ray.tune import logger

    trial = _Trial(f"{slug(record.study)}_{record.trial:05d}", {"model": record.family, **record.config}, folder)
    callback = getattr(logger, kind)()
    callback.log_trial_start(trial)
    for number, result in enumerate(_results(record, trial.trial_id)):
        callback.log_trial_result(number, trial, result)
    callback.log_trial_end(trial, failed=record.error is not None)


def _results(record: TrialRecord, trial_id: str) -> Iterator[dict[str, object]]:
    """Yield what Tune would have been told after each step; `score` is the step's, the last one the trial's."""
    before = 0.0
    for number, step in enumerate(record.steps, start=1):
        last = number == len(record.steps)
        score = record.score if last and record.score is not None else step.score
        yield {
            record.shown_metric: step.score,
            **record.reported(step.metrics),
            "score": score,
            "training_iteration": step.step,
            "time_this_iter_s": step.seconds - before,
            "time_total_s": step.seconds,
            "timestamp": int(record.started + step.seconds),
            "done": last,
            "trial_id": trial_id,
            "config": dict(record.config),
        }
        before = step.seconds
