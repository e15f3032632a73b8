"""Going on with a run: what is recorded, what is left, and which changes of the definition are allowed meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from tuning.data.customers import Customer
from tuning.definition.definition import Definition
from tuning.errors import RunError
from tuning.models.entries import same_models
from tuning.records.ownership import Term, terms
from tuning.records.parts import STUDIES, TRIALS, accepted, intact, of_kind
from tuning.records.schema import QUARANTINED, StudyRecord, TrialRecord, decode, encode, keys_in, unique
from tuning.runs.plan_file import plain
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import Study
from tuning.user_code import name_inside
from tuning.wording import shorten

READERS, READ_AHEAD = 8, 64
# Say how a run is worked through, not what it searches; a resume may change them.
MAY_CHANGE = ("slots", "storage", "limits", "mlflow", "save_models", "allow_pickle")
MAY_BE_IN_FILES = ("prepare", "metric", "objective")  # functions; the run has a copy of each file
SHOWN = 5


@dataclass
class RecordedState:
    """What a run has come to.

    parts: names of those that count and are intact. ended: studies with nothing left to do. left: the others.
    trials: recorded trials of the studies that are left, by study. damaged: parts that cannot be read, and why.
    """

    parts: list[str]
    ended: list[Study] = field(default_factory=list)
    left: list[Study] = field(default_factory=list)
    trials: dict[str, list[TrialRecord]] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)


def read_state(directory: RunDirectory, term: Term, studies: Sequence[Study], budget: int) -> RecordedState:
    """Read a run's parts, each once, and sort its studies into ended and left.

    budget: trials per study from now on. A study that used up a smaller budget goes on; one that lost trials with a
    damaged part runs those again.
    """
    names = accepted(directory, term)
    state = RecordedState(names)
    budgets = {each.folder: each.trials for each in terms(directory)}
    recorded: dict[str, tuple[StudyRecord, int]] = {}
    for name, data in _read(directory, of_kind(names, STUDIES), state.damaged):
        for record in decode(data):
            recorded[record.study] = (record, budgets.get(name.split("/")[1], budget))
    going_on = {study.id for study in studies if not _ended(recorded.get(study.id), budget)}
    known: Counter[str] = Counter()
    found = _of_studies(directory, of_kind(names, TRIALS), going_on, state.damaged, known)
    if lost := _incomplete({name: record for name, (record, _) in recorded.items()}, known) - going_on:
        found += _of_studies(directory, of_kind(names, TRIALS), lost, state.damaged)
        going_on |= lost
    for record in unique(found):
        state.trials.setdefault(record.study, []).append(record)
    for study in studies:
        (state.left if study.id in going_on else state.ended).append(study)
    state.parts = [name for name in names if name not in state.damaged]
    return state


def _incomplete(recorded: Mapping[str, StudyRecord], known: Counter[str]) -> set[str]:
    """Studies with fewer trials than their record says: a part is damaged, or somebody has deleted it."""
    return {name for name, record in recorded.items() if known[name] < record.trials}


def _ended(record: tuple[StudyRecord, int] | None, budget: int) -> bool:
    """Whether a study has nothing left to do; one that stopped before its budget was used up had its reasons."""
    if record is None:
        return False
    study, before = record
    return study.status == QUARANTINED or before >= budget or study.trials < before


def _of_studies(
    directory: RunDirectory,
    names: Sequence[str],
    wanted: set[str],
    damaged: dict[str, str],
    known: Counter[str] | None = None,
) -> list[TrialRecord]:
    """The trials of some studies; `known` counts those of all studies."""
    found: list[TrialRecord] = []
    for _, data in _read(directory, names, damaged):
        studies = [study for study, _ in keys_in(data)] if wanted or known is not None else []
        if known is not None:
            known.update(studies)
        if not wanted.isdisjoint(studies):
            found += [record for record in decode(data) if record.study in wanted]
    return found


def _read(directory: RunDirectory, names: Sequence[str], damaged: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    """The intact ones of some parts; the others are put into `damaged`."""
    names = [name for name in names if name not in damaged]
    with ThreadPoolExecutor(READERS) as pool:
        for start in range(0, len(names), READ_AHEAD):
            group = names[start : start + READ_AHEAD]
            for name, data in zip(group, pool.map(lambda name: _bytes(directory, name), group), strict=True):
                if isinstance(data, bytes):
                    yield name, data
                else:
                    damaged[name] = str(data)


def _bytes(directory: RunDirectory, name: str) -> bytes | Exception:
    try:
        return intact(directory, name)
    except (OSError, ValueError) as error:
        return error


def handed_over_name(term: Term, shard: int) -> str:
    """The file with the trials of unfinished studies that earlier owners recorded, for the shard that goes on."""
    return f"plan/{term.folder}-carried/{shard:05d}.parquet"


def hand_over(
    directory: RunDirectory, term: Term, shards: Sequence[Sequence[int]], left: Sequence[Study], state: RecordedState
) -> None:
    """Give each shard the recorded trials of its studies."""
    for number, shard in enumerate(shards):
        records = [record for position in shard for record in state.trials.get(left[position].id, ())]
        if records:
            directory.write(handed_over_name(term, number), encode(records))


def handed_over(directory: RunDirectory, term: Term, shard: int) -> list[TrialRecord]:
    """What `hand_over` left for a shard."""
    name = handed_over_name(term, shard)
    return decode(directory.read(name)) if directory.exists(name) else []


def merge(directory: RunDirectory, before: Definition, now: Definition) -> Definition:
    """The definition to go on with: as before, plus what `now` adds; `RunError` shows any other change.

    The data may change as long as every customer stays what it was: see `same_customers`.
    """
    there, here = plain(before), plain(now)
    differences = [
        f"{key}: {_short(there.get(key))} there, {_short(here.get(key))} here"
        for key in sorted({*there, *here} - {*MAY_CHANGE, "trials", "data", "customers", "models", *MAY_BE_IN_FILES})
        if there.get(key) != here.get(key)
    ]
    for key in MAY_BE_IN_FILES:
        old, new = there.get(key), here.get(key)
        if old != new and (new is None or old != name_inside(new)):
            differences.append(f"{key}: {_short(old)} there, {_short(new)} here, or its file changed")
    if not same_models(before.models, now.models, directory):
        differences.append(f"models: {_short(there.get('models'))} there, {_short(here.get('models'))} here")
    if now.trials < before.trials:
        differences.append(f"trials: {before.trials} there, {now.trials} here; they can only become more")
    if now.trials > before.trials and now.scheduler.pauses:
        differences.append(
            f"trials: {before.trials} there, {now.trials} here; under {now.scheduler.name} the trials of a study are "
            "one race, which has ended"
        )
    if differences:
        raise RunError(_refusal(directory, differences))
    objective = now.objective if callable(now.objective) else before.objective
    added = {"trials": now.trials, "data": now.data, "customers": now.customers, "objective": objective}
    return before.model_copy(update={**added, **{key: getattr(now, key) for key in MAY_CHANGE}})


def same_customers(directory: RunDirectory, before: Sequence[Study], now: Sequence[Customer]) -> None:
    """`RunError` unless every customer of the run is still there with as much data as it had."""
    found = {customer.id: customer for customer in now}
    gone = sorted({study.customer.id for study in before} - set(found))
    changed = sorted(
        f"{study.customer.id!r} ({study.customer.rows_or_bytes} there, {found[study.customer.id].rows_or_bytes} here)"
        for study in before
        if study.customer.id in found and study.customer.rows_or_bytes != found[study.customer.id].rows_or_bytes
    )
    differences = []
    if gone:
        differences.append(f"customers: {_some([repr(name) for name in gone])} here no more")
    if changed:
        differences.append(f"data: the size of {_some(changed)}")
    if differences:
        raise RunError(_refusal(directory, differences))


def with_customers(studies: Sequence[Study], now: Sequence[Customer]) -> list[Study]:
    """The same studies, their data where it is found now; what a customer has of its own stays as it was."""
    found = {customer.id: customer for customer in now}
    moved = [(study, found.get(study.customer.id, study.customer)) for study in studies]
    return [replace(study, customer=replace(there, options=study.customer.options)) for study, there in moved]


def _refusal(directory: RunDirectory, differences: list[str]) -> str:
    lines = "\n".join(f"  {line}" for line in differences)
    return (
        f"the definition is not the one that {directory.shown} was started with:\n{lines}\n"
        "A resume may add trials or customers, and change limits, slots and mlflow; nothing else. Resume it "
        f"unchanged (tuning resume {directory.shown}), or start a new run in another folder."
    )


def _short(value: Any) -> str:
    return "not set" if value is None else shorten(repr(value))


def _some(items: list[str], shown: int = SHOWN) -> str:
    more = f" and {len(items) - shown} more" if len(items) > shown else ""
    return f"{', '.join(items[:shown])}{more}"
