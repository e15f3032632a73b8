"""Plans that are asked for: each is made by a child process, since a plan reads data."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from tuning.basics.documents import Json
from tuning.errors import MissingError, QuotaError, TuningError, UnavailableError, failure
from tuning.service.admission import check_again
from tuning.service.children import ChildLimits, Children, Kind, roots_variable
from tuning.service.database.connection import Database
from tuning.service.database.runs import Submission, new_id, remember, submitted_before
from tuning.service.database.tables import PLANS
from tuning.service.settings import GB, ServiceSettings

logger = logging.getLogger(__name__)

KIND = Kind("plans", at_once=2, most_open=20)
KEPT_S = 7 * 24 * 3600.0


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
    """The plans of a database. slots: how many the server has; None while they are not known."""

    def __init__(
        self, database: Database, settings: ServiceSettings, children: Children, slots: Callable[[], int | None]
    ) -> None:
        self._database, self._settings, self._children, self._slots = database, settings, children, slots

    def ask(self, submission: Submission, now: float, typed: str | None = None) -> AskedPlan:
        """Begin a plan; the same one for the same key. `QuotaError` for a team that has many open ones.

        typed: the definition as somebody typed it, which is kept for them.
        """
        key = None if submission.key is None else f"plan {submission.key}"[:255]
        with self._database.write() as connection:
            earlier = submitted_before(connection, submission.team, key, submission.digest)
            if earlier is not None:
                return _one(connection, earlier, submission.team)
            connection.execute(delete(PLANS).where(PLANS.c.at < now - KEPT_S))
            plan = new_id()
            values = {"id": plan, "team": submission.team, "state": PlanState.WAITING, "at": now, "typed": typed}
            connection.execute(insert(PLANS).values(definition=dict(submission.definition), **values))
            remember(connection, submission.team, key, submission.digest, plan, now)
            asked = _one(connection, plan, submission.team)
            self._begin(asked)  # which waits for its turn to write
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
            with suppress(QuotaError):
                self._begin(plan)

    def _begin(self, plan: AskedPlan) -> None:
        self._children.submit(KIND, plan.team, lambda: self._make(plan))

    def _make(self, plan: AskedPlan) -> None:
        try:
            self._set(plan, state=PlanState.PLANNING)
            try:
                result = self._result(plan)
            except UnavailableError:
                raise
            except Exception as error:
                if not isinstance(error, TuningError):
                    logger.exception("plan %s", plan.id)
                told = self._settings.names(plan.team).document(failure(error))
                refusal = {name: told[name] for name in ("code", "values")}
                self._set(plan, state=PlanState.REFUSED, problem=told["reason"], result=refusal)
            else:
                self._set(plan, state=PlanState.PLANNED, result=result)
        except TuningError as error:
            logger.error("plan %s is left for the next start: %s", plan.id, error)

    def _result(self, plan: AskedPlan) -> Json:
        check_again(plan.definition, plan.team, self._settings)  # it may be one that an earlier server has left
        total = self._slots()
        result = self._children.run(
            "tuning.service.child:plan",
            {"definition": {**({} if total is None else {"slots": total}), **plan.definition}},
            environment=roots_variable(self._settings, plan.team),
            limits=ChildLimits(self._settings.plan_seconds, int(self._settings.plan_memory_gb * GB)),
            names=self._settings.names(plan.team),
        )
        return cast(Json, result)

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
