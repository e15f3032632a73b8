"""Which configurations a run has found: what it takes to fit its models again, and an objective's as it was called."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.documents import Json
from tuning.basics.wording import name_list
from tuning.errors import RunError
from tuning.evaluation.fixed import FixedConfiguration, FixedMember
from tuning.records.ownership import Term
from tuning.records.parts import TRIALS, accepted, of_kind, tables_in
from tuning.records.schema import MODEL, OK, Config, TrialRecord
from tuning.records.tables import KEYS, distinct, joined, no_rows, records_of
from tuning.runs.plan_file import read_plan
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import Study


def fixed_configurations(directory: RunDirectory, term: Term, best: pa.Table) -> dict[str, FixedConfiguration]:
    """Return by customer with a model what fits that again; a customer whose model is a constant keeps a constant.

    best: the customers' best studies, as of `RunResult.best_studies`.
    """
    rows: list[Json] = best.filter(pc.equal(best["status"], OK)).to_pylist()
    refitted = {row["study"] for row in rows if not row["trials"]}  # with a fixed configuration already
    known = {each.id: each.fixed for each in _planned(directory, term) if each.id in refitted} if refitted else {}
    trials = _winning_trials(directory, term, rows)
    return {row["customer"]: known.get(row["study"]) or fixed_configuration(row, trials) for row in rows}


def fixed_configuration(row: Json, trials: Mapping[tuple[str, int], TrialRecord]) -> FixedConfiguration:
    """Return what fits the model of a study that has searched again, of an ensemble all members with their weights.

    row: the study's record by column. trials: the records of the model's trials.
    """
    if row["trial"] is None and row["ensemble"] is None:  # a constant
        return FixedConfiguration((FixedMember(json.loads(row["config"]), 0),))
    weights = weights_of(row)
    if missing := sorted(each for each in weights if isinstance(each, int) and (row["study"], each) not in trials):
        raise RunError(f"the records of the trials {name_list(missing)} of {row['customer']!r} are missing.")
    return FixedConfiguration(
        tuple(
            FixedMember.of(trials[row["study"], each], weight)
            if isinstance(each, int)
            else FixedMember({MODEL: each}, 0, weight=weight)
            for each, weight in weights.items()
        )
    )


def weights_of(row: Json) -> dict[int | str | None, float]:
    """Return the trials of a model and forms of the pool, with their weights. row: of a study that has a model."""
    if row["ensemble"] is None:
        return {row["trial"]: 1.0}
    members = json.loads(row["ensemble"])
    return {each["family"] if each["trial"] is None else each["trial"]: each["weight"] for each in members}


def nested_config(directory: RunDirectory, term: Term, study: str, config: Config) -> Config:
    """Return the configuration of an objective's study as it was called with. study: its id."""
    return next(each.space.nest(config) for each in _planned(directory, term) if each.id == study)


def _planned(directory: RunDirectory, term: Term) -> Iterator[Study]:
    plan = read_plan(directory, term)
    return chain(plan.studies, plan.ended)


def _winning_trials(directory: RunDirectory, term: Term, rows: list[Json]) -> dict[tuple[str, int], TrialRecord]:
    """Return the records of these models' trials, of no others: there may be millions."""
    keys = {f"{number} {row['study']}" for row in rows for number in weights_of(row) if isinstance(number, int)}
    wanted, names = pa.array(sorted(keys), pa.string()), accepted(directory, term)

    def chosen(table: pa.Table) -> pa.Table:
        key = pc.binary_join_element_wise(table["trial"].cast(pa.string()), table["study"], " ")
        return table.filter(pc.is_in(key, value_set=wanted))

    tables = (chosen(table) for _, table in tables_in(directory, of_kind(names, TRIALS)))
    found = distinct(joined(tables, no_rows(TRIALS)), KEYS[TRIALS])
    return {record.key: record for record in records_of(found, TrialRecord)}
