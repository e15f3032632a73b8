"""Plans: what a definition would run, without starting anything."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from tuning.service.admission import admit
from tuning.service.plans import AskedPlan
from tuning.service.web import definitions
from tuning.service.web.auth import Asking, ServiceOf
from tuning.service.web.definitions import IdempotencyKey, SentDefinition
from tuning.service.web.messages import WITHOUT_NUL, PlanMessage

router = APIRouter(tags=["plans"])


def team_plan(
    service: ServiceOf,
    holder: Asking,
    plan: Annotated[str, Path(description="The plan's id.", max_length=64, pattern=WITHOUT_NUL)],
) -> AskedPlan:
    """Return the plan that a path names; 404 where the team has none of that id."""
    return service.plans.get(plan, holder.team)


TeamPlan = Annotated[AskedPlan, Depends(team_plan)]


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
    plan = show_plan(service.plans.ask(admitted.submission, now, sent.typed))
    response.headers["Location"] = plan.links["self"]
    return plan


@router.get("/api/v1/plans/{plan}")
def show_plan(found: TeamPlan) -> PlanMessage:
    """A plan, or why there is none, or that it is not made yet."""
    refusal = {"code": found.refusal.get("code"), "values": found.refusal.get("values", {})}
    return PlanMessage.model_validate({**vars(found), **refusal, "links": {"self": f"/api/v1/plans/{found.id}"}})
