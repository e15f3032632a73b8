"""A run's winners as champions: each customer's own model, or an answer that knows less.

The latter where there is no model, and where the hold-out rows say that it is worse than a constant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.documents import Json
from tuning.errors import CustomerError, PlanError, RunError, UntrustedCodeError
from tuning.models.model_files import saved_files
from tuning.notes import FitCode, Note, ServingCode, from_row
from tuning.records.schema import MODEL, OK, POOLED, QUARANTINED
from tuning.runs.leaderboard import model_name
from tuning.runs.plan_file import RecordedPlan, frozen_definition, read_plan
from tuning.runs.results import RunResult
from tuning.serving.answers import MOST_CUSTOMERS, Answers, configuration_text
from tuning.serving.champion import CONSTANT, HERE, NONE, OWN, POOL, Champion
from tuning.serving.releases import Releases
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import customers_of

READERS = 8  # threads
_WITH_MODEL = (OK, POOLED)
_NEEDED = [
    *("customer", "study", "status", "reason", "family", "ensemble", "notes", "rows", "test_score"),
    *("constant_test_score", "gain_over_constant", "model_path", "model_sha256"),
]
_TOLD = {FitCode.CONTRADICTED, FitCode.CONSTANT_MODEL}  # notes of a run that a champion keeps


@dataclass(frozen=True)
class RunWinners:
    """The champions that a run makes.

    result: of the run. releases: that they are for. number: of the release in which they begin. allow_code: as of
    `RunResult.model`.
    """

    result: RunResult
    releases: Releases
    number: int
    allow_code: bool = False

    def of(self, names: Collection[str]) -> Iterator[Champion]:
        """Yield one for each of these customers. Answers that no run has are in place only after the last one.

        Raises:
            PlanError: the run has no models of customers.
            RunError: others work on it, or a model is not what it has written.
        """
        self._check()
        best = {row["customer"]: row for row in self._studies.select(_NEEDED).to_pylist() if row["customer"] in names}
        for said in self.result.damaged.values():
            raise RunError(f"{said}. Bring it back from a copy, or resume the run; then promote it.")
        _check_models(self.result.directory, [row for row in best.values() if row["status"] in _WITH_MODEL])
        reasons = {name: self._why_less(best.get(name)) for name in names}
        answers = self._answers([name for name, why in reasons.items() if why and name not in self._unread])
        for name, why in reasons.items():
            found = best.get(name)
            own = self._own(found) if found is not None and found["status"] in _WITH_MODEL else None
            if own is not None and not why:
                yield own
                continue
            known = own or self._nothing(name)
            try:
                answer = answers.of_unread(name) if name in self._unread else answers.of(name)
            except CustomerError as error:
                yield replace(known, reason=(*why, ServingCode.NO_CONSTANT(why=error.note)))
            else:
                yield _with(known, answer, why)
        answers.flush()

    def of_others(self) -> Champion | None:
        """Return what answers customers that the run does not know; None where no rows of it can be read."""
        names = [name for name in self.result if name not in self._unread]
        answers = self._answers(names[:: -(-len(names) // MOST_CUSTOMERS)] if names else ())
        try:
            answer = answers.of_others()
        except (CustomerError, UntrustedCodeError):
            return None
        answers.flush()
        return _with(self._nothing(""), answer, (ServingCode.FOR_LATER_CUSTOMERS(),))

    @cached_property
    def _studies(self) -> pa.Table:
        return self.result.best_studies()

    @cached_property
    def _unread(self) -> set[str]:
        """Customers whose rows have ended workers: nobody reads them again."""
        ended = pc.equal(self._studies["status"], QUARANTINED)
        return set(self._studies["customer"].filter(ended).to_pylist())

    def _answers(self, customers: Sequence[str]) -> Answers:
        root = self.releases.directory
        return Answers(self.result.directory, self._plan, self._studies, customers, root, self.allow_code)

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

    def _why_less(self, found: Json | None) -> tuple[Note, ...]:
        """Return why a customer's own model is not its champion; empty where it is."""
        if found is None:
            return (ServingCode.NO_MODEL(why=self.result.pending),)
        if found["status"] not in _WITH_MODEL:
            return (ServingCode.NO_MODEL(why=from_row(found["reason"])),)
        gain = found["gain_over_constant"]
        if found["status"] == POOLED or found["family"] == CONSTANT or gain is None or not gain < 0:
            return ()
        return (
            ServingCode.WORSE_THAN_CONSTANT(
                model=model_name(found["family"], found["ensemble"]),
                metric=self.metric,
                score=found["test_score"],
                constant_score=found["constant_test_score"],
            ),
        )

    def _own(self, found: Json) -> Champion:
        name = found["customer"]
        pooled = found["status"] == POOLED
        why = (ServingCode.POOL_ANSWER(), from_row(found["reason"])) if pooled else (ServingCode.WINNER(),)
        learned = self.learned.get(name, {})
        return Champion(
            customer=name,
            answer={POOLED: POOL, CONSTANT: CONSTANT}.get(found["family"], OWN),
            run=self.releases.reference(self.result.directory),
            study=found["study"],
            model_path=found["model_path"],
            model_sha256=found["model_sha256"],
            configuration=configuration_text({MODEL: POOLED}) if pooled else self._configurations.get(name),
            rows=found["rows"],
            since=self.number,
            **learned,
            searched=self.number,
            searched_size=learned.get("size"),
            score=found["test_score"],
            reason=(*why, *(note for note in map(from_row, found["notes"] or ()) if note.code in _TOLD)),
        )

    def _nothing(self, customer: str) -> Champion:
        learned = self.learned.get(customer, {})
        return Champion(customer, NONE, HERE, None, None, None, None, 0, self.number, **learned)

    @cached_property
    def metric(self) -> str:
        """Of the run, as users read it."""
        return self.result.board().metric

    @cached_property
    def _plan(self) -> RecordedPlan:
        return read_plan(self.result.directory, self.result.term)

    @cached_property
    def learned(self) -> dict[str, Json]:
        """What customers' rows were known by when the run was planned, as fields of `Champion`."""
        found: dict[str, Json] = {}
        for customers in map(customers_of, (self._plan.ended, self._plan.studies)):
            columns = [customers.texts(name).to_pylist() for name in ("id", "stamp", "digest")]
            for name, stamp, digest, size in zip(*columns, customers.numbers("size").tolist(), strict=True):
                found[name] = {"stamp": stamp or "", "digest": digest or "", "size": size}
        return found

    @cached_property
    def _configurations(self) -> dict[str, str]:
        return {name: fixed.to_json() for name, fixed in self.result.fixed_configurations().items()}


def _with(known: Champion, answer: Json, why: tuple[Note, ...]) -> Champion:
    """Return a champion that gives an answer which knows less."""
    return replace(known, **{**answer, "score": None, "reason": (*answer["reason"], *why)})


def _check_models(directory: RunDirectory, rows: Sequence[Json]) -> None:
    """Raise `RunError` for a model that is not what the run has written."""

    def check(row: Json) -> None:
        for _ in saved_files(directory, row["model_path"], row["model_sha256"]):
            pass  # each one's digest is checked

    with ThreadPoolExecutor(READERS) as pool:
        for _ in pool.map(check, sorted(rows, key=lambda row: str(row["model_path"]))):
            pass
