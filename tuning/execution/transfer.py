"""What customers teach each other in one run: learned once, kept in the run directory, the same for all.

The pilots have ended when the first of the others begins (`tuning.execution.run_queue`). Of them only configurations
and regrets are looked at. Costs have no say: measured again, they would be others, and so would the results.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from statistics import fmean

from schedulers.ray_classes import in_front_of_ray
from schedulers.stopping.rule import StudyStopper
from tuning.definition.run_spec import RunSpec
from tuning.errors import StorageError
from tuning.planning.portfolios.learning import Table, regrets
from tuning.planning.portfolios.sources import Portfolio, tables_of
from tuning.planning.transfer import lesson_size
from tuning.records.ownership import begun_term
from tuning.records.parts import accepted, read_studies, read_trials
from tuning.records.schema import TrialRecord, canonical
from tuning.runs.plan_file import read_group
from tuning.storage.run_directory import RunDirectory
from tuning.study.interfaces import Rule
from tuning.study.study import FOLLOWER, PILOT, Study
from tuning.study.warm_start import Start, points_to_try, start_of

FILE = "lesson.json"
SHORTER = 0.7  # of its trials: after these a follower ends that agrees with the pilots


@dataclass(frozen=True)
class Lesson:
    """What the pilots taught.

    Attributes:
        portfolio: configurations to try after the run's own portfolio, at most one of each pilot.
        best: of what all pilots have tried, the half that left them the least mean regret.
        tables: how many pilots had something to say.
    """

    portfolio: Portfolio
    best: Portfolio
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
        return Lesson(tuple(values["portfolio"]), tuple(values["best"]), values["tables"])
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
    """What the trials of the pilots teach: the best configurations that their own searches have found, and which of
    those that all have tried were best for most.

    One odd pilot has one configuration at most, and one say in a mean of regrets between 0 and 1.
    """
    tables = [table for table in tables_of(records, by_cost=False).values() if _says_something(table)]
    tried = {(record.customer, canonical(record.config)) for record in records}
    pilots, times = len({customer for customer, _ in tried}), Counter(name for _, name in tried)
    shared = {name for name, count in times.items() if 2 * count >= pilots}
    found = _found_by_search(tables, shared)[: lesson_size(spec)]
    best = _ranked(tables, shared)[: len(shared) // 2]
    portfolio, best_ones = (tuple(json.loads(name) for name in names) for names in (found, best))
    return Lesson(portfolio, best_ones, len(tables))


def _says_something(table: Table) -> bool:
    return len({cell.loss for cell in table.values()}) > 1


def _found_by_search(tables: Sequence[Table], shared: Collection[str]) -> list[str]:
    """The best configuration that each pilot's own search has found; first where it beats what all have by most."""
    found: dict[str, float] = {}
    for table in tables:
        own, common = ([name for name in table if (name in shared) == known] for known in (False, True))
        if own and common:
            best = min(own, key=lambda name: (table[name].loss, name))
            least = min(regrets(table, common))
            found[best] = max(found.get(best, -1.0), least - regrets(table, [best])[0])
    return sorted(found, key=lambda name: (-found[name], name))


def _ranked(tables: Sequence[Table], names: Collection[str]) -> list[str]:
    """Those configurations first that leave the least mean regret; none where no table says anything."""
    if not tables:
        return []
    mean = {name: fmean(regrets(table, [name])[0] for table in tables) for name in names}
    return sorted(mean, key=lambda name: (mean[name], name))


def start_in_group(spec: RunSpec, study: Study, lesson: Lesson | None) -> Start:
    """What a study starts with. lesson: of its run, for those that begin with it."""
    start = start_of(spec, study.customer.id)
    if study.group == FOLLOWER and lesson is not None:
        usual = points_to_try(study.space, Start(spec.portfolio))
        return replace(start, portfolio=(*usual, *lesson.portfolio))
    return start


def agreement_rule(spec: RunSpec, study: Study, lesson: Lesson | None) -> list[Rule]:
    """The rule that ends a follower early where the pilots' advice is the best it has; of other studies none."""
    if study.group != FOLLOWER or lesson is None:
        return []
    advised = {canonical(config) for config in (*lesson.portfolio, *lesson.best)}
    points = points_to_try(study.space, start_in_group(spec, study, lesson))
    numbers = {number for number, config in enumerate(points) if canonical(config) in advised}
    least = max(len(points), math.ceil(SHORTER * study.n_trials))
    return [in_front_of_ray(AgreementStopper)(numbers, least, 1.0 if spec.mode == "max" else -1.0)]


class AgreementStopper(StudyStopper):
    """Ends a study whose best trial is one that the pilots advise; who has found something else goes on by itself.

    advised: the numbers of those trials. least: after so many trials. sign: with which a greater score is better.
    """

    def __init__(self, advised: Collection[int], least: int, sign: float) -> None:
        self._advised, self._least, self._sign = advised, least, sign
        self._ended = 0
        self._best: tuple[float, int] | None = None

    def on_trial_end(self, trial_id: str, finished: bool, score: float | None) -> None:
        self._ended += 1
        if finished and score is not None and (self._best is None or self._sign * score > self._best[0]):
            self._best = self._sign * score, int(trial_id)

    def study_reason(self) -> str:
        if self._ended < self._least or self._best is None or self._best[1] not in self._advised:
            return ""
        return f"transfer: the best trial, {self._best[1]}, is one that other customers advise"
