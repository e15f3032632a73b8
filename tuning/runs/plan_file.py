"""The files of a run that say what it is: the frozen definition and each term's plan."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import schedulers
from search_spaces import SearchSpace, algorithms
from search_spaces.yaml_text import dump_yaml
from tuning.data.customers import Customer
from tuning.definition.definition import Definition, define
from tuning.definition.options import CustomerOptions, Resources
from tuning.definition.plain_values import IN_MEMORY
from tuning.definition.run_spec import RunSpec
from tuning.definition.yaml_file import load_yaml
from tuning.errors import StorageError
from tuning.planning.plan import Plan
from tuning.planning.transfer import joined
from tuning.records.ownership import Term, begun_term
from tuning.storage.run_directory import RunDirectory
from tuning.study.record import versions
from tuning.study.study import Study

DEFINITION = "definition.yaml"
DIGEST_LINE = b"# SHA-256 of the lines above: "
HEADER = b"tuning.settings"  # the key in the Parquet file under which version 0.1 wrote it, too
# `inside`: the files are the run's own, by their names in it; so it can be moved and copied.
# Of `space`, `trials` and `resources` only what a customer has of its own is written; the rest is the run's.
# `own_space`: that space as it was given, such as a preset's name; `space` is what it meant when the run began.
_COLUMNS = {
    "study": "string",
    "customer": "string",
    "files": "list",
    "inside": "bool",
    "key": "list",
    "table": "int64",
    "place": "int64",
    "rows": "int64",
    "size": "int64",
    "stamp": "string",
    "digest": "string",
    "algorithm": "string",
    "scheduler": "string",
    "seed": "int64",
    "space": "string",
    "own_space": "string",
    "trials": "int64",
    "resources": "string",
    "group": "string",
}


@dataclass(frozen=True)
class RecordedPlan:
    """A term's plan as its file has it.

    Attributes:
        run: the run's name.
        spec: what every study has in common.
        placement: "packed" or "spread".
        notes: of the plan that the run began with.
        studies: those that the term's owner had to run; of one shard, where only that was read.
        ended: those that had ended under earlier owners.
        shards: how many there are.
        versions: of the libraries that the term's owner had; empty in a plan that does not say so.
        packs: whether packed workers put models into packs; not in a plan of before there were any.
    """

    run: str
    spec: RunSpec
    placement: str
    notes: tuple[str, ...]
    studies: tuple[Study, ...]
    ended: tuple[Study, ...]
    shards: int
    versions: str
    packs: bool


@dataclass(frozen=True)
class PlannedNames:
    """Whose studies a plan has: all that results need of it, and all that is read of a plan of an earlier version.

    Attributes:
        run: the run's name.
        metric: the metric's name.
        mode: its better direction.
        of_objective: whether a user's function is tuned instead of models.
        studies: the columns study and customer of the studies that the term's owner had to run.
        ended: the same of those that had ended under earlier owners.
    """

    run: str
    metric: str
    mode: str
    of_objective: bool
    studies: pa.Table
    ended: pa.Table


def plain(definition: Definition) -> dict[str, Any]:
    """The definition as it stands in a run: what only exists in memory is marked as such."""
    values = definition.to_dict()
    if isinstance(definition.data, pd.DataFrame):
        values["data"] = IN_MEMORY
    elif isinstance(definition.data, Mapping):
        entries = values["data"].items()
        values["data"] = {name: IN_MEMORY if isinstance(item, pd.DataFrame) else item for name, item in entries}
    if callable(definition.objective):
        values["objective"] = IN_MEMORY
    return values


def freeze(directory: RunDirectory, definition: Definition, term: Term) -> None:
    """Write the definition into the run, as a YAML that `tuning run` takes; a copy of it for people at the top."""
    text = dump_yaml(plain(definition)).encode()
    directory.write(term.definition, text + DIGEST_LINE + hashlib.sha256(text).hexdigest().encode() + b"\n")
    directory.write(DEFINITION, text)


def frozen_definition(directory: RunDirectory, term: Term | None = None) -> Definition:
    """The definition that a run works on: of the term, by default of the newest one."""
    term = term or begun_term(directory)
    shown = directory.display(term.definition)
    try:
        text, _, digest = directory.read(term.definition).rpartition(DIGEST_LINE)
        if not text:  # a run of version 0.1
            text, digest = digest, hashlib.sha256(digest).hexdigest().encode()
        decoded = text.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{shown} cannot be read: {error}. {_way_out(term)}") from error
    if hashlib.sha256(text).hexdigest().encode() != digest.strip():
        raise StorageError(f"{shown} is not what the run has written: its SHA-256 differs. {_way_out(term)}")
    return _defined(decoded, shown)


@lru_cache(maxsize=1)
def _defined(text: str, where: str) -> Definition:
    """A worker asks for the same definition with every shard."""
    return define(load_yaml(text, where))


def write_plan(directory: RunDirectory, plan: Plan, term: Term, run: str, ended: Sequence[Study] = ()) -> None:
    """A term's studies as Parquet, one row group per shard, so that a worker reads its own rows only.

    ended: studies that earlier owners finished; they stay in the plan, so that nobody ever drops out of it.
    """
    header = {
        "run": run,
        "shards": len(plan.shards),
        "placement": plan.placement,
        "notes": plan.notes,
        "versions": versions(),
        "packs": plan.spec.definition.packs_models(len(plan.studies) + len(ended)),
        **plan.spec.to_dict(),
    }
    fields = [(name, pa.list_(pa.string()) if kind == "list" else kind) for name, kind in _COLUMNS.items()]
    schema = pa.schema(fields)
    text = _Texts()
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, write_page_checksum=True) as writer:
        writer.add_key_value_metadata({HEADER: json.dumps(header)})  # the schema's own would be written twice
        for studies in (*([plan.studies[position] for position in shard] for shard in plan.shards), ended):
            if not studies:
                continue
            customers = [study.customer for study in studies]
            own = [customer.options or _NOTHING_OWN for customer in customers]
            inside = [names_inside(directory, customer) for customer in customers]
            columns = {
                "study": [study.id for study in studies],
                "customer": [customer.id for customer in customers],
                "files": [names or customer.files for names, customer in zip(inside, customers, strict=True)],
                "inside": [names is not None for names in inside],
                "key": [customer.key for customer in customers],
                "table": [customer.table for customer in customers],
                "place": [customer.first_block for customer in customers],
                "rows": [customer.rows for customer in customers],
                "size": [customer.size for customer in customers],
                "stamp": [customer.stamp for customer in customers],
                "digest": [customer.digest for customer in customers],
                "algorithm": [text(study.algorithm) for study in studies],
                "scheduler": [text(study.scheduler) for study in studies],
                "seed": [study.seed for study in studies],
                "space": [
                    None if options.search_space is None else text(study.space)
                    for study, options in zip(studies, own, strict=True)
                ],
                "own_space": [options.search_space and _space_text(options.search_space) for options in own],
                "trials": [options.trials for options in own],
                "resources": [options.resources and options.resources.model_dump_json() for options in own],
                "group": [study.group for study in studies],
            }
            writer.write_table(pa.table(columns, schema=schema), row_group_size=len(studies))
    directory.write(term.plan, bytes(sink.getvalue()))


def names_inside(directory: RunDirectory, customer: Customer) -> tuple[str, ...] | None:
    """The names of a customer's files, where the run has written them for itself; None for other files, or none."""
    names = [directory.name_of(file) for file in customer.files]
    found = tuple(name for name in names if name is not None)
    return found if names and len(found) == len(names) else None


def _space_text(space: SearchSpace | str) -> str:
    return json.dumps(space if isinstance(space, str) else space.to_dict())


class _Texts:
    """Specifications as JSON, each made once however many studies have it."""

    def __init__(self) -> None:
        self._made: dict[int, str] = {}

    def __call__(self, spec: algorithms.Algorithm | schedulers.SchedulerSpec | SearchSpace) -> str:
        if id(spec) not in self._made:
            self._made[id(spec)] = json.dumps(spec.to_dict())
        return self._made[id(spec)]


_NOTHING_OWN = CustomerOptions()


def read_spec(directory: RunDirectory, term: Term) -> RunSpec:
    """What a term's studies have in common."""
    return _spec(directory, term, _read(directory, term, groups=())[0])


def read_plan(directory: RunDirectory, term: Term, spec: RunSpec | None = None) -> RecordedPlan:
    """A term's whole plan. spec: where it is known already, or goes on with another definition; default the file's."""
    return _recorded(directory, term, spec, *_read(directory, term))


def read_shard(directory: RunDirectory, term: Term, shard: int, spec: RunSpec | None = None) -> RecordedPlan:
    """A term's plan with the studies of one shard. spec: as in `read_plan`."""
    return _recorded(directory, term, spec, *_read(directory, term, groups=[shard]))


def read_names(directory: RunDirectory, term: Term) -> PlannedNames:
    """The ids in a term's plan, which may be one of version 0.1."""
    header, tables = _read(directory, term, columns=["study", "customer"])
    shards = header.get("shards", 0)
    return PlannedNames(
        run=header["run"],
        metric=header["metric"],
        mode=header["mode"],
        of_objective=header["task"] is None,
        studies=_joined(tables[:shards]),
        ended=_joined(tables[shards:]),
    )


def count_studies(directory: RunDirectory, term: Term) -> int:
    """How many studies a term's plan has, those that had ended under earlier owners included."""
    return sum(table.num_rows for table in _read(directory, term, columns=[])[1])


def read_group(directory: RunDirectory, term: Term, group: str) -> set[str]:
    """The ids of a group's studies in a term's plan, those that had ended under earlier owners included."""
    _, tables = _read(directory, term, columns=["study", "group"])
    rows = [row for table in tables for row in table.to_pylist()]
    return {row["study"] for row in rows if row["group"] == group}


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    none = pa.table({"study": pa.array([], pa.string()), "customer": pa.array([], pa.string())})
    return pa.concat_tables([table.select(none.column_names) for table in (none, *tables)]).combine_chunks()


def _read(
    directory: RunDirectory, term: Term, groups: Sequence[int] | None = None, columns: Sequence[str] | None = None
) -> tuple[dict[str, Any], list[pa.Table]]:
    """The header of a plan and its row groups; None is all of them, and all columns."""
    try:
        with directory.filesystem.open_input_file(directory.path(term.plan)) as stream:
            file = pq.ParquetFile(stream, page_checksum_verification=True)
            header = json.loads(file.metadata.metadata[HEADER])
            wanted = range(file.metadata.num_row_groups) if groups is None else groups
            return header, [file.read_row_group(group, columns=columns) for group in wanted]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{directory.display(term.plan)} cannot be read: {error}. {_way_out(term)}") from error


def _way_out(term: Term) -> str:
    """What to do about a file of a term's plan that is damaged or gone."""
    if term.number == 1:
        return "Put the run's own file back; without it the run can only be searched anew, in another folder."
    return (
        f"Put the run's own file back. Or remove {term.plan}: the run then continues from the owner before, and the "
        "trials recorded since then run again."
    )


def _spec(directory: RunDirectory, term: Term, header: Mapping[str, Any]) -> RunSpec:
    return RunSpec.from_dict(header, frozen_definition(directory, term))


def _recorded(
    directory: RunDirectory, term: Term, spec: RunSpec | None, header: Mapping[str, Any], tables: Sequence[pa.Table]
) -> RecordedPlan:
    spec = spec or _spec(directory, term, header)
    study_of = _studies(spec, directory)
    groups = [[study_of(row) for row in table.to_pylist()] for table in tables]
    shards = header["shards"]
    return RecordedPlan(
        run=header["run"],
        spec=spec,
        placement=header["placement"],
        notes=tuple(header["notes"]),
        studies=tuple(study for group in groups[:shards] for study in group),
        ended=tuple(study for group in groups[shards:] for study in group),
        shards=shards,
        versions=header.get("versions", ""),
        packs=header.get("packs", False),
    )


def _studies(spec: RunSpec, directory: RunDirectory) -> Callable[[Mapping[str, Any]], Study]:
    """A function from a row of the plan to its study; what rows have in common is parsed once."""
    algorithm_of = cache(lambda text: algorithms.parse(json.loads(text)))
    scheduler_of = cache(lambda text: schedulers.parse(json.loads(text)))

    space_of = cache(lambda text: SearchSpace.from_dict(json.loads(text)))

    @cache
    def own_of(space: str | None, trials: int | None, resources: str | None) -> CustomerOptions | None:
        if space is None and trials is None and resources is None:
            return None
        given = space and json.loads(space)
        return CustomerOptions(
            search_space=SearchSpace.from_dict(given) if isinstance(given, dict) else given,
            trials=trials,
            resources=resources and Resources.model_validate_json(resources),
        )

    def study_of(row: Mapping[str, Any]) -> Study:
        options = own_of(row.get("own_space") or row["space"], row["trials"], row["resources"])
        own = options or _NOTHING_OWN
        customer = Customer(
            id=row["customer"],
            files=tuple(directory.locate(name) if row.get("inside") else name for name in row["files"]),
            key=None if row["key"] is None else tuple(row["key"]),
            table=row["table"],
            first_block=row["place"],
            rows=row["rows"],
            size=row["size"],
            options=options,
            stamp=row.get("stamp") or "",
            digest=row.get("digest") or "",
        )
        study = Study(
            id=row["study"],
            customer=customer,
            algorithm=algorithm_of(row["algorithm"]),
            scheduler=scheduler_of(row["scheduler"]),
            seed=row["seed"],
            space=spec.space if row["space"] is None else space_of(row["space"]),
            n_trials=own.trials or spec.definition.trials,
            resources=own.resources or spec.definition.resources,
        )
        return joined(study, row.get("group") or "", len(spec.pilot_points))

    return study_of
