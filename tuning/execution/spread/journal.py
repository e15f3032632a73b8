"""The journal of spread studies: what happened, in order, as record parts of their own kind.

Written before the trials' records: a record that is missing can be made again from the journal, while a record
without an end would make a recorded trial run again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from tuning.execution.spread.spread_study import Event
from tuning.records.ownership import Term
from tuning.records.parts import JOURNAL, accepted, intact, of_kind, part_name
from tuning.storage.run_directory import RunDirectory

DRIVER = 99_999  # stands where a part's name has its shard: these are written by the driver


def written_by_driver(names: Iterable[str]) -> list[str]:
    """Names of the parts that hold spread studies and their trials."""
    return [name for name in names if f"-s{DRIVER:05d}-" in name]


def write_journal(directory: RunDirectory, term: Term, events: list[Event]) -> str:
    """Write some events as one part; its name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "study": [event.study for event in events],
            "order": [event.order for event in events],
            "kind": [event.kind for event in events],
            "trial": [event.trial for event in events],
            "detail": [json.dumps(event.detail) for event in events],
        }
    )
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
            event = Event(row["study"], row["order"], row["kind"], row["trial"], json.loads(row["detail"]))
            found.setdefault(event.study, {}).setdefault(event.order, event)
    return {study: list(_unbroken(events)) for study, events in found.items()}


def _unbroken(events: dict[int, Event]) -> Iterable[Event]:
    order = 0
    while order in events:
        yield events[order]
        order += 1
