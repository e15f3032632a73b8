"""Record parts of a run: which ones count, writing and reading them."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import attrgetter
from random import Random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tuning.records.ownership import Term
from tuning.records.schema import StudyRecord, TrialRecord
from tuning.records.tables import KEYS, decode_table, distinct, encode, encode_table, joined, no_rows, records_of
from tuning.storage.run_directory import RunDirectory

TRIALS, STUDIES, POOL = "trials", "studies", "pool"
DRIVER = 99_999  # stands where a part's name has its batch: these are written by the driver
READERS, READ_AHEAD = 8, 64  # threads, and parts that are read before they are asked for


def accepted(directory: RunDirectory, term: Term) -> list[str]:
    """Names of all parts that count for a term."""
    return [*term.accepts, *directory.list(term.records)]


Damaged = Callable[[str, Exception], None]  # called with the name of a damaged part and what is wrong with it


def read_trials(directory: RunDirectory, names: Iterable[str], damaged: Damaged | None = None) -> list[TrialRecord]:
    """The trials in some parts, each once. A damaged part is left out where `damaged` hears of it, else an error."""
    found = read_table(directory, names, TRIALS, damaged=damaged)
    return sorted(records_of(found, TrialRecord), key=attrgetter("key"))


def read_studies(directory: RunDirectory, names: Iterable[str], damaged: Damaged | None = None) -> list[StudyRecord]:
    """The studies in some parts, as `read_trials` does with trials."""
    found = read_table(directory, names, STUDIES, damaged=damaged)
    return sorted(records_of(found, StudyRecord), key=attrgetter("key"))


def read_table(
    directory: RunDirectory,
    names: Iterable[str],
    kind: str,
    columns: Sequence[str] | None = None,
    damaged: Damaged | None = None,
    customers: Sequence[str] | None = None,
) -> pa.Table:
    """The rows in the parts of a kind as columns, each key once: of several rows with it the first stays.

    columns: those that are wanted, with the keys of the kind (`KEYS`) among them; None for all. damaged: as of
    `read_trials`. customers: whose rows; None for everybody's.
    """
    tables = (table for _, table in tables_in(directory, of_kind(names, kind), columns, damaged))
    if customers is not None:
        wanted = pa.array(customers, pa.string())
        tables = (table.filter(pc.is_in(table["customer"], value_set=wanted)) for table in tables)
    return distinct(joined(tables, no_rows(kind, columns)), KEYS[kind])


def read_some_trials(
    directory: RunDirectory, names: Iterable[str], columns: Sequence[str], most: int, damaged: Damaged | None = None
) -> pa.Table:
    """Columns of recorded trials; of about so many where there are more, from parts drawn at random.

    columns: of trial records, with the keys `KEYS` among them. damaged: as of `read_trials`.
    """
    parts, some = of_kind(names, TRIALS), [no_rows(TRIALS, columns)]
    Random(0).shuffle(parts)
    while parts and sum(map(len, some)) < most:
        some += [table for _, table in tables_in(directory, parts[:4], columns, damaged)]
        del parts[:4]
    return distinct(pa.concat_tables(some), KEYS[TRIALS])


def tables_in(
    directory: RunDirectory, names: Sequence[str], columns: Sequence[str] | None = None, damaged: Damaged | None = None
) -> Iterator[tuple[str, pa.Table]]:
    """The names of some parts with their rows, in order. columns, damaged: as of `read_table`."""

    def read(name: str) -> pa.Table | Exception:
        try:
            return decode_table(intact(directory, name), columns)
        except (OSError, ValueError) as error:
            return error

    with ThreadPoolExecutor(READERS) as pool:
        for start in range(0, len(names), READ_AHEAD):
            group = names[start : start + READ_AHEAD]
            for name, table in zip(group, pool.map(read, group), strict=True):
                if isinstance(table, pa.Table):
                    yield name, table
                elif damaged is None:
                    raise table
                else:
                    damaged(name, table)


def written_by_driver(names: Iterable[str]) -> list[str]:
    """Names of the parts that hold spread studies and their trials."""
    return [name for name in names if f"-b{DRIVER:05d}-" in name]


def kind_of(name: str) -> str:
    """ "trials" or "studies", from a part's file name."""
    return name.rsplit("/", 1)[-1].split("-", 1)[0]


def written(name: str) -> str:
    """When a part was written, from its name: texts in the order of time."""
    return name.rsplit("-", 2)[-2]


ENDING = 2  # trials that take as long as choosing a study's winner, refitting and saving it


@dataclass(frozen=True, slots=True)
class Budget:
    """What a study may take.

    Attributes:
        n_trials: how many trials.
        trial_work: what one of them takes, in a unit that all studies of the run share.
    """

    n_trials: int
    trial_work: float = 1.0


@dataclass(frozen=True, slots=True)
class PartWritten:
    """A part of records is in place.

    Attributes:
        part: its name.
        trials, studies: how many records of each kind it holds.
        work: what was done of the budgets; a study that ends has done all of its own.
        failed: trials that raised or crashed.
        best: score of its trials, None where none has one.
        unspent: trials that its studies have left.
        no_model: studies that ended without one.
        gains: of its studies that have one.
    """

    part: str
    trials: int = 0
    studies: int = 0
    work: float = 0.0
    failed: int = 0
    best: float | None = None
    unspent: int = 0
    no_model: int = 0
    gains: tuple[float, ...] = ()


def part_name(folder: str, batch: int, kind: str, data: bytes) -> str:
    """A new part's name: batch for finding it, time for reading in order, and a digest of its content.

    Parquet's page checksums do not cover the footer; the digest does.
    """
    return f"records/{folder}/{kind}-b{batch:05d}-{time.time_ns():020d}-{_digest(data)}.parquet"


#: The number of a run's first batch: its pool, trained before all else.
POOL_BATCH = 99_998


def pool_part(term: Term, record: TrialRecord) -> tuple[str, bytes]:
    """(name, content) of the part that holds the run's pool as a trial: of a kind of its own."""
    data = encode([record])
    return part_name(term.folder, POOL_BATCH, POOL, data), data


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def intact(directory: RunDirectory, name: str) -> bytes:
    """The content of one part; `ValueError` or `OSError` when it is damaged."""
    data = directory.read(name)
    if _digest(data) != name.removesuffix(".parquet").rsplit("-", 1)[-1]:
        raise ValueError(f"{name} is damaged: its content does not have the digest in its name")
    return data


def parts_without_studies(directory: RunDirectory, names: Iterable[str], studies: Collection[str]) -> list[str]:
    """Names of parts that hold what these hold, but nothing of some studies."""
    gone = pa.array(sorted(studies), pa.string())
    return _filtered(directory, names, lambda table: pc.is_in(table["study"], gone)) if studies else list(names)


def parts_before_trials(directory: RunDirectory, names: Iterable[str], firsts: Mapping[str, int]) -> list[str]:
    """Names of parts that hold what these hold, but of some studies no trial from this number on."""

    cut = (
        {name: _filtered(directory, [name], lambda table: beyond(table, firsts)) for name in of_kind(names, TRIALS)}
        if firsts
        else {}
    )
    return [kept for name in names for kept in cut.get(name, [name])]


def beyond(trials: pa.Table, firsts: Mapping[str, int]) -> pa.ChunkedArray:
    """Whether trials are of one of these studies, and have its number or a later one."""
    studies, numbers = pa.array(list(firsts), pa.string()), pa.array(list(firsts.values()), pa.int32())
    first = pc.take(numbers, pc.index_in(trials["study"], value_set=studies))
    return pc.fill_null(pc.greater_equal(trials["trial"], first), False)


def _filtered(directory: RunDirectory, names: Iterable[str], unwanted: Callable[[pa.Table], pa.Array]) -> list[str]:
    """Names of parts without the rows that are not wanted.

    A part with some of them is written once more without them, beside the first, which stays and counts no longer.
    """
    kept: list[str] = []
    for name in names:
        try:
            table = pq.read_table(pa.BufferReader(intact(directory, name)))
        except (OSError, ValueError):
            kept.append(name)  # whoever reads it says that it is damaged
            continue
        dropped = unwanted(table)
        if not pc.any(dropped).as_py():
            kept.append(name)
            continue
        rest = table.filter(pc.invert(dropped))
        if rest.num_rows:
            data = encode_table(rest)
            kept.append(f"{name.rpartition('-')[0]}-{_digest(data)}.parquet")
            directory.write(kept[-1], data)
    return kept


def studies_in(directory: RunDirectory, names: Iterable[str]) -> set[str]:
    """Ids of the studies that the intact ones of some parts hold something of."""
    found: set[str] = set()
    for name in names:
        with contextlib.suppress(OSError, ValueError):
            table = pq.read_table(pa.BufferReader(intact(directory, name)), columns=["study"])
            found.update(table["study"].to_pylist())
    return found


def batch_parts(directory: RunDirectory, term: Term, batch: int) -> list[str]:
    """Parts that earlier attempts of a batch wrote in this term."""
    return [name for name in directory.list(term.records) if f"-b{batch:05d}-" in name]


def of_kind(names: Iterable[str], kind: str) -> list[str]:
    return [name for name in names if kind_of(name) == kind]
