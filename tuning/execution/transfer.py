"""What customers teach each other in one run: learned once, kept in the run directory, the same for all.

The pilots have ended when the first of the others begins (`tuning.execution.shard_queue`). Of them only configurations
and regrets are looked at. Costs have no say: measured again, they would be others, and so would the results.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

import numpy as np

from schedulers.ray_classes import in_front_of_ray
from schedulers.stopping.rule import StudyStopper
from tuning.definition.run_spec import RunSpec
from tuning.errors import StorageError
from tuning.planning.portfolios.learning import Table, learn, regrets
from tuning.planning.portfolios.sources import Portfolio, tables_of
from tuning.records.ownership import begun_term
from tuning.records.parts import accepted, read_studies, read_trials
from tuning.records.schema import TrialRecord, canonical
from tuning.runs.plan_file import read_group
from tuning.runs.transfer_gain import ENDED_BY
from tuning.storage.run_directory import RunDirectory
from tuning.study.interfaces import Rule
from tuning.study.study import FOLLOWER, PILOT, Study
from tuning.study.warm_start import Start, points_to_try, start_of

FILE = "lesson.json"
SHARE, FEWEST_POINTS = 3, 3  # a study begins with a third of its trials, at least so many
FEWEST_TABLES = 3
UNLIKE = 0.1  # of the pilots, those least like the others: who is less like them than these goes on by itself
NEVER = 2.0  # no ranks agree by so much


@dataclass(frozen=True)
class Lesson:
    """What the pilots taught.

    Attributes:
        portfolio: configurations to begin with, the baseline first.
        regrets: of each, the pilots' mean.
        agreement: the least rank correlation with these regrets by which the portfolio fits a customer.
        tables: how many pilots had something to say.
    """

    portfolio: Portfolio
    regrets: tuple[float, ...]
    agreement: float
    tables: int


def find_lesson(directory: RunDirectory, spec: RunSpec) -> Lesson:
    """The run's lesson, which the first who asks for it draws and writes down.

    Raises:
        StorageError: the pilots have not ended, or the file is not what was written.
    """
    if not directory.exists(FILE):
        content = json.dumps(asdict(draw_lesson(spec, _of_pilots(directory)))).encode()
        with suppress(FileExistsError):  # another worker was quicker
            directory.claim(FILE, content + b"\n" + _digest(content))
    try:
        content, _, digest = directory.read(FILE).rpartition(b"\n")
        if digest != _digest(content):
            raise ValueError("it is not what the run has written, its SHA-256 differs")
        values = json.loads(content)
        return Lesson(tuple(values["portfolio"]), tuple(values["regrets"]), values["agreement"], values["tables"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{directory.display(FILE)} cannot be read: {error}. Start a new run.") from error


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _of_pilots(directory: RunDirectory) -> list[TrialRecord]:
    term = begun_term(directory)
    pilots, names = read_group(directory, term, PILOT), accepted(directory, term)
    if left := pilots - {record.study for record in read_studies(directory, names)}:
        raise StorageError(f"{len(left)} of {len(pilots)} customers to learn from have no result yet: {min(left)!r}, …")
    return [record for record in read_trials(directory, names) if record.study in pilots]


def draw_lesson(spec: RunSpec, records: Sequence[TrialRecord]) -> Lesson:
    """What the trials of the pilots teach.

    One odd pilot spoils nothing: each has one say in a mean of regrets between 0 and 1.
    """
    everything = list(tables_of(records, by_cost=False).values())
    times = Counter(name for table in everything for name in table)
    # What few have finished says nothing of the others: mostly what their own searchers proposed.
    tables = [{name: table[name] for name in table if 2 * times[name] >= len(everything)} for table in everything]
    first = _baseline(spec)
    size = max(FEWEST_POINTS, spec.definition.trials // SHARE)
    known = sorted({name for table in tables for name in table})
    matrix = _matrix(tables, known)
    if len(matrix) < FEWEST_TABLES:
        return Lesson((first,), (0.0,), NEVER, len(matrix))
    # Where a few leave no regret, further good ones show whether a customer ranks them alike.
    good = [known[place] for place in np.argsort(matrix.sum(axis=0), kind="stable")]
    names = list(dict.fromkeys([canonical(first), *learn(tables, size), *good]))[: size + 1]
    found = _matrix(tables, names)
    portfolio = tuple(json.loads(name) for name in names)
    others = (found.sum(axis=0) - found) / (len(found) - 1)
    agreements = [rank_agreement(own, mean) for own, mean in zip(found, others, strict=True)]
    mean = found.mean(axis=0).tolist()
    return Lesson(portfolio, tuple(mean), max(0.0, float(np.quantile(agreements, UNLIKE))), len(found))


def _baseline(spec: RunSpec) -> dict[str, object]:
    return dict(points_to_try(spec.space, Start(spec.portfolio))[0])


def _matrix(tables: Sequence[Table], names: Sequence[str]) -> np.ndarray:
    """Regrets by pilot and configuration, of the pilots whose trials differ in score."""
    rows = [regrets(table, names) for table in tables if len({cell.loss for cell in table.values()}) > 1]
    return np.array(sorted(rows))


def rank_agreement(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation; 0 where all values of one side are equal."""
    from scipy.stats import rankdata

    ranks = [rankdata(values) for values in (one, other)]
    if any(np.ptp(each) == 0 for each in ranks):
        return 0.0
    return float(np.corrcoef(*ranks)[0, 1])


def start_in_group(spec: RunSpec, study: Study, lesson: Lesson | None) -> Start:
    """What a study starts with. lesson: of its run, for those that begin with it."""
    start = start_of(spec, study.customer.id)
    if study.group == PILOT:
        return replace(start, portfolio=(_baseline(spec), *spec.portfolio, *spec.pilot_points))
    if study.group == FOLLOWER and lesson is not None:
        return replace(start, portfolio=(*lesson.portfolio, *spec.portfolio))
    return start


def agreement_rule(spec: RunSpec, study: Study, lesson: Lesson | None) -> list[Rule]:
    """The rule that ends a study after what it was taught, if that fits its customer; else it goes on by itself."""
    if study.group != FOLLOWER or lesson is None:
        return []
    tried = [canonical(config) for config in points_to_try(study.space, start_in_group(spec, study, lesson))]
    numbers = [tried.index(canonical(config)) for config in lesson.portfolio]
    return [in_front_of_ray(AgreementStopper)(lesson, numbers, 1.0 if spec.mode == "min" else -1.0)]


class AgreementStopper(StudyStopper):
    """Ends a study when the configurations that it was taught rank on its customer as they did on the pilots.

    numbers: the trials that try them. sign: by which a score becomes a loss.
    """

    def __init__(self, lesson: Lesson, numbers: Sequence[int], sign: float) -> None:
        self._lesson, self._numbers, self._sign = lesson, numbers, sign
        self._losses: dict[int, tuple[bool, float]] = {}
        self._reason: str | None = None

    def on_trial_end(self, trial_id: str, finished: bool, score: float | None) -> None:
        """What was stopped early is worse than what was not, and a failure is worse still."""
        self._losses[int(trial_id)] = (not finished, math.inf if score is None else self._sign * score)

    def study_reason(self) -> str:
        if self._reason is None and all(number in self._losses for number in self._numbers):
            self._reason = self._judged()
        return self._reason or ""

    def _judged(self) -> str:
        losses = [self._losses[number] for number in self._numbers]
        order = {loss: rank for rank, loss in enumerate(sorted(set(losses)))}
        agreement = rank_agreement([order[loss] for loss in losses], self._lesson.regrets)
        if agreement < self._lesson.agreement or all(stopped for stopped, _ in losses):
            return ""
        return f"{ENDED_BY} {self._lesson.tables} other customers taught fits (ranks agree by {agreement:.2f})"
