"""What has become of a run's data since its trials ran: customers who are new, changed or gone."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow.compute as pc

from tuning.basics.columnar import Columnar
from tuning.basics.wording import amount, option, resume_advice, some_names
from tuning.data import fingerprints
from tuning.data.customers import Customers, find_customers, one_each, places_of, unpartitioned
from tuning.data.keyed_tables import find_tables
from tuning.definition.definition import Definition
from tuning.definition.options import CustomerOptions
from tuning.definition.plain_values import IN_MEMORY
from tuning.errors import DataError, RunError
from tuning.records.ownership import Term
from tuning.records.parts import accepted, parts_without_studies
from tuning.runs.resume import SHOWN, RecordedState, read_state, refusal, short
from tuning.runs.study_rows import files_inside
from tuning.storage.names import mask
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import StudyTable, customers_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class DataNow:
    """What has become of a run's data.

    Attributes:
        studies: the run's, with their data where it is now.
        added: customers that are new.
        changed: customers whose rows are not what they were, as they are now.
        gone: customers whose files were there and are not any more.
    """

    studies: StudyTable
    added: Customers
    changed: Customers
    gone: Customers

    def state(self, directory: RunDirectory, last: Term, definition: Definition) -> RecordedState:
        """Return what is recorded of the data as it is now.

        definition: to go on with. Customers whose files are gone stay as they are, a warning names them; `RunError`
        when nobody else is left.
        """
        anew = self.studies.take(_among(customers_of(self.studies), self.changed)).texts("id").to_pylist()
        state = read_state(
            directory, parts_without_studies(directory, accepted(directory, last), anew), self.studies, definition
        )
        lost = self.gone.take(_among(self.gone, customers_of(state.left)))
        if lost:
            stays = _among(customers_of(state.left), lost)
            where = mask(lost[0].files[0])
            text = f"the data of {some_names(lost.texts('id').to_pylist())} is not there any more: "
            advice = f"Bring it back, then: {resume_advice(directory.shown)}"
            if stays.all() and not self.added:
                raise RunError(f"{text}{where}. {advice}")
            logger.warning("%s%s. What is recorded of it stays as it is. %s", text, where, advice)
            ended = Columnar.joined([state.ended, state.left.take(stays)])
            state = replace(state.of(state.left.take(~stays)), ended=ended)
        if self.changed:
            names = some_names(self.changed.texts("id").to_pylist())
            others = len(one_each(customers_of(self.studies))) - len(self.changed)
            whose = "its search starts" if len(self.changed) == 1 else "their searches start"
            kept = f"; what is recorded of {amount(others, 'other customer')} stays" if others else ""
            logger.warning(
                "the data of %s has changed since the trials ran, so %s again, from the first trial%s.",
                names,
                whose,
                kept,
            )
        return state


def look_at_data(
    directory: RunDirectory, merged: Definition, definition: Definition | None, studies: StudyTable
) -> DataNow:
    """Return what has become of the data since the trials ran. definition: where a resume was given one."""
    before = one_each(customers_of(studies))
    named = definition is not None and (definition.data is not None or definition.manifest is not None)
    if definition is None or not named or IN_MEMORY in _values(definition.data):
        found = before.take(_with_files(before) & ~_inside(directory, before))
        _tell_of_tables(directory, merged, before, studies)
    else:
        found = find_customers(definition)
        left_out = before.take(~_among(before, found) & ~before.present("key") & _with_files(before))
        found = Columnar.joined([found, fingerprints.with_missing_files(fingerprints.stamped(left_out))])
        same_customers(directory, before, found)
    return _compared(directory, merged, studies, before, found)


def _compared(
    directory: RunDirectory, merged: Definition, studies: StudyTable, before: Customers, found: Customers
) -> DataNow:
    """Return what has become of the data. before, found: the customers of the studies, and those of now."""
    known = found.take(_among(found, before))
    then = before.take(places_of(known.texts("id"), before))
    touched = fingerprints.touched(merged, then, known)
    other = touched.take(fingerprints.differ(before.take(places_of(touched.texts("id"), before)), touched))
    gone = fingerprints.with_missing_files(other.take(_with_files(other)))
    own = before.take(_inside(directory, before) & ~_among(before, other))
    same = then.columns  # what a worker knows a file by; of those that were touched, what it is now
    untouched = known.with_columns(stamp=same["stamp"], digest=same["digest"]).take(~_among(known, touched))
    stay = Columnar.joined([untouched, touched.take(~_among(touched, other))])
    return DataNow(
        studies=with_customers(studies, stay.take(~unpartitioned(stay))),
        added=fingerprints.digested(merged, found.take(~_among(found, before))),
        changed=other.take(~_among(other, gone)),
        gone=Columnar.joined([gone, fingerprints.with_missing_files(fingerprints.stamped(own))]),
    )


def _tell_of_tables(directory: RunDirectory, merged: Definition, before: Customers, studies: StudyTable) -> None:
    """Warn where a table is not what it was when the run copied its rows, which the run goes on with."""
    own = before.take(_inside(directory, before))
    if not merged.by or not own or not isinstance(merged.data, str | list | tuple):
        return
    try:
        if {table.stamp for table in find_tables(merged.data, merged.by)} == set(own.texts("stamp").to_pylist()):
            return
        found = find_customers(merged)
        now = _compared(directory, merged, studies, before, found)
    except DataError:  # gone, or no table any more: the copy stays
        return
    kinds = {"changed": now.changed, "new": now.added, "gone": own.take(~_among(own, found))}
    told = [f"{kind} for {some_names(who.texts('id').to_pylist())}" for kind, who in kinds.items() if who]
    if told:
        logger.warning(
            "the data is %s since the run copied it. The run goes on with its copy; to take the rows of now, "
            "run its definition again with %s.",
            ", ".join(told),
            option("resume"),
        )


def _values(data: object) -> list[str]:
    return [value for value in (data.values() if isinstance(data, Mapping) else [data]) if isinstance(value, str)]


def _among(customers: Customers, others: Customers) -> np.ndarray:
    """Return (n,) which of the customers are among others, by their ids."""
    return np.asarray(pc.is_in(customers.texts("id"), value_set=others.texts("id")))


def _with_files(customers: Customers) -> np.ndarray:
    return customers.shared("files").test(bool)


def _inside(directory: RunDirectory, customers: Customers) -> np.ndarray:
    """Return (n,) whose rows the run has written for itself."""
    return customers.shared("files").test(lambda names: files_inside(directory, names) is not None)


def same_customers(directory: RunDirectory, before: Customers, now: Customers) -> None:
    """Raise `RunError` unless every customer of the run is still there, with what it has of its own."""
    gone = sorted(before.take(~_among(before, now)).texts("id").to_pylist())
    differences = [f"customers: {some_names(gone)} here no more"] if gone else []
    there, here = (
        {customer.id: customer.options or CustomerOptions() for customer in each.take(each.present("options"))}
        for each in (before, now.take(_among(now, before)))
    )
    for name in sorted({*there, *here} - {*gone}):
        for key in ("search_space", "trials", "resources"):
            old, new = (getattr(each.get(name, CustomerOptions()), key) for each in (there, here))
            if old != new:
                differences.append(f"{key} of customer {name!r}: {short(old)} there, {short(new)} here")
    if differences:
        raise RunError(refusal(directory, differences[:SHOWN]))


def with_customers(studies: StudyTable, now: Customers) -> StudyTable:
    """Return the same studies, with their customers as they are now; what a customer has of its own stays as it was."""
    then = customers_of(studies)
    places = places_of(then.texts("id"), now)
    places = np.where(places < 0, len(now) + np.arange(len(then)), places)
    moved = Columnar.joined([now, then]).take(places) if now else then
    return studies.with_columns(customer=moved.with_columns(options=then.columns["options"]))
