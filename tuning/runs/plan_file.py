"""The files of a run that say what it is: the frozen definition and each term's plan."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from tuning.data.customers import Customer
from tuning.definition.definition import Definition, define
from tuning.definition.options import Resources, parse_space
from tuning.definition.yaml_file import load_yaml
from tuning.errors import RunError, StorageError
from tuning.planning.plan import Plan
from tuning.records.ownership import Term, newest_term
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import Study

DEFINITION = "definition.yaml"
IN_MEMORY = "(in memory)"
_COLUMNS = {
    "study": "string",
    "customer": "string",
    "files": "list",
    "key": "list",
    "table": "int64",
    "place": "int64",
    "rows": "int64",
    "size": "int64",
    "algorithm": "string",
    "scheduler": "string",
    "seed": "int64",
    "space": "string",
    "trials": "int64",
    "resources": "string",
}


@dataclass(frozen=True)
class RunSettings:
    """What a worker needs beside its studies: the resolved plan without the studies.

    shards: how many there are; studies behind the last one ended under earlier owners.
    """

    run: str
    task: str | None
    metric: str
    mode: str
    shards: int = 0
    placement: str = "packed"


def plain(definition: Definition) -> dict[str, Any]:
    """The definition as it stands in a run: what only exists in memory is marked as such."""
    import pandas as pd

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
    from search_spaces.yaml_text import dump_yaml

    text = dump_yaml(plain(definition)).encode()
    directory.write(term.definition, text)
    directory.write(DEFINITION, text)


def frozen_definition(directory: RunDirectory, term: Term | None = None) -> Definition:
    """The definition that a run works on: of the term, by default of the newest one."""
    term = term or newest_term(directory)
    if term is None:
        raise RunError(f"{directory.shown} is not a run directory: no run has begun there.")
    try:
        text = directory.read(term.definition).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{directory.display(term.definition)} cannot be read: {error}.") from error
    return _defined(text, directory.display(term.definition))


@lru_cache(maxsize=1)
def _defined(text: str, where: str) -> Definition:
    """A worker asks for the same definition with every shard."""
    return define(load_yaml(text, where))


def write_plan(directory: RunDirectory, plan: Plan, term: Term, run: str, ended: Sequence[Study] = ()) -> None:
    """A term's studies as Parquet, one row group per shard, so that a worker reads its own rows only.

    ended: studies that earlier owners finished; they stay in the plan, so that nobody ever drops out of it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    settings = {
        "run": run,
        "task": plan.task,
        "metric": plan.metric,
        "mode": plan.mode,
        "shards": len(plan.shards),
        "placement": plan.placement,
    }
    fields = [(name, pa.list_(pa.string()) if kind == "list" else kind) for name, kind in _COLUMNS.items()]
    schema = pa.schema(fields, metadata={"tuning.settings": json.dumps(settings)})
    with pq.ParquetWriter(sink, schema, write_page_checksum=True) as writer:
        for studies in (*([plan.studies[position] for position in shard] for shard in plan.shards), ended):
            if not studies:
                continue
            columns = {
                "study": [study.id for study in studies],
                "customer": [study.customer.id for study in studies],
                "files": [study.customer.files for study in studies],
                "key": [study.customer.key for study in studies],
                "table": [study.customer.table for study in studies],
                "place": [study.customer.first_block for study in studies],
                "rows": [study.customer.rows for study in studies],
                "size": [study.customer.size for study in studies],
                "algorithm": [json.dumps(study.algorithm.to_dict()) for study in studies],
                "scheduler": [json.dumps(study.scheduler.to_dict()) for study in studies],
                "seed": [study.seed for study in studies],
                "space": [_space_text(study.space) for study in studies],
                "trials": [study.trials for study in studies],
                "resources": [study.resources and study.resources.model_dump_json() for study in studies],
            }
            writer.write_table(pa.table(columns, schema=schema), row_group_size=max(1, len(studies)))
    directory.write(term.plan, bytes(sink.getvalue()))


def read_shard(directory: RunDirectory, term: Term, shard: int) -> tuple[RunSettings, list[Study]]:
    """The settings and the studies of one shard of a term's plan."""
    settings, tables = _read_plan(directory, term, [shard])
    return settings, _studies(tables[0].to_pylist())


def read_plan(directory: RunDirectory, term: Term) -> tuple[RunSettings, list[Study], list[Study]]:
    """The settings, the studies that the term's owner had to run, and those that ended under earlier owners."""
    settings, tables = _read_plan(directory, term, None)
    groups = [_studies(table.to_pylist()) for table in tables]
    begun = [study for group in groups[: settings.shards] for study in group]
    return settings, begun, [study for group in groups[settings.shards :] for study in group]


def _read_plan(directory: RunDirectory, term: Term, groups: Sequence[int] | None) -> tuple[RunSettings, list[Any]]:
    import pyarrow.parquet as pq

    try:
        with directory.filesystem.open_input_file(directory.path(term.plan)) as stream:
            file = pq.ParquetFile(stream, page_checksum_verification=True)
            settings = RunSettings(**json.loads(file.schema_arrow.metadata[b"tuning.settings"]))
            wanted = range(file.metadata.num_row_groups) if groups is None else groups
            return settings, [file.read_row_group(group) for group in wanted]
    except (OSError, ValueError) as error:
        raise StorageError(f"{directory.display(term.plan)} cannot be read: {error}.") from error


def _studies(rows: Sequence[dict[str, Any]]) -> list[Study]:
    import schedulers
    from search_spaces import algorithms

    algorithm_of = cache(lambda text: algorithms.parse(json.loads(text)))
    scheduler_of = cache(lambda text: schedulers.parse(json.loads(text)))
    space_of = cache(lambda text: parse_space(json.loads(text)))
    resources_of = cache(Resources.model_validate_json)
    return [
        Study(
            row["study"],
            Customer(
                row["customer"],
                tuple(row["files"]),
                None if row["key"] is None else tuple(row["key"]),
                row["table"],
                row["place"],
                row["rows"],
                row["size"],
            ),
            algorithm_of(row["algorithm"]),
            scheduler_of(row["scheduler"]),
            row["seed"],
            row["space"] and space_of(row["space"]),
            row["trials"],
            row["resources"] and resources_of(row["resources"]),
        )
        for row in rows
    ]


def _space_text(space: Any) -> str | None:
    return None if space is None else json.dumps(space.to_dict())
