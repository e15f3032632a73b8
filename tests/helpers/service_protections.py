"""Protections of the service: how each is switched off, and which test then fails."""

from __future__ import annotations

from typing import Any

from protections import Patch, Protection, setting


def chosen_before_the_claim(patch: Patch) -> None:
    from tuning.service.database.runs import change, one
    from tuning.service.queue.claim import _next_run
    from tuning.service.states import RunState

    def in_two_steps(database: Any, settings: Any, total: int, now: float) -> Any:
        with database.read() as connection:
            choice = _next_run(connection, settings, total, now)
            run = None if choice is None else one(connection, choice.run, None)
        if choice is None or run is None:
            return None
        with database.write() as connection:
            return change(connection, run, RunState.RUNNING, now, slots=choice.slots)

    patch.setattr("tuning.service.queue.claim.claim", in_two_steps)


def of_any_team(patch: Patch) -> None:
    from tuning.service.database import runs

    real = runs.one
    patch.setattr(runs, "one", lambda connection, run, team: real(connection, run, None))


def nobody_has_it(patch: Patch) -> None:
    patch.setattr("tuning.records.ownership.Owner.is_dead", property(lambda self: True))


def of_any_length(patch: Patch) -> None:
    patch.setattr("tuning.service.web.middleware._announced", lambda request: 0)
    patch.setattr("tuning.service.web.middleware._limited", lambda receive, *_: receive)


SERVICE = [
    Protection(
        "a run is chosen and claimed in one transaction",
        chosen_before_the_claim,
        "unit/service/test_requests.py::test_a_claim_sees_what_another_has_claimed_since_it_looked",
    ),
    Protection(
        "one server at a time works on a database",
        nobody_has_it,
        "unit/service/test_single_server.py::test_a_second_server_is_refused_at_once_and_the_process_named",
    ),
    Protection(
        "a driver whose run another process has is no failure of the machine",
        setting(tuning__service__supervisor__endings__OWNED=-1),
        "unit/service/test_supervisor.py::test_a_drivers_end_decides_what_becomes_of_its_run[exit 5-queued-"
        "another process runs it (looked at again in 60 s)]",
    ),
    Protection(
        "a team has its own runs only",
        of_any_team,
        "unit/service/test_who_may_ask.py::test_another_teams_run_is_answered_as_one_that_is_not_there",
    ),
    Protection(
        "a token is known by its digest",
        setting(tuning__service__database__tokens__digest_of=str.encode),
        "unit/service/test_database.py::test_a_token_is_found_by_its_text_alone_and_is_stored_nowhere",
    ),
    Protection(
        "a key of a submission stands for one body",
        setting(tuning__service__database__runs__submitted_before=lambda *_: None),
        "unit/service/test_database.py::test_a_repeated_submission_is_the_same_run_and_another_body_is_refused",
    ),
    Protection(
        "another site's page changes nothing",
        setting(tuning__service__web__auth__check_origin=lambda *_: None),
        "unit/service/test_who_may_ask.py::test_a_cookie_changes_nothing_for_another_sites_page",
    ),
    Protection(
        "a body has a limit",
        of_any_length,
        "unit/service/test_body_limit.py::test_a_body_that_is_too_large_is_refused_and_makes_no_run",
    ),
    Protection(
        "nothing outside the roots is admitted",
        setting(tuning__service__admission__place_of=lambda text, *_: text),
        "unit/service/test_admission.py::test_of_ten_thousand_names_none_leads_out_of_the_root",
    ),
]
