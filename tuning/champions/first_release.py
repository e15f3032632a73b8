"""A run's winners as champions: each customer's own model, or an answer that knows less.

The latter where there is no model, and where the hold-out rows say that it is worse than a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.documents import Json
from tuning.basics.wording import value_text
from tuning.champions.answers import MOST_CUSTOMERS, Answer, Answers
from tuning.champions.champion import CONSTANT, HERE, NONE, OWN, POOL, Champion
from tuning.champions.releases import Releases
from tuning.errors import CustomerError, PlanError, RunError, UntrustedCodeError
from tuning.evaluation.fixed import FixedConfiguration, FixedMember
from tuning.models.model_files import saved_files
from tuning.notes import FitCode, from_row
from tuning.notes.fits import CONTRADICTIONS
from tuning.records.schema import MODEL, OK, POOLED, QUARANTINED, Config
from tuning.runs.leaderboard import model_name
from tuning.runs.plan_file import RecordedPlan, frozen_definition, read_plan
from tuning.runs.results import RunResult
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import customers_of

READERS = 8  # threads
_WITH_MODEL = (OK, POOLED)
_NEEDED = [
    *("customer", "study", "status", "reason", "trial", "family", "ensemble", "notes", "rows"),
    *("test_score", "test_error", "constant_test_score", "gain_over_constant", "model_path", "model_sha256"),
]
# What a mean loss of rows is, where the score tells it: of users' scores.
_LOSSES = {
    "rmse": lambda score: score**2,
    "mse": lambda score: score,
    "mae": lambda score: score,
    "log_loss": lambda score: score,
    "accuracy": lambda score: 1.0 - score,
}


@dataclass(frozen=True)
class RunChampions:
    """The champions that a run makes.

    result: of the run. releases: that they are for. number: of the release in which they begin. allow_code: as of
    `RunResult.model`.
    """

    result: RunResult
    releases: Releases
    number: int
    allow_code: bool = False

    def __iter__(self) -> Iterator[Champion]:
        """One for each customer. Answers that no run has are in place only after the last one.

        Raises:
            PlanError: the run has no models of customers.
            RunError: others work on it, or a model is not what it has written.
        """
        self._check()
        best = {row["customer"]: row for row in self._studies.select(_NEEDED).to_pylist()}
        for said in self.result.damaged.values():
            raise RunError(f"{said}. Bring it back from a copy, or resume the run; then promote it.")
        _check_models(self.result.directory, [row for row in best.values() if row["status"] in _WITH_MODEL])
        reasons = {name: self._why_less(best.get(name)) for name in self.result}
        lacking = [name for name, why in reasons.items() if why and name not in self._unread]
        answers = self._answers(lacking)
        for name, why in reasons.items():
            found = best.get(name)
            own = self._own(found) if found is not None and found["status"] in _WITH_MODEL else None
            if own is not None and not why:
                yield own
            elif name in self._unread:
                asked = partial(answers.of_unread, studies=self._studies)
                yield self._lesser(asked, self._nothing(name), why)
            else:
                yield self._lesser(answers.of, own or self._nothing(name), why)
        answers.flush()

    def of_others(self) -> Champion | None:
        """What answers customers that the run does not know; None where no rows of it can be read."""
        names = [name for name in self.result if name not in self._unread]
        answers = self._answers(names[:: -(-len(names) // MOST_CUSTOMERS)] if names else ())
        try:
            answer = answers.of_others(self._studies)
        except (CustomerError, UntrustedCodeError):
            return None
        answers.flush()
        return self._with(self._nothing(""), answer, "for customers that came later")

    @cached_property
    def _studies(self) -> pa.Table:
        return self.result.best_studies()

    @cached_property
    def _unread(self) -> set[str]:
        """Customers whose rows have ended workers: nobody reads them again."""
        ended = pc.equal(self._studies["status"], QUARANTINED)
        return set(self._studies["customer"].filter(ended).to_pylist())

    def _answers(self, customers: Sequence[str]) -> Answers:
        return Answers(self.result.directory, self._plan, customers, self.releases.directory, self.allow_code)

    def _check(self) -> None:
        definition, shown = frozen_definition(self.result.directory, self.result.term), self.result.directory.shown
        if definition.compare is not None:
            raise PlanError(f"{shown} compares algorithms, so it has no champions. Promote a run of one algorithm.")
        if definition.objective is not None:
            raise PlanError(f"{shown} tunes an objective, which makes no models. Promote a run that tunes models.")
        if not definition.save_models:
            raise PlanError(f"{shown} has saved no models (save_models: false). Promote a run that has.")
        if self.result.goes_on:
            raise RunError(f"{shown} is not finished: a process works on it. Promote it when that has ended.")

    def _why_less(self, found: Json | None) -> str:
        """Why a customer's own model is not its champion; empty where it is."""
        if found is None:
            return f"no model: {self.result.pending}"
        if found["status"] not in _WITH_MODEL:
            return f"no model: {_reason(found)}"
        gain = found["gain_over_constant"]
        if found["status"] == POOLED or found["family"] == CONSTANT or gain is None or not gain < 0:
            return ""
        own, nothing = (value_text(found[name]) for name in ("test_score", "constant_test_score"))
        return (
            f"its {model_name(found['family'], found['ensemble'])} is worse than a constant on the hold-out rows "
            f"({self._metric} {own}, {nothing} of a constant)"
        )

    def _own(self, found: Json) -> Champion:
        name = found["customer"]
        told = {*CONTRADICTIONS, FitCode.CONSTANT_MODEL}
        said = [str(note) for row in found["notes"] or () if (note := from_row(row)).code in told]
        pooled = found["status"] == POOLED
        why = f"the model of all customers: {_reason(found)}" if pooled else "the winner of its search"
        return Champion(
            customer=name,
            answer={POOLED: POOL, CONSTANT: CONSTANT}.get(found["family"], OWN),
            run=self.releases.reference(self.result.directory),
            study=found["study"],
            model_path=found["model_path"],
            model_sha256=found["model_sha256"],
            configuration=_configuration({MODEL: POOLED}) if pooled else self._configurations.get(name),
            rows=found["rows"],
            rows_digest=self._digests.get(name),
            newest=None,
            reason="; ".join([why, *said]),
            since=self.number,
            searched=self.number,
            rows_at_search=found["rows"],
            hold_out_loss=hold_out_loss(self._metric, found["test_score"]),
            hold_out_error=hold_out_error(self._metric, found["test_score"], found["test_error"]),
        )

    def _nothing(self, customer: str) -> Champion:
        digest = self._digests.get(customer)
        return Champion(
            customer, NONE, HERE, None, None, None, None, 0, digest, None, "", self.number, None, None, None
        )

    def _lesser(self, asked: Callable[[str], Answer], known: Champion, why: str) -> Champion:
        """The answer that knows less; what is known already where that cannot be had either. asked: for a customer."""
        try:
            answer = asked(known.customer)
        except CustomerError as error:
            return replace(known, reason=f"{why}; there is no constant either: {str(error).rstrip('.')}")
        return self._with(known, answer, why)

    def _with(self, known: Champion, answer: Answer, why: str) -> Champion:
        return replace(
            known,
            answer=answer.kind,
            run=HERE,
            model_path=answer.model.path,
            model_sha256=answer.model.sha256,
            configuration=_configuration(answer.config),
            rows=answer.rows,
            reason=f"{answer.what}: {why}",
            hold_out_loss=None,
        )

    @cached_property
    def _metric(self) -> str:
        return self.result.board().metric

    @cached_property
    def _plan(self) -> RecordedPlan:
        return read_plan(self.result.directory, self.result.term)

    @cached_property
    def _digests(self) -> dict[str, str]:
        """What customers' rows were known by when the run was planned."""
        found: dict[str, str] = {}
        for customers in map(customers_of, (self._plan.ended, self._plan.studies)):
            pairs = zip(customers.texts("id").to_pylist(), customers.texts("digest").to_pylist(), strict=True)
            found.update((name, digest) for name, digest in pairs if digest)
        return found

    @cached_property
    def _configurations(self) -> dict[str, str]:
        return {name: fixed.to_json() for name, fixed in self.result.fixed_configurations().items()}


def _check_models(directory: RunDirectory, rows: Sequence[Json]) -> None:
    """`RunError` for a model that is not what the run has written."""

    def check(row: Json) -> None:
        for _ in saved_files(directory, row["model_path"], row["model_sha256"]):
            pass  # each one's digest is checked

    with ThreadPoolExecutor(READERS) as pool:
        for _ in pool.map(check, sorted(rows, key=lambda row: str(row["model_path"]))):
            pass


def _configuration(config: Config) -> str:
    """Of a single member that takes no seed."""
    return FixedConfiguration((FixedMember(config, 0),)).to_json()


def hold_out_loss(metric: str, score: float | None) -> float | None:
    """The mean loss of a hold-out row that a score tells, as losses of rows are compared; None where it does not.

    metric, score: as users read them.
    """
    found = _LOSSES.get(metric)
    return None if found is None or score is None or not np.isfinite(score) else found(score)


def hold_out_error(metric: str, score: float | None, error: float | None) -> float | None:
    """The standard error of that loss; None where it is not known.

    metric, score, error: as users read them.
    """
    if metric not in _LOSSES or score is None or error is None or not np.isfinite([score, error]).all():
        return None
    return 2.0 * abs(score) * error if metric == "rmse" else error


def _reason(found: Json) -> str:
    return str(from_row(found["reason"])).rstrip(".")
