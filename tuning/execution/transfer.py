"""What customers teach each other in one run: learned once, kept in the run directory, the same for all.

The pilots have ended when the first of the others begins (`tuning.execution.shard_queue`). Of them only configurations
and regrets are looked at. Costs have no say: measured again, they would be others, and so would the results.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from tuning.definition.run_spec import RunSpec
from tuning.errors import StorageError
from tuning.planning.portfolios.learning import Table, regrets
from tuning.planning.portfolios.sources import Portfolio, tables_of
from tuning.records.ownership import begun_term
from tuning.records.parts import accepted, read_studies, read_trials
from tuning.records.schema import TrialRecord, canonical
from tuning.runs.plan_file import read_group
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import FOLLOWER, PILOT, Study
from tuning.study.warm_start import Start, points_to_try, start_of

FILE = "lesson.json"


@dataclass(frozen=True)
class Lesson:
    """What the pilots taught.

    Attributes:
        portfolio: configurations to try after the run's own portfolio, at most one of each pilot.
        tables: how many pilots had something to say.
    """

    portfolio: Portfolio
    tables: int


def find_lesson(directory: RunDirectory, spec: RunSpec) -> Lesson:
    """The run's lesson, which the first who asks for it draws and writes down.

    A damaged file is drawn again, where what is left of it shows that this gives the same.

    Raises:
        StorageError: the pilots have not ended, or the file is not what was written.
    """
    if not directory.exists(FILE):
        with suppress(FileExistsError):  # another worker was quicker
            directory.claim(FILE, _signed(_drawn(directory, spec)))
    try:
        found = directory.read(FILE)
        content, _, digest = found.rpartition(b"\n")
        if digest != _digest(content):
            content = _drawn(directory, spec)
            if content not in found and digest != _digest(content):
                raise ValueError(
                    "its SHA-256 differs from what the run has written, and so does what its first customers teach now"
                )
            directory.write(FILE, _signed(content))
        values = json.loads(content)
        return Lesson(tuple(values["portfolio"]), values["tables"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{directory.display(FILE)} cannot be read: {error}. Start a new run.") from error


def _drawn(directory: RunDirectory, spec: RunSpec) -> bytes:
    return json.dumps(asdict(draw_lesson(spec, _of_pilots(directory)))).encode()


def _signed(content: bytes) -> bytes:
    return content + b"\n" + _digest(content)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _of_pilots(directory: RunDirectory) -> list[TrialRecord]:
    term = begun_term(directory)
    pilots, names = read_group(directory, term, PILOT), accepted(directory, term)
    if left := pilots - {record.study for record in read_studies(directory, names)}:
        raise StorageError(f"{len(left)} of {len(pilots)} customers to learn from have no result yet: {min(left)!r}, …")
    return [record for record in read_trials(directory, names) if record.study in pilots]


def draw_lesson(spec: RunSpec, records: Sequence[TrialRecord]) -> Lesson:
    """What the trials of the pilots teach: the best configuration that each one's own search has found.

    They take half of the trials that the portfolio leaves; the others stay with a study's own search, so whoever is
    unlike the pilots has the whole portfolio and a search. One odd pilot has one configuration at most.
    """
    tables = list(tables_of(records, by_cost=False).values())
    tried = {(record.customer, canonical(record.config)) for record in records}
    pilots, times = len({customer for customer, _ in tried}), Counter(name for _, name in tried)
    shared = {name for name, count in times.items() if 2 * count >= pilots}
    left = spec.definition.trials - len(points_to_try(spec.space, Start(spec.portfolio)))
    names = _found_by_search(tables, shared)[: max(0, left) // 2]
    return Lesson(tuple(json.loads(name) for name in names), sum(map(_says_something, tables)))


def _says_something(table: Table) -> bool:
    return len({cell.loss for cell in table.values()}) > 1


def _found_by_search(tables: Sequence[Table], shared: Container[str]) -> list[str]:
    """The best configuration that each pilot's own search has found; first where it beats what all have by most."""
    found: dict[str, float] = {}
    for table in tables:
        own, common = ([name for name in table if (name in shared) == known] for known in (False, True))
        if own and common and _says_something(table):
            best = min(own, key=lambda name: (table[name].loss, name))
            least = min(regrets(table, common))
            found[best] = max(found.get(best, -1.0), least - regrets(table, [best])[0])
    return sorted(found, key=lambda name: (-found[name], name))


def start_in_group(spec: RunSpec, study: Study, lesson: Lesson | None) -> Start:
    """What a study starts with. lesson: of its run, for those that begin with it."""
    start = start_of(spec, study.customer.id)
    if study.group == FOLLOWER and lesson is not None:
        usual = points_to_try(study.space, Start(spec.portfolio))
        return replace(start, portfolio=(*usual, *lesson.portfolio))
    return start
