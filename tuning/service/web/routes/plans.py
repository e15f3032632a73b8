"""Plans: what a definition would run, without starting anything."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from tuning.service.admission import admit
from tuning.service.plans import AskedPlan
from tuning.service.web import definitions
from tuning.service.web.auth import Asking, ServiceOf
from tuning.service.web.definitions import IdempotencyKey, SentDefinition
from tuning.service.web.messages import WITHOUT_NUL, PlanMessage, moment

router = APIRouter(tags=["plans"])
PlanId = Annotated[str, Path(description="The plan's id.", max_length=64, pattern=WITHOUT_NUL)]


@router.post(
    "/api/v1/plans",
    status_code=202,
    openapi_extra=definitions.BODY,
    responses={202: {"headers": definitions.LOCATION, "links": definitions.PLAN_LINKS}},
)
def ask_plan(
    service: ServiceOf, holder: Asking, sent: SentDefinition, response: Response, idempotency_key: IdempotencyKey = None
) -> PlanMessage:
    """Plan a definition. The answer says where the plan will be, since making it reads data."""
    now = service.clock()
    admitted = admit(sent.values, holder.team, service.settings, key=idempotency_key, digest=sent.digest, now=now)
    asked = service.plans.ask(admitted.submission, now)
    response.headers["Location"] = f"/api/v1/plans/{asked.id}"
    return plan_message(asked)


@router.get("/api/v1/plans/{plan}")
def show_plan(service: ServiceOf, holder: Asking, plan: PlanId) -> PlanMessage:
    """A plan, or why there is none, or that it is not made yet."""
    return plan_message(service.plans.get(plan, holder.team))


def plan_message(plan: AskedPlan) -> PlanMessage:
    return PlanMessage(
        id=plan.id,
        state=plan.state,
        result=plan.result,
        problem=plan.problem,
        code=plan.refusal.get("code"),
        values=plan.refusal.get("values", {}),
        at=moment(plan.at),
        links={"self": f"/api/v1/plans/{plan.id}"},
    )
