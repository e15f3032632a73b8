"""Plans that are asked for: each is made by a child process, since a plan reads data."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, RowMapping, delete, func, insert, select, update

from search_spaces.yaml_text import dump_yaml
from tuning.basics.documents import Json
from tuning.basics.wording import amount
from tuning.errors import MissingError, QuotaError, TuningError, code_of, failure
from tuning.service.admission import check_again
from tuning.service.children import ChildEnd, ChildLimits, roots_variable, run_child
from tuning.service.database.connection import Database
from tuning.service.database.runs import Submission, new_id, remember, submitted_before
from tuning.service.database.tables import PLANS
from tuning.service.settings import GB, ServiceSettings

logger = logging.getLogger(__name__)

AT_ONCE = 2
MOST_OPEN = 20  # of a team
KEPT_S = 7 * 24 * 3600.0
DEFINITION = "definition.yaml"


class PlanState(StrEnum):
    """Where a plan stands. refused: there is none, for the reason in `problem`."""

    WAITING = "waiting"
    PLANNING = "planning"
    PLANNED = "planned"
    REFUSED = "refused"


OPEN = (PlanState.WAITING, PlanState.PLANNING)


@dataclass(frozen=True)
class AskedPlan:
    """A row of `tables.PLANS`. refusal: `code` and `values` of the error that `problem` tells."""

    id: str
    team: str
    state: PlanState
    definition: Json
    result: Json | None
    problem: str | None
    at: float
    refusal: Json
    typed: str | None = None


class Plans:
    """The plans of a database, and the threads that wait for their child processes.

    slots: how many the server has; None while they are not known.
    """

    def __init__(self, database: Database, settings: ServiceSettings, slots: Callable[[], int | None]) -> None:
        self._database, self._settings, self._slots = database, settings, slots
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="plans")

    def ask(self, submission: Submission, now: float, typed: str | None = None) -> AskedPlan:
        """Begin a plan; the same one for the same key. `QuotaError` for a team that has many open ones.

        typed: the definition as somebody typed it, which is kept for them.
        """
        key = None if submission.key is None else f"plan {submission.key}"[:255]
        with self._database.write() as connection:
            earlier = submitted_before(connection, submission.team, key, submission.digest)
            if earlier is not None:
                return _one(connection, earlier, submission.team)
            of_team = (PLANS.c.team == submission.team) & PLANS.c.state.in_(OPEN)
            waiting = connection.execute(select(func.count()).where(of_team)).scalar_one()
            if waiting >= MOST_OPEN:
                raise QuotaError(
                    f"{amount(waiting, 'plan')} of your team are not made yet, of {MOST_OPEN} at once.", later=10.0
                )
            connection.execute(delete(PLANS).where(PLANS.c.at < now - KEPT_S))
            plan = new_id()
            values = {"id": plan, "team": submission.team, "state": PlanState.WAITING, "at": now, "typed": typed}
            connection.execute(insert(PLANS).values(definition=dict(submission.definition), **values))
            remember(connection, submission.team, key, submission.digest, plan, now)
            asked = _one(connection, plan, submission.team)
        self._threads.submit(self._make, asked)
        return asked

    def get(self, plan: str, team: str) -> AskedPlan:
        """`MissingError` for another team's as for one that is not there."""
        with self._database.read() as connection:
            return _one(connection, plan, team)

    def go_on(self) -> None:
        """Make the plans that an earlier server has left unmade."""
        with self._database.read() as connection:
            unmade = select(PLANS).where(PLANS.c.state.in_(OPEN)).order_by(PLANS.c.at)
            left = [_plan(row) for row in connection.execute(unmade).mappings()]
        for plan in left:
            self._threads.submit(self._make, plan)

    def close(self) -> None:
        """Make no further ones; those that wait are made by the next server."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _make(self, plan: AskedPlan) -> None:
        names = self._settings.names(plan.team)
        try:
            self._set(plan, state=PlanState.PLANNING)
            try:
                end = self._ended(plan)
                told: Json = {"reason": end.reason, **end.failure} if end.code else json.loads(end.output)
                state = PlanState.REFUSED if end.code else PlanState.PLANNED
            except TuningError as error:
                told, state = failure(error), PlanState.REFUSED
            except Exception as error:
                logger.exception("plan %s", plan.id)
                told = {"reason": "The plan could not be made; the server's log says why.", "code": code_of(error)}
                state = PlanState.REFUSED
            told = names.document(told)
            if state is PlanState.REFUSED:
                refusal = {"code": told.get("code"), "values": told.get("values", {})}
                self._set(plan, state=state, problem=told["reason"], result=refusal)
            else:
                self._set(plan, state=state, result=told)
        except TuningError as error:
            logger.error("plan %s is left for the next start: %s", plan.id, error)

    def _ended(self, plan: AskedPlan) -> ChildEnd:
        """The child process that has made a plan, or has said why there is none."""
        check_again(plan.definition, plan.team, self._settings)  # it may be one that an earlier server has left
        folder = self._settings.work / "plans" / plan.id
        folder.mkdir(parents=True, exist_ok=True)
        try:
            (folder / DEFINITION).write_text(dump_yaml(dict(plan.definition)), encoding="utf-8")
            arguments = ["plan", DEFINITION, "--output", "json"]
            total = self._slots()
            if total is not None and "slots" not in plan.definition:
                arguments += ["--slots", str(total)]
            limits = ChildLimits(self._settings.plan_seconds, int(self._settings.plan_memory_gb * GB))
            environment = roots_variable(self._settings, plan.team)
            return run_child("tuning.cli", arguments, environment, limits, folder=folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _set(self, plan: AskedPlan, **values: object) -> None:
        with self._database.write() as connection:
            connection.execute(update(PLANS).where(PLANS.c.id == plan.id).values(values))


def _one(connection: Connection, plan: str, team: str) -> AskedPlan:
    found = connection.execute(select(PLANS).where(PLANS.c.id == plan, PLANS.c.team == team)).mappings().first()
    if found is None:
        raise MissingError(f"there is no plan {plan!r}. Ask for one by POST /api/v1/plans; it is kept for a week.")
    return _plan(found)


def _plan(row: RowMapping) -> AskedPlan:
    state, found = PlanState(row["state"]), row["result"]
    result, refusal = (None, found or {}) if state is PlanState.REFUSED else (found, {})
    return AskedPlan(**{**row, "state": state, "result": result, "refusal": refusal})
