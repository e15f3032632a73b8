"""Plans: what a definition would run, without starting anything."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from tuning.service.admission import admit
from tuning.service.database.tokens import TokenHolder
from tuning.service.plans import AskedPlan
from tuning.service.service import Service
from tuning.service.web import definitions
from tuning.service.web.auth import Asking, ServiceOf
from tuning.service.web.definitions import IdempotencyKey, SentDefinition, SentDocument
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
    plan = plan_document(service, holder, sent, idempotency_key)
    response.headers["Location"] = plan.links["self"]
    return plan


def plan_document(
    service: Service, holder: TokenHolder, sent: SentDocument, key: str | None = None, typed: str | None = None
) -> PlanMessage:
    """Begin the plan of a document; the same plan for the same key. typed: the document as somebody typed it."""
    now = service.clock()
    admitted = admit(sent.values, holder.team, service.settings, key=key, digest=sent.digest, now=now)
    return show_plan(service.plans.ask(admitted.submission, now, typed))


@router.get("/api/v1/plans/{plan}")
def show_plan(found: TeamPlan) -> PlanMessage:
    """A plan, or why there is none, or that it is not made yet."""
    refusal = {"code": found.refusal.get("code"), "values": found.refusal.get("values", {})}
    return PlanMessage.model_validate({**vars(found), **refusal, "links": {"self": f"/api/v1/plans/{found.id}"}})
