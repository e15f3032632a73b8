"""Requests that schemathesis makes of the OpenAPI document, and what is wrong with the answers.

What a request costs is mostly its making: at the bounds of what a schema allows 2 ms, drawn ones 10 to 30 ms; to answer
and check it takes 4 ms. So the bounds are most of what `make test` sends, of runs in every state.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping

import hypothesis
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase
from hypothesis.errors import FlakyStrategyDefinition, Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup

#: No schema says which columns and slots there are, or what keys mean together: 422 is right for some good data.
BEYOND_A_SCHEMA = (
    "POST /api/v1/runs",
    "POST /api/v1/plans",
    "GET /api/v1/runs",
    "GET /api/v1/runs/{run}/leaderboard",
    "POST /api/v1/runs/{run}/predictions",
    "POST /api/v1/champions/{name}/predictions",
    "POST /api/v1/runs/{run}/resume",
)
TAKEN = ["2xx", "403", "404", "409", "422", "429"]
CONFIG = {
    # It asks once or twice more without a valid token, for which test_who_may_ask.py has each route.
    "checks": {"ignored_auth": {"enabled": False}},
    "operations": [
        {"include-name": name, "checks": {"positive_data_acceptance": {"expected-statuses": TAKEN}}}
        for name in BEYOND_A_SCHEMA
    ]
    # A list of one name, which the schema does not allow, is sent as that name; and no header is one too many.
    + [
        {"include-name": name, "checks": {"negative_data_rejection": {"enabled": False}}}
        for name in ("GET /api/v1/runs", "GET /api/v1/runs/{run}/events")
    ],
}
STEPS = 12  # of one chain of linked requests


class GeneratedRequests:
    """An application that is asked whatever its OpenAPI document allows, and what it does not.

    headers: of a valid token. run: the id of one that has results. customer: one of it. any_run: the id of a new run,
    each time in another state.

    Attributes:
        answers: how often each route has answered with each status.
        wrong: what the checks have found, with a request that shows it.
    """

    def __init__(
        self, app: FastAPI, headers: Mapping[str, str], run: str, customer: str, any_run: Callable[[], str]
    ) -> None:
        config = schemathesis.Config.from_dict(CONFIG)
        self.schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, config=config, headers=headers)
        self._headers, self._run, self._customer, self._any_run = dict(headers), run, customer, any_run
        self.answers = Counter[tuple[str, int]]()
        self.wrong: dict[str, str] = {}

    @property
    def cases(self) -> int:
        return self.answers.total()

    def ask_bounds(self) -> None:
        """Each bound of what a schema allows, and a step beyond it: of nothing that is there, and of runs."""
        for choose in (lambda case: True, self._choose_results, self._choose_any_run):
            for found in self.schema.get_all_operations():
                operation = found.ok()
                config = self.schema.config.generation_for(operation=operation, phase="coverage")
                for case in self.schema.iter_coverage_cases(
                    operation, generation_modes=list(GenerationMode), generation_config=config
                ):
                    if choose(case):
                        self._check(case, case.call(headers=self._headers))

    def ask_singly(self, of_each: int, seed: int) -> None:
        """So many requests of each route that its schema allows, and as many that it does not."""
        for found in self.schema.get_all_operations():
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                with contextlib.suppress(Unsatisfiable):  # nothing about this route can be sent wrongly
                    self._ask(found.ok(), mode, of_each, seed)

    def _ask(self, operation: schemathesis.APIOperation, mode: GenerationMode, cases: int, seed: int) -> None:
        @hypothesis.seed(seed)
        @_settings(cases)
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
        def ask(case: schemathesis.Case) -> None:
            if mode is GenerationMode.POSITIVE:
                self._choose_results(case)
            self._check(case, case.call(headers=self._headers))

        ask()

    def _choose_results(self, case: schemathesis.Case) -> bool:
        """Ask for what the run with results has, where a request only reads."""
        chosen = case.method == "GET" and "run" in case.path_parameters
        if chosen:
            case.path_parameters = {**case.path_parameters, "run": self._run}
            if "id" in case.query and case.operation.path.endswith("/customer"):
                case.query = {**case.query, "id": self._customer}
        return chosen

    def _choose_any_run(self, case: schemathesis.Case) -> bool:
        chosen = "run" in case.path_parameters
        if chosen:
            case.path_parameters = {**case.path_parameters, "run": self._any_run()}
        return chosen

    def ask_linked(self, chains: int, seed: int) -> None:
        """Chains of requests, in which a later one has the id that an earlier one was answered with."""
        owner = self

        class Chain(self.schema.as_state_machine()):  # type: ignore[misc]  # the class is made of the document
            def get_call_kwargs(self, case: schemathesis.Case) -> dict[str, object]:
                return {"headers": owner._headers}

            def validate_response(self, response: object, case: schemathesis.Case, **_: object) -> None:
                owner._check(case, response)

        settings = _settings(chains, stateful_step_count=STEPS)
        with contextlib.suppress(FlakyStrategyDefinition):  # the runs of earlier chains are still there
            hypothesis.stateful.run_state_machine_as_test(hypothesis.seed(seed)(Chain), settings=settings)

    def _check(self, case: schemathesis.Case, response: schemathesis.Response) -> None:
        label = case.operation.label
        self.answers[label, response.status_code] += 1
        try:
            case.validate_response(response, headers=self._headers)
        except FailureGroup as group:
            for failure in group.exceptions:
                told = f"{failure}\n{case.as_curl_command()}"
                self.wrong.setdefault(f"{label}: {type(failure).__name__}", told[:2000])


def _settings(cases: int, **more: int) -> hypothesis.settings:
    return hypothesis.settings(
        max_examples=cases,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        **more,
    )
