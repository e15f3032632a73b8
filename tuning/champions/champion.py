"""What a release says of one customer: the model that serves it, and the one that stands against that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, TypeVar, get_args, get_type_hints

import pyarrow as pa

if TYPE_CHECKING:
    from tuning.champions.promotion import Decision

from tuning.evaluation.fixed import FixedConfiguration
from tuning.models.customer_model import described_as

#: Which answer a customer gets: its own model, that of all customers, what knows nothing of its columns, or none.
OWN, POOL, CONSTANT, NONE = "own", "pool", "constant", "none"
ANSWERS = (OWN, POOL, CONSTANT, NONE)
HERE = "."  # how releases name the champions' own folder, in which answers lie that no run has


@dataclass(frozen=True, slots=True)
class Champion:
    """The model that serves a customer; its fields are the columns of the table `champions`, in their order.

    Attributes:
        customer: its id.
        answer: one of `ANSWERS`.
        run: where the model lies: a run directory, as `Releases.reference` names it, or `HERE`.
        study: whose winner it is, by id; None where it is no study's.
        model_path: of its folder there; None without a model.
        model_sha256: of its `model.json`, which holds the digests of its other files.
        configuration: what fits it again, as `FixedConfiguration.to_json`; None where it has none.
        rows: how many it was fitted on.
        rows_digest: of these; None where nobody has looked.
        newest: the largest moment of the time column among them; None where there is no such column, or nobody looked.
        reason: why it is there, in words.
        since: number of the release that made this configuration champion.
        searched: number of the release whose search found it last; None where there was no search.
        rows_at_search: how many rows there were then.
        hold_out_loss: what its hold-out promised for a row, as losses of rows are compared; None where it says nothing.
        hold_out_error: the standard error of that; None where it is not known.
        drift: what it has lost on new rows so far, as `LossSoFar.to_json`; None before the first ones.
    """

    customer: str
    answer: str
    run: str
    study: str | None
    model_path: str | None
    model_sha256: str | None
    configuration: str | None
    rows: int
    rows_digest: str | None
    newest: float | None
    reason: str
    since: int
    searched: int | None
    rows_at_search: int | None
    hold_out_loss: float | None
    hold_out_error: float | None = None
    drift: str | None = None

    def replaced_by(self, challenger: Challenger, why: str, number: int) -> Champion:
        """The customer's new champion. why: in words. number: of the release that makes it so."""
        return replace(
            self,
            answer=OWN,
            run=challenger.run,
            study=challenger.study,
            model_path=challenger.model_path,
            model_sha256=challenger.model_sha256,
            configuration=challenger.configuration,
            reason=f"promoted: {why}",
            since=number,
            hold_out_loss=challenger.hold_out_loss,
            hold_out_error=challenger.hold_out_error,
            drift=None,
        )

    @property
    def model(self) -> str | None:
        """What its model is called in tables: its family, or those of an ensemble; None without a configuration."""
        if self.configuration is None:
            return None
        return described_as([each.family for each in FixedConfiguration.from_json(self.configuration).members])


@dataclass(frozen=True, slots=True)
class Challenger:
    """A configuration that stands against a champion; its fields are the columns of the table `challengers`.

    Attributes:
        customer, run, study, model_path, model_sha256, configuration, hold_out_loss, hold_out_error: as of `Champion`.
        since: number of the release with which it began to stand.
        comparison: what new rows have said so far, as `RowComparison.to_json`; None before the first ones.
    """

    customer: str
    run: str
    study: str | None
    model_path: str | None
    model_sha256: str | None
    configuration: str | None
    since: int
    comparison: str | None = None
    hold_out_loss: float | None = None
    hold_out_error: float | None = None

    @classmethod
    def of(cls, winner: Champion, number: int) -> Challenger:
        """The winner of a search, which begins to stand with a release. number: of that."""
        return cls(
            customer=winner.customer,
            run=winner.run,
            study=winner.study,
            model_path=winner.model_path,
            model_sha256=winner.model_sha256,
            configuration=winner.configuration,
            since=number,
            hold_out_loss=winner.hold_out_loss,
            hold_out_error=winner.hold_out_error,
        )


def same_configuration(one: Champion | Challenger, other: Champion | Challenger) -> bool:
    """Whether both are fitted alike but for their seeds, an ensemble with the same weights; False without one."""
    if one.configuration is None or other.configuration is None:
        return False
    mine, its = (FixedConfiguration.from_json(each).without_seeds for each in (one.configuration, other.configuration))
    return mine == its


R = TypeVar("R", Champion, Challenger, "Decision")
_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64()}


def schema_of(row: type[R]) -> pa.Schema:
    """The columns of a table of such rows."""
    hints = get_type_hints(row)
    return pa.schema([(each.name, _column_type(hints[each.name])) for each in fields(row)])


def _column_type(hint: object) -> pa.DataType:
    return next(found for kind, found in _TYPES.items() if kind in (hint, *get_args(hint)))


def table_of(rows: Iterable[R], kind: type[R]) -> pa.Table:
    """Rows as a table."""
    schema, given = schema_of(kind), list(rows)
    columns = [pa.array([getattr(row, name) for row in given], schema.field(name).type) for name in schema.names]
    return pa.Table.from_arrays(columns, schema=schema)


def rows_of(table: pa.Table, kind: type[R]) -> list[R]:
    """The rows of a table of `table_of`. A column that an earlier version did not write is None."""
    columns = [
        table[each.name].to_pylist() if each.name in table.column_names else [None] * len(table)
        for each in fields(kind)
    ]
    return [kind(*values) for values in zip(*columns, strict=True)]
