"""A plan's studies as rows of its file, and back."""

from __future__ import annotations

import json

import pyarrow as pa

import schedulers
from search_spaces import SearchSpace, algorithms
from tuning.basics.columnar import ArrowColumn, Columnar, DictionaryColumn, FieldColumn, combined
from tuning.data.customers import Customer
from tuning.data.partition import FOLDER
from tuning.definition.options import CustomerOptions, customer_options
from tuning.definition.run_spec import RunSpec
from tuning.evaluation.fixed import FixedConfiguration
from tuning.storage.data_roots import add_own_rows
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import Study, StudyTable, budgets, customers_of

# `inside`: the files are the run's own, by their names in it; so it can be moved and copied.
# `options`: what a customer has of its own, as it was given; `space`: what its own space meant when the run began.
# `fixed`: what is fitted in place of a search; `points_to_evaluate`: what a search tries first, where that is its own.
_COLUMNS = {
    "study": "string",
    "customer": "string",
    "files": "list",
    "inside": "bool",
    "key": "list",
    "table": "int64",
    "rows": "int64",
    "size": "int64",
    "stamp": "string",
    "digest": "string",
    "algorithm": "string",
    "scheduler": "string",
    "seed": "int64",
    "space": "string",
    "options": "string",
    "placement": "string",
    "fixed": "string",
    "points_to_evaluate": "string",
}
SCHEMA = pa.schema([(name, pa.list_(pa.string()) if kind == "list" else kind) for name, kind in _COLUMNS.items()])
_NOTHING_OWN = CustomerOptions()


def study_columns(directory: RunDirectory, studies: StudyTable) -> dict[str, FieldColumn]:
    """Return what a plan's file says of the studies, by column of `SCHEMA`."""
    customers = customers_of(studies)
    files, options = customers.shared("files"), customers.shared("options")
    spaces = combined(lambda own, space: own and own.search_space and _text(space), options, studies.shared("space"))
    return {
        "study": studies.columns["id"],
        "customer": customers.columns["id"],
        "files": files.map(lambda names: files_inside(directory, names) or names),
        "inside": files.map(lambda names: files_inside(directory, names) is not None),
        **{name: customers.columns[name] for name in ("key", "table", "rows", "size", "stamp", "digest")},
        **{name: studies.shared(name).map(_text) for name in ("algorithm", "scheduler")},
        "seed": studies.columns["seed"],
        "space": spaces,
        "options": options.map(lambda own: own and _own_text(own)),
        "placement": studies.columns["placement"],
        "fixed": studies.shared("fixed").map(lambda fixed: fixed and fixed.to_json()),
        "points_to_evaluate": studies.shared("points_to_evaluate").map(
            lambda points: json.dumps(points) if points else None
        ),
    }


def files_inside(directory: RunDirectory, files: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the names of a customer's files that the run has written for itself; None for other files, or none."""
    names = [directory.name_of(file) for file in files]
    found = tuple(name for name in names if name is not None)
    return found if names and len(found) == len(names) else None


def _own_text(own: CustomerOptions) -> str | None:
    values = {name: value for name, value in own.to_dict().items() if name not in ("path", "placement")}
    return json.dumps(values) if values else None


def _text(spec: algorithms.Algorithm | schedulers.SchedulerSpec | SearchSpace) -> str:
    return json.dumps(spec.to_dict())


def read_studies(spec: RunSpec, directory: RunDirectory, table: pa.Table) -> StudyTable:
    """Return the studies of rows of a plan's file; what they have in common is parsed once."""
    add_own_rows(directory.locate(FOLDER))

    def plain(name: str) -> ArrowColumn:
        return ArrowColumn(table.column(name).combine_chunks())

    def shared(name: str) -> DictionaryColumn:
        encoded = table.column(name).combine_chunks().dictionary_encode()
        distinct = encoded.dictionary.to_pylist()
        return DictionaryColumn(
            encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False), [*distinct, None]
        )

    lists = (ArrowColumn(chunk).values(0, len(chunk)) for chunk in table.column("files").chunks)  # not all at once
    files = DictionaryColumn.of(names for each in lists for names in each)
    options = shared("options").map(lambda text: text and customer_options(json.loads(text)))
    own = options.map(lambda each: each or _NOTHING_OWN)
    fixed = shared("fixed").map(lambda text: text and FixedConfiguration.from_json(text))
    customers = Columnar(
        Customer,
        len(table),
        {
            **{name: plain(name) for name in ("key", "table", "rows", "size")},
            "id": plain("customer"),
            "files": combined(lambda names, inside: _located(directory, names, inside), files, shared("inside")),
            "options": options,
            **{name: shared(name).map(lambda text: text or "") for name in ("stamp", "digest")},
        },
    )
    return Columnar(
        Study,
        len(table),
        {
            "id": plain("study"),
            "customer": customers,
            "algorithm": shared("algorithm").map(lambda text: algorithms.parse(json.loads(text))),
            "scheduler": shared("scheduler").map(lambda text: schedulers.parse(json.loads(text))),
            "seed": plain("seed"),
            "space": shared("space").map(lambda text: SearchSpace.from_dict(json.loads(text)) if text else spec.space),
            "n_trials": budgets(own, fixed, spec.definition.trials),
            "resources": own.map(lambda each: each.resources or spec.definition.resources),
            "placement": shared("placement"),
            "fixed": fixed,
            "points_to_evaluate": shared("points_to_evaluate").map(
                lambda text: () if text is None else json.loads(text)
            ),
        },
    )


def _located(directory: RunDirectory, names: tuple[str, ...], inside: bool | None) -> tuple[str, ...]:
    return tuple(directory.locate(name) for name in names) if inside else names
