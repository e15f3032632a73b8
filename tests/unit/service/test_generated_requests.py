"""The OpenAPI document holds: no generated request, allowed by it or not, is answered otherwise than it says."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle

import pytest
from builders import write_customers
from generated_requests import GeneratedRequests
from service_app import bearer, finished, only_tables_here, run_in

from tuning import TuneRunner
from tuning.service.children import Children
from tuning.service.service import Service
from tuning.service.settings import Quotas, Team
from tuning.service.states import RunState
from tuning.service.web.app import create_app

RESULTS = ("leaderboard", "customer", "report")


@pytest.fixture
def generated(
    service: Service, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> GeneratedRequests:
    """A service without children, whose runs are not counted."""
    folder = tmp_path_factory.mktemp("generated")
    write_customers(folder / "data", 2)
    given = {"data": str(folder / "data" / "*.csv"), "target": "y", "metric": "rmse", "models": ["ridge"], "trials": 1}
    result = TuneRunner(**given, mlflow=False).run(folder / "run", in_process=True, progress=False)
    monkeypatch.setattr(Children, "run", only_tables_here)
    many = Team(quotas=Quotas(queued_runs=None))
    settings = service.settings.model_copy(update={"teams": {"churn": many}})
    uncounted = replace(service, settings=settings)
    run = finished(uncounted, result.directory.uri)
    states = cycle(RunState)
    return GeneratedRequests(
        create_app(uncounted), bearer(uncounted), run, "c0000", lambda: run_in(uncounted, next(states))
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("singly", "chains", "cases"),
    [
        (0, 15, 1_200),
        pytest.param(150, 500, 10_000, marks=[pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(3600)]),
    ],
)
def test_whatever_is_sent_is_answered_as_the_document_says(
    generated: GeneratedRequests, singly: int, chains: int, cases: int
) -> None:
    seed = 2  # whose first chains lead to a plan
    generated.ask_bounds()
    if singly:
        generated.ask_singly(singly, seed)
    while generated.cases < cases or (_unanswered(generated) and generated.cases < 5 * cases):
        generated.ask_linked(chains, seed)
        seed += 1
    print(generated.cases, "requests:", *(f"{route} {status}: {n}" for (route, status), n in generated.answers.items()))
    assert not generated.wrong, "\n\n".join(generated.wrong.values())
    assert {status for _, status in generated.answers if status >= 500} == set()
    assert _unanswered(generated) == []  # all have answered, and not only refused


def _unanswered(generated: GeneratedRequests) -> list[tuple[str, int]]:
    """The routes that lead to a run, which have not succeeded yet: ids are random, so chains differ."""
    wanted = [(f"GET /api/v1/runs/{{run}}/{route}", 200) for route in RESULTS]
    wanted += [("GET /api/v1/runs/{run}", 200), ("GET /api/v1/plans/{plan}", 200)]
    wanted += [(f"POST /api/v1/runs/{{run}}/{changed}", 202) for changed in ("stop", "cancel", "resume")]
    return [each for each in wanted if not generated.answers[each]]
