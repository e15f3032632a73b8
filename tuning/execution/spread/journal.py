"""The journal of spread studies: what happened, in order, as record parts of their own kind.

Written before the trials' records: a record that is missing can be made again from the journal, while a record
without an end would make a recorded trial run again.

An event is a row with its detail as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from tuning.basics.documents import Json
from tuning.execution.reports import StepReport, TrialLength
from tuning.execution.spread.events import (
    CheckpointSaved,
    Event,
    Occurrence,
    StepTaken,
    StudyStopped,
    TrialEnded,
    TrialSuggested,
)
from tuning.notes import Note, from_row
from tuning.records.ownership import Term
from tuning.records.parts import JOURNAL, accepted, intact, of_kind, part_name
from tuning.steps import Step
from tuning.storage.run_directory import RunDirectory

DRIVER = 99_999  # stands where a part's name has its shard: these are written by the driver
KINDS: dict[type[Occurrence], str] = {
    TrialSuggested: "suggest",
    StepTaken: "result",
    CheckpointSaved: "save",
    TrialEnded: "end",
    StudyStopped: "over",
}


def written_by_driver(names: Iterable[str]) -> list[str]:
    """Names of the parts that hold spread studies and their trials."""
    return [name for name in names if f"-s{DRIVER:05d}-" in name]


def write_journal(directory: RunDirectory, term: Term, events: list[Event]) -> str:
    """Write some events as one part; its name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist([row_of(event) for event in events])
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    data = bytes(sink.getvalue())
    name = part_name(term.folder, DRIVER, JOURNAL, data)
    directory.write(name, data)
    return name


def read_journal(
    directory: RunDirectory, term: Term, damaged: Callable[[str, Exception], None]
) -> dict[str, list[Event]]:
    """All events that count for a term, by study, in order; those behind a gap (a damaged part) are left out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: dict[str, dict[int, Event]] = {}
    for name in of_kind(accepted(directory, term), JOURNAL):
        try:
            rows = pq.read_table(pa.BufferReader(intact(directory, name)), page_checksum_verification=True).to_pylist()
        except (OSError, ValueError) as error:
            damaged(name, error)
            continue
        for row in rows:
            event = event_of(row)
            found.setdefault(event.study, {}).setdefault(event.order, event)
    return {study: list(_unbroken(events)) for study, events in found.items()}


def _unbroken(events: dict[int, Event]) -> Iterable[Event]:
    order = 0
    while order in events:
        yield events[order]
        order += 1


def row_of(event: Event) -> dict[str, object]:
    """An event as a row."""
    detail = json.dumps({**_detail(event.what), "at": event.at})
    kind = KINDS[type(event.what)]
    return {"study": event.study, "order": event.order, "kind": kind, "trial": event.trial, "detail": detail}


def event_of(row: Json) -> Event:
    """The opposite of `row_of`."""
    detail: Json = json.loads(row["detail"])
    return Event(row["study"], row["order"], row["trial"], _what(row["kind"], detail), detail["at"])


def _detail(what: Occurrence) -> dict[str, object]:
    match what:
        case TrialSuggested():
            return {"config": dict(what.config), "seconds": what.seconds}
        case StepTaken(report, stop, ruled):
            step = report.step
            return {
                "step": step.step,
                "score": step.score,
                "seconds": report.seconds,
                "folds": list(step.fold_scores),
                "figures": dict(step.metrics),
                **_length_detail(report.length),
                "fit_seconds": report.fit_seconds,
                "worker": report.worker,
                "stop": stop,
                "ruled": None if ruled is None else [ruled[0], _row(ruled[1])],
            }
        case CheckpointSaved():
            return {"path": what.path}
        case TrialEnded():
            shape = None if what.length is None else _length_detail(what.length)
            failure = None if what.failure is None else [_row(what.failure[0]), what.failure[1]]
            return {"state": what.state, "failure": failure, "crashed": what.crash, "shape": shape}
        case StudyStopped():
            return {"reason": what.reason.to_row()}


def _what(kind: str, detail: Json) -> Occurrence:
    if kind == KINDS[TrialSuggested]:
        return TrialSuggested(detail["config"], detail["seconds"])
    if kind == KINDS[StepTaken]:
        step = Step(detail["step"], float(detail["score"]), tuple(detail["folds"]), detail["figures"])
        report = StepReport(step, detail["seconds"], detail["fit_seconds"], _length_of(detail), detail["worker"])
        ruled = detail["ruled"]
        return StepTaken(report, detail["stop"], (ruled[0], _note(ruled[1])) if ruled else None)
    if kind == KINDS[CheckpointSaved]:
        return CheckpointSaved(detail["path"])
    if kind == KINDS[StudyStopped]:
        return StudyStopped(from_row(detail["reason"]))
    failure, crash, shape = (detail[name] or () for name in ("failure", "crashed", "shape"))
    known = _length_of(shape) if shape else None
    failed = (from_row(failure[0]), failure[1]) if failure else None
    return TrialEnded(detail["state"], failed, tuple(crash) or None, known)


def _row(note: Note | None) -> dict[str, str] | None:
    return None if note is None else note.to_row()


def _note(row: dict[str, str] | None) -> Note | None:
    return None if row is None else from_row(row)


def _length_detail(length: TrialLength) -> dict[str, object]:
    return {
        "full": length.full_steps,
        "race": length.race_steps,
        "prefix": length.best_prefix,
        "progress": length.progress,
    }


def _length_of(detail: Json) -> TrialLength:
    return TrialLength(detail["full"], detail["prefix"], detail["progress"], detail["race"])
