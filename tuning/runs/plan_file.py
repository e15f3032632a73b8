"""The files of a run that say what it is: the frozen definition and each term's plan."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from search_spaces.yaml_text import dump_yaml
from tuning.basics.columnar import FieldColumn
from tuning.basics.documents import Json
from tuning.definition.baselines import GivenBaseline
from tuning.definition.definition import Definition, define
from tuning.definition.plain_values import IN_MEMORY
from tuning.definition.run_spec import RunSpec
from tuning.definition.yaml_file import load_yaml
from tuning.errors import StorageError
from tuning.notes import Note, from_row
from tuning.planning.run_plan import Plan
from tuning.records.ownership import Term, begun_term
from tuning.runs.study_rows import SCHEMA, read_studies, study_columns
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import SPREAD, STUDY_NAME, Study, StudyTable, as_columns, placed

DEFINITION = "definition.yaml"
POOL_ONLY = "plan/pool.parquet"
FIRST_WAY_OUT = "Put the run's own file back; without it only a new run is left, in another folder."
DIGEST_LINE = b"# SHA-256 of the lines above: "
HEADER = b"tuning.settings"  # the key in the Parquet file


@dataclass(frozen=True)
class RecordedPlan:
    """A term's plan as its file has it.

    Attributes:
        run: the run's name.
        spec: what every study has in common.
        notes: of the plan that the run began with.
        studies: those that the term's owner had to run; of one batch or of the spread ones, where only that was read.
        ended: those that had ended under earlier owners.
        batches: how many there are.
        packs: whether packed workers put models into packs.
        without_pool: see `Plan`.
    """

    run: str
    spec: RunSpec
    notes: tuple[Note, ...]
    studies: StudyTable
    ended: StudyTable
    batches: int
    packs: bool
    without_pool: Note | None


@dataclass(frozen=True)
class PlannedNames:
    """Whose studies a plan has: all that results need of it.

    Attributes:
        run: the run's name.
        metric: the metric's name.
        mode: its better direction.
        of_objective: whether a user's function is tuned instead of models.
        notes: of the plan that the run began with.
        baseline: as the definition has it.
        studies: the columns study and customer of the studies that the term's owner had to run.
        ended: the same of those that had ended under earlier owners.
    """

    run: str
    metric: str
    mode: str
    of_objective: bool
    notes: tuple[Note, ...]
    baseline: GivenBaseline
    studies: pa.Table
    ended: pa.Table


def plain(definition: Definition) -> dict[str, object]:
    """Return the definition as it stands in a run: what only exists in memory is marked as such."""
    values = definition.to_dict()
    if isinstance(definition.data, pd.DataFrame):
        values["data"] = IN_MEMORY
    elif isinstance(named := values.get("data"), Mapping):
        values["data"] = {name: IN_MEMORY if isinstance(item, pd.DataFrame) else item for name, item in named.items()}
    if callable(definition.objective):
        values["objective"] = IN_MEMORY
    return values


def freeze(directory: RunDirectory, definition: Definition, term: Term) -> None:
    """Write the definition into the run, as a YAML that `tuning run` takes; a copy of it for people at the top."""
    text = dump_yaml(plain(definition)).encode()
    directory.write(term.definition, text + DIGEST_LINE + hashlib.sha256(text).hexdigest().encode() + b"\n")
    directory.write(DEFINITION, text)


def frozen_definition(directory: RunDirectory, term: Term | None = None) -> Definition:
    """Return the definition that a run works on: of the term, by default of the newest one."""
    term = term or begun_term(directory)
    shown = directory.display(term.definition)
    try:
        text, _, digest = directory.read(term.definition).rpartition(DIGEST_LINE)
        decoded = text.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{shown} cannot be read: {error}. {_way_out(term)}") from error
    if hashlib.sha256(text).hexdigest().encode() != digest.strip():
        raise StorageError(f"{shown} is not what the run has written: its SHA-256 differs. {_way_out(term)}")
    return _defined(decoded, shown)


def trials_refusal(before: Definition, trials: int) -> str:
    """Return why a resume cannot have so many trials per study; empty where it can. before: what the run works on."""
    text = f"{before.trials} there, {trials} here"
    if trials < before.trials:
        return f"{text}; they can only become more"
    if trials > before.trials and before.scheduler.pauses:
        return f"{text}; under {before.scheduler.name} the trials of a study are one race, which has ended"
    return ""


@lru_cache(maxsize=1)
def _defined(text: str, where: str) -> Definition:
    """A worker asks for the same definition with every batch."""
    return define(load_yaml(text, where, most=None))  # in Python, `data` may be a list of 100,000 files


def write_plan(directory: RunDirectory, plan: Plan, term: Term, run: str, ended: Sequence[Study] = ()) -> None:
    """Write a term's studies as Parquet: a row group per batch, so that a worker reads its own, one of all spread ones.

    ended: studies that earlier owners finished; they stay in the plan, so that nobody ever drops out of it.
    """
    header = {
        "run": run,
        "batches": len(plan.batches),
        "left": len(plan.batches) + bool(plan.spread),  # row groups of studies that have not ended
        "notes": [note.to_row() for note in plan.notes],
        "baseline": plan.spec.definition.baseline,
        "without_pool": None if plan.without_pool is None else plan.without_pool.to_row(),
        "packs": plan.spec.definition.packs_models(len(plan.studies) + len(ended)),
        **plan.spec.to_dict(),
    }
    columns, spread = study_columns(directory, plan.studies), np.flatnonzero(placed(plan.studies, SPREAD))
    groups = [*plan.batches, *([spread] if plan.spread else [])]
    parts = ({name: column.take(positions) for name, column in columns.items()} for positions in groups)
    over = [study_columns(directory, as_columns(ended))] if ended else []
    directory.write(term.plan, _parquet(chain(parts, over), {HEADER: json.dumps(header)}))
    if plan.pool_only is not None:
        directory.write(POOL_ONLY, _parquet([study_columns(directory, plan.pool_only)], {}))


def _parquet(groups: Iterable[Mapping[str, FieldColumn]], header: Mapping[bytes, str]) -> bytes:
    """Return a file with a row group of each of these columns of `SCHEMA`."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, SCHEMA, write_page_checksum=True) as writer:
        writer.add_key_value_metadata(header)  # the schema's own would be written twice
        for columns in groups:
            arrays = [columns[field.name].arrow(field.type) for field in SCHEMA]
            writer.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA), row_group_size=len(arrays[0]))
    return bytes(sink.getvalue())


def read_pool_only(directory: RunDirectory, spec: RunSpec) -> StudyTable | None:
    """Read `Plan.pool_only`, from whichever owner had it planned."""
    if not directory.exists(POOL_ONLY):
        return None
    try:
        return read_studies(spec, directory, pq.read_table(pa.BufferReader(directory.read(POOL_ONLY))))
    except (OSError, ValueError) as error:
        raise StorageError(f"{directory.display(POOL_ONLY)} cannot be read: {error}. {FIRST_WAY_OUT}") from error


def read_spec(directory: RunDirectory, term: Term) -> RunSpec:
    """Return what a term's studies have in common."""
    header = _read(directory, term, groups=lambda _: ())[0]
    return RunSpec.from_dict(header, frozen_definition(directory, term))


def read_plan(directory: RunDirectory, term: Term, spec: RunSpec | None = None) -> RecordedPlan:
    """Return a term's whole plan. spec: where it goes on with another one; default the file's."""
    return _recorded(directory, term, spec)


def read_batch(directory: RunDirectory, term: Term, batch: int, spec: RunSpec | None = None) -> RecordedPlan:
    """Return a term's plan with the studies of one batch. spec: as in `read_plan`."""
    return _recorded(directory, term, spec, lambda _: [batch])


def read_spread(directory: RunDirectory, term: Term, spec: RunSpec | None = None) -> RecordedPlan:
    """Return a term's plan with the spread studies. spec: as in `read_plan`."""
    return _recorded(directory, term, spec, lambda header: range(header["batches"], header["left"]))


def _recorded(
    directory: RunDirectory, term: Term, spec: RunSpec | None, groups: Callable[[Json], Sequence[int]] | None = None
) -> RecordedPlan:
    """Return a term's plan with the studies of some row groups. groups: as of `_read`."""
    header, studies, ended = _read(directory, term, groups)
    spec = spec or RunSpec.from_dict(header, frozen_definition(directory, term))
    return RecordedPlan(
        run=header["run"],
        spec=spec,
        notes=tuple(map(from_row, header["notes"])),
        studies=read_studies(spec, directory, studies),
        ended=read_studies(spec, directory, ended),
        batches=header["batches"],
        packs=header["packs"],
        without_pool=from_row(why) if (why := header.get("without_pool")) else None,
    )


def with_name(studies: pa.Table, name: str) -> pa.Table:
    """Return the studies that have a name (`tuning.planning.studies`), by their columns; all without one."""
    if not name:
        return studies
    ids = pc.binary_join_element_wise(studies["customer"], name, STUDY_NAME)
    return studies.filter(pc.equal(studies["study"], ids))


def read_names(directory: RunDirectory, term: Term, study_name: str = "") -> PlannedNames:
    """Return the ids in a term's plan. study_name: of those that count; by default all."""
    header, studies, ended = _read(directory, term, columns=["study", "customer"])
    return PlannedNames(
        run=header["run"],
        metric=header["metric"],
        mode=header["mode"],
        of_objective=header["task"] is None,
        notes=tuple(map(from_row, header["notes"])),
        baseline=header["baseline"],
        studies=with_name(studies.combine_chunks(), study_name),
        ended=with_name(ended.combine_chunks(), study_name),
    )


def _read(
    directory: RunDirectory,
    term: Term,
    groups: Callable[[Json], Sequence[int]] | None = None,
    columns: Sequence[str] | None = None,
) -> tuple[Json, pa.Table, pa.Table]:
    """Return the header of a plan, the studies that were left, and those that had ended; by default all columns.

    groups: the numbers of the row groups that are wanted, by the header; by default all.
    """
    try:
        with directory.filesystem.open_input_file(directory.path(term.plan)) as stream:
            file = pq.ParquetFile(stream, page_checksum_verification=True)
            header = json.loads(file.metadata.metadata[HEADER])
            wanted = range(file.metadata.num_row_groups) if groups is None else groups(header)
            left = sum(group < header["left"] for group in wanted)
            none = file.read_row_groups([], columns=columns)
            tables = [file.read_row_group(group, columns=columns) for group in wanted]
            return header, pa.concat_tables([none, *tables[:left]]), pa.concat_tables([none, *tables[left:]])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{directory.display(term.plan)} cannot be read: {error}. {_way_out(term)}") from error


def _way_out(term: Term) -> str:
    """Return what to do about a file of a term's plan that is damaged or gone."""
    if term.number == 1:
        return FIRST_WAY_OUT
    return (
        f"Put the run's own file back. Or remove {term.plan}: the run then continues from the owner before, and the "
        "trials recorded since then run again."
    )
