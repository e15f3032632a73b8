"""What a release says of one customer: the model that serves it, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from tuning.basics.documents import Json
from tuning.evaluation.fixed import FixedConfiguration
from tuning.models.customer_model import described_as
from tuning.notes import Note, from_row
from tuning.records.columns import NOTES, column, figures_of, optional

#: Which answer a customer gets: its own model, that of all customers, what knows nothing of its columns, or none.
OWN, POOL, CONSTANT, NONE = "own", "pool", "constant", "none"
ANSWERS = (OWN, POOL, CONSTANT, NONE)
HERE = "."  # how releases name the champions' own folder, in which answers lie that no run has


@dataclass(frozen=True, slots=True)
class Champion:
    """The model that serves a customer: a row of a release."""

    customer: str = column("its id")
    answer: str = column("own, pool, constant or none")
    run: str = column("where the model lies: a run directory, as `Releases.reference` names it, or `HERE`")
    study: str | None = column("the study that found it, by id; none where it is no study's")
    model_path: str | None = column("of the model's folder in the run")
    model_sha256: str | None = column("of its `model.json`, which holds the digests of its other files")
    configuration: str | None = column("what fits it again, as `FixedConfiguration.to_json`")
    rows: int = column("how many it was fitted on")
    since: int = column("number of the release that made this configuration champion")
    stamp: str = optional("what changes when the customer's files are written", default="")
    digest: str = optional("of the rows that it was fitted on; empty where nobody has looked", default="")
    size: int = optional("about the bytes of these rows", default=0)
    searched: int | None = optional("number of the release whose search was the last one")
    searched_size: int | None = optional("about the bytes of the rows of that search")
    score: float | None = optional("of its configuration on the hold-out of that search")
    other_score: float | None = optional("of the other one: of the winner that stayed behind, or of whom it replaced")
    reason: tuple[Note, ...] = optional("why it serves", type=NOTES, default=())
    notes: tuple[Note, ...] = optional("what the last refresh that fitted it has met", type=NOTES, default=())

    @property
    def model(self) -> str | None:
        """The name of its family in tables, or those of an ensemble; None without a configuration."""
        if self.configuration is None:
            return None
        return described_as([each.family for each in FixedConfiguration.from_json(self.configuration).members])


COLUMNS = figures_of(Champion)
SCHEMA = pa.schema([(each.name, each.type) for each in COLUMNS])
_OF_NOTES = [each.name for each in COLUMNS if each.type == NOTES]


def same_configuration(one: Champion, other: Champion) -> bool:
    """Return whether both are fitted alike but for their seeds; of an ensemble weights count. False without one."""
    if one.configuration is None or other.configuration is None:
        return False
    if one.configuration == other.configuration:
        return True
    mine, its = (FixedConfiguration.from_json(each).without_seeds for each in (one.configuration, other.configuration))
    return mine == its


def table_of(champions: Iterable[Champion]) -> pa.Table:
    """Return champions as the table of a release."""
    given = list(champions)
    columns = {name: [getattr(each, name) for each in given] for name in SCHEMA.names}
    for name in _OF_NOTES:
        columns[name] = [[note.to_row() for note in notes] for notes in columns[name]]
    return pa.table(columns, schema=SCHEMA)


def champions_of(table: pa.Table) -> list[Champion]:
    """Return the rows of a release's table."""
    columns = {name: table[name].to_pylist() for name in SCHEMA.names}
    for name in _OF_NOTES:
        columns[name] = [tuple(_note(**row) for row in notes) for notes in columns[name]]
    return [Champion(*values) for values in zip(*columns.values(), strict=True)]


@lru_cache(maxsize=10_000)  # most customers have the same few
def _note(code: str, subject: str, values: str) -> Note:
    return from_row({"code": code, "subject": subject, "values": values})


def to_json(champion: Champion) -> Json:
    """Return one row as plain values."""
    return dict(table_of([champion]).to_pylist()[0])


def from_json(row: Json) -> Champion:
    """Return the champion of `to_json`."""
    return champions_of(pa.Table.from_pylist([row], SCHEMA))[0]
