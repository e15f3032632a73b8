"""Going on with a run: what is recorded, what is left, and which changes of the definition are allowed meanwhile."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from search_spaces import SearchSpace
from tuning.basics.wording import resume_advice, shorten, some_names
from tuning.definition.definition import Definition
from tuning.errors import RunError
from tuning.models.entries import same_models
from tuning.notes import DataCode, EndCode, from_row
from tuning.records.ownership import Term, terms
from tuning.records.parts import (
    DRIVER,
    STUDIES,
    TRIALS,
    Damaged,
    batch_parts,
    beyond,
    of_kind,
    parts_before_trials,
    parts_without_studies,
    read_table,
    studies_in,
    tables_in,
    written_by_driver,
)
from tuning.records.schema import QUARANTINED, TrialRecord
from tuning.records.tables import KEYS, decode_table, distinct, encode_table, no_rows, records_of
from tuning.runs.plan_file import plain, trials_refusal
from tuning.storage.run_directory import RunDirectory
from tuning.study.record import versions
from tuning.study.study import SPREAD, StudyTable, placed
from tuning.study.trial import first_gap
from tuning.user_code import name_inside

logger = logging.getLogger(__name__)

# Say how a run is worked through, not what it searches; a resume may change them.
MAY_CHANGE = (
    "slots", "storage", "time_budget", "limits", "mlflow", "loggers", "report", "save_models", "model_files",
    "allow_code",
)  # fmt: skip
MAY_BE_IN_FILES = ("prepare", "metric", "objective")  # functions; the run has a copy of each file
SHOWN = 5
STUDY_COLUMNS = ["study", "status", "reason", "trials", "failed", "gain"]


@dataclass
class RecordedState:
    """What a run has come to, read once when it goes on.

    Attributes:
        parts: names of those that count and are intact.
        ended: studies with nothing left to do.
        left: the others.
        trials: recorded trials of the studies that are left.
        records: the latest record of each study that has one, in the columns of `STUDY_COLUMNS`.
        damaged: parts that cannot be read, and why.
    """

    parts: list[str]
    ended: StudyTable
    left: StudyTable
    trials: pa.Table
    records: pa.Table
    damaged: dict[str, str]

    @property
    def ended_records(self) -> pa.Table:
        """The records of the studies that have ended."""
        return self.records.filter(pc.is_in(self.records["study"], value_set=self.ended.texts("id")))

    def of(self, left: StudyTable) -> RecordedState:
        """Return the state with these studies left, and the trials of no others."""
        wanted = pc.is_in(self.trials["study"], value_set=left.texts("id"))
        return replace(self, left=left, trials=self.trials.filter(wanted))


def read_state(
    directory: RunDirectory, names: Sequence[str], studies: StudyTable, definition: Definition
) -> RecordedState:
    """Read a run's parts and sort its studies into ended and left.

    names: of the parts that count. definition: from now on. A study that used up a smaller budget of trials goes on;
    one that lost trials with a damaged part runs those again.
    """
    unread: dict[str, str] = {}

    def damaged(name: str, error: Exception) -> None:
        unread[name] = str(error)

    recorded = _recorded_studies(directory, names, definition.trials, damaged)
    keys = list(tables_in(directory, of_kind(names, TRIALS), KEYS[TRIALS], damaged))
    found = pa.concat_tables([no_rows(TRIALS, KEYS[TRIALS]), *(table for _, table in keys)])
    lacking = pc.less(_times(distinct(found, KEYS[TRIALS])["study"], recorded["study"]), recorded["trials"])
    ended = recorded["study"].filter(_ended(recorded, definition))
    ids = studies.texts("id")
    left = pc.invert(pc.is_in(ids, value_set=ended))
    # A part of their trials is damaged, or somebody has deleted it.
    left = pc.or_(left, pc.is_in(ids, value_set=recorded["study"].filter(lacking)))
    trials = _rows_of(directory, keys, pc.is_in(found["study"], value_set=ids.filter(left)), damaged)
    on = np.asarray(left)
    parts = [name for name in names if name not in unread]
    return RecordedState(parts, studies.take(~on), studies.take(on), trials, recorded, unread)


def _recorded_studies(directory: RunDirectory, names: Sequence[str], budget: int, damaged: Damaged) -> pa.Table:
    """Return the latest record of each study, and the budget that there was, as `budget`."""
    budgets = {each.folder: each.trials for each in terms(directory)}
    tables = [
        table.append_column("budget", pa.array([budgets.get(name.split("/")[1], budget)] * len(table), pa.int64()))
        for name, table in tables_in(directory, of_kind(names, STUDIES)[::-1], STUDY_COLUMNS, damaged)
    ]
    none = no_rows(STUDIES, STUDY_COLUMNS).append_column("budget", pa.array([], pa.int64()))
    return distinct(pa.concat_tables([none, *tables]), ["study"])


def _times(studies: pa.ChunkedArray, wanted: pa.ChunkedArray) -> pa.Array:
    """Return how often each of the wanted ones is among some studies."""
    places = pc.index_in(studies, value_set=wanted).drop_null().to_numpy()
    return pa.array(np.bincount(places, minlength=len(wanted)))


def _ended(recorded: pa.Table, definition: Definition) -> pa.ChunkedArray:
    """Return whether studies have nothing left to do; one that stopped before its budget was used up had its reasons.

    One whose data had changed while the run went on may have it back, the model of one may be saved by now, a machine
    may have come for one, and the limit that refused one may be larger.
    """
    before = recorded["budget"]
    over = pc.or_(pc.greater_equal(before, definition.trials), pc.less(recorded["trials"], before))
    over = pc.or_(over, pc.equal(recorded["status"], QUARANTINED))
    codes = pc.struct_field(recorded["reason"], "code")
    again = pc.is_in(codes, value_set=pa.array([code.id for code in _TRIED_AGAIN]))
    over_limit = pa.array([DataCode.OVER_LIMIT.id, DataCode.AT_LEAST_OVER_LIMIT.id])
    limited = np.flatnonzero(pc.is_in(codes, value_set=over_limit).to_numpy())
    allowed = np.zeros(len(recorded), dtype=bool)
    allowed[limited] = [
        definition.limits.allow_now(from_row(row)) for row in recorded["reason"].take(limited).to_pylist()
    ]
    return pc.and_not(over, pc.or_(again, pa.array(allowed)))


#: What ended studies that a resume takes up again.
_TRIED_AGAIN = (DataCode.DATA_CHANGED, DataCode.FILE_GONE, EndCode.UNSAVED_MODEL, EndCode.NO_PLACE)


def _rows_of(
    directory: RunDirectory, keys: Sequence[tuple[str, pa.Table]], wanted: pa.ChunkedArray, damaged: Damaged
) -> pa.Table:
    """Return those rows of parts that are wanted, each key once. keys: of all rows. wanted: for each of these."""
    chosen, ends = wanted.to_numpy(), np.cumsum([len(table) for _, table in keys], dtype=np.int64)
    masks = {name: chosen[end - len(table) : end] for (name, table), end in zip(keys, ends, strict=True)}
    holding = [name for name, mask in masks.items() if mask.any()]
    rows = [table.filter(pa.array(masks[name])) for name, table in tables_in(directory, holding, damaged=damaged)]
    return distinct(pa.concat_tables([no_rows(TRIALS), *rows]), KEYS[TRIALS])


def handed_over_name(term: Term, batch: int) -> str:
    """Return the file with the trials that earlier owners recorded of a batch's unfinished studies."""
    return f"plan/{term.folder}-carried/{batch:05d}.parquet"


def hand_over(
    directory: RunDirectory, term: Term, batches: Sequence[np.ndarray], left: StudyTable, state: RecordedState
) -> None:
    """Give each batch the recorded trials of its studies, and the driver those of spread studies."""
    batch_of = np.full(len(left), DRIVER, dtype=np.int64)
    for number, batch in enumerate(batches):
        batch_of[batch] = number
    numbers = batch_of[pc.index_in(state.trials["study"], value_set=left.texts("id")).to_numpy()]
    order = np.argsort(numbers, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1) if len(order) else ():
        directory.write(handed_over_name(term, numbers[rows[0]]), encode_table(state.trials.take(rows)))


def handed_over(directory: RunDirectory, term: Term, batch: int) -> pa.Table:
    """Return what `hand_over` left for a batch."""
    name = handed_over_name(term, batch)
    return decode_table(directory.read(name)) if directory.exists(name) else no_rows(TRIALS)


def recorded(directory: RunDirectory, term: Term, batch: int) -> tuple[dict[str, list[TrialRecord]], set[str]]:
    """Return what is done of a batch: its trials by study, and the ids of the studies that have ended.

    Of spread studies, which are the driver's batch, too. A damaged part costs its trials: they are run again.
    """
    names = batch_parts(directory, term, batch)
    own = read_table(directory, names, TRIALS, damaged=_rerun)
    trials = distinct(pa.concat_tables([handed_over(directory, term, batch), own]), KEYS[TRIALS])
    by_study: dict[str, list[TrialRecord]] = {}
    for record in sorted(records_of(trials, TrialRecord), key=attrgetter("key")):
        by_study.setdefault(record.study, []).append(record)
    return by_study, {*read_table(directory, names, STUDIES, ["study"], _rerun)["study"].to_pylist()}


def _rerun(name: str, error: Exception) -> None:
    """Leave a damaged part out."""


def merge(directory: RunDirectory, before: Definition, now: Definition) -> Definition:
    """Return the definition to go on with: as before, plus what `now` adds; `RunError` shows any other change.

    The data may change as long as every customer stays: see `tuning.runs.data_now`.
    """
    there, here = plain(before), plain(now)
    differences = [
        f"{key}: {short(there.get(key))} there, {short(here.get(key))} here"
        for key in sorted({*there, *here} - {*MAY_CHANGE, "trials", "data", "customers", "models", *MAY_BE_IN_FILES})
        if there.get(key) != here.get(key)
    ]
    for key in MAY_BE_IN_FILES:
        old, new = there.get(key), here.get(key)
        if old != new and (not isinstance(new, str) or old != name_inside(new)):
            differences.append(f"{key}: {short(old)} there, {short(new)} here, or its file changed")
    if not same_models(before.models, now.models, directory):
        differences.append(f"models: {short(there.get('models'))} there, {short(here.get('models'))} here")
    if refused := trials_refusal(before, now.trials):
        differences.append(f"trials: {refused}")
    if differences:
        raise RunError(refusal(directory, differences))
    objective = now.objective if callable(now.objective) else before.objective
    added = {
        "trials": now.trials, "data": now.data, "customers": now.customers, "objective": objective,
        "search_space": now.search_space,  # the same, with those constraints that no file brings back
    }  # fmt: skip
    return before.model_copy(update={**added, **{key: getattr(now, key) for key in MAY_CHANGE}})


def with_libraries_now(directory: RunDirectory, definition: Definition, state: RecordedState) -> RecordedState:
    """Return the state without the trials of unfinished studies, where these came from other libraries.

    Replayed, they might differ from what the libraries suggest now. Which libraries a trial had is in its record: an
    owner in between may have had others, and may have left the study alone. definition: as for `read_state`.
    """
    now = versions()
    other = state.trials["study"].filter(pc.not_equal(state.trials["versions"], now))
    if not len(other):
        return state
    anew = sorted(pc.unique(other).to_pylist())
    logger.warning(
        "the libraries are not those that the run had (now %s), so unfinished studies (%s) start again, from "
        "the first trial.",
        ", ".join(f"{name} {number}" for name, number in json.loads(now).items()),
        some_names(anew),
    )
    again = read_state(directory, parts_without_studies(directory, state.parts, anew), state.left, definition)
    return replace(again.of(state.left), ended=state.ended)


def check_order(directory: RunDirectory, state: RecordedState) -> None:
    """Raise `RunError` where the trials of an unfinished study may have overlapped, because it is spread.

    What was suggested meanwhile cannot be suggested again by trials that run one after another.
    """
    recorded = studies_in(directory, of_kind(written_by_driver(state.parts), TRIALS))
    if overlapped := recorded.intersection(state.left.texts("id").to_pylist()):
        raise RunError(
            f"{directory.shown} is spread, and trials of {some_names(sorted(overlapped))} have run at the same time, "
            f"which one process cannot repeat. Resume it with Ray: {resume_advice(directory.shown)}"
        )


def without_gaps(directory: RunDirectory, state: RecordedState) -> RecordedState:
    """Return the state without the trials of packed studies behind a lost one, which run again together with it.

    They were suggested knowing the lost one. If they counted twice, a study could be of two searches.
    """
    counts = state.trials.group_by("study").aggregate([("trial", "max"), ("trial", "count")])
    broken = counts["study"].filter(pc.greater_equal(counts["trial_max"], counts["trial_count"]))
    spread = state.left.texts("id").filter(pa.array(placed(state.left, SPREAD)))
    broken = broken.filter(pc.invert(pc.is_in(broken, value_set=spread)))
    if not len(broken):
        return state
    lost = pc.is_in(state.trials["study"], value_set=broken)
    numbers: dict[str, set[int]] = {}
    for row in state.trials.filter(lost).select(KEYS[TRIALS]).to_pylist():
        numbers.setdefault(row["study"], set()).add(row["trial"])
    firsts = {name: first_gap(known) for name, known in numbers.items()}
    return replace(
        state,
        parts=parts_before_trials(directory, state.parts, firsts),
        trials=state.trials.filter(pc.invert(beyond(state.trials, firsts))),
    )


def refusal(directory: RunDirectory, differences: list[str]) -> str:
    lines = "\n".join(f"  {line}" for line in differences)
    return (
        f"the definition is not the one that {directory.shown} was started with:\n{lines}\n"
        f"A resume may add trials or customers, and change {', '.join(MAY_CHANGE)}; nothing else. Resume it "
        f"unchanged ({resume_advice(directory.shown)}), or start a new run in another folder."
    )


def short(value: object) -> str:
    value = value.to_dict() if isinstance(value, SearchSpace) else value
    return "not set" if value is None else shorten(repr(value))
