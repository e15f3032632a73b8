"""Submit, stop, cancel and resume: what becomes of a run, which quotas refuse, and who is claimed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from builders import definition, write_customers
from service_app import bearer
from sqlalchemy import event
from starlette.testclient import TestClient

from tuning import TuneRunner
from tuning.errors import QuotaError, RefusedChangeError
from tuning.service.database.connection import Database
from tuning.service.database.runs import Runs, Submission, SubmittedRun, change
from tuning.service.queue.claim import Places, claim
from tuning.service.requests import Requests
from tuning.service.service import Service
from tuning.service.settings import GB, Quotas, ServiceSettings, Team
from tuning.service.states import WORKING, RunState


class Server:
    """A database with what may be asked of it, without a process."""

    def __init__(self, database: Database, **quotas: float) -> None:
        self.database, self.runs = database, Runs(database)
        teams = {"churn": Team(quotas=Quotas(**quotas))}
        self.settings = ServiceSettings(database="sqlite://", storage="/runs/", work=Path("work"), teams=teams)
        self.requests = Requests(database, self.settings, lambda: 4)

    def submit(
        self, at: float = 100.0, team: str = "churn", slots: int | None = 2, **definition: object
    ) -> SubmittedRun:
        return self.requests.submit(Submission(team, "week", definition, slots_asked=slots), at)

    def claim(self, at: float = 110.0) -> SubmittedRun | None:
        return claim(self.database, self.settings, 4, at)


@pytest.fixture
def server(database: Database) -> Server:
    return Server(database)


def test_a_claimed_run_has_slots_until_it_ends(server: Server) -> None:
    run = server.submit()
    assert run.run_directory == f"/runs/churn/{run.id}"
    claimed = server.claim()
    assert claimed is not None
    assert (claimed.id, claimed.state, claimed.slots, claimed.started) == (run.id, RunState.RUNNING, 2, 110.0)
    assert server.claim() is None
    assert server.runs.change(run.id, RunState.FINISHED, 120.0).slots == 0


def test_ten_threads_that_claim_at_once_never_exceed_the_slots(server: Server) -> None:
    for _ in range(30):
        server.submit(slots=1)
    barrier = threading.Barrier(10)

    def claim_all() -> None:
        barrier.wait()
        while server.claim():
            pass

    threads = [threading.Thread(target=claim_all) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    working = server.runs.in_states(WORKING)
    assert sum(run.slots for run in working) == 4


def test_places_are_those_of_all_teams(server: Server) -> None:
    own = [server.submit(at=100.0 + number).id for number in range(3)]
    other = server.submit(at=200.0, team="credit").id
    found = Places(server.database, server.settings).at(300.0, 4)
    assert sorted(found.values()) == [1, 2, 3, 4]
    assert found[own[0]] < found[own[1]] < found[own[2]]
    assert found[other] == 2


@pytest.mark.parametrize(("word", "ending"), [("stop", RunState.STOPPED), ("cancel", RunState.CANCELLED)])
def test_a_waiting_run_ends_at_once_and_a_running_one_is_asked(server: Server, word: str, ending: RunState) -> None:
    ask = getattr(server.requests, word)
    waiting = server.submit()
    assert ask(waiting.id, "churn", 105.0).state is ending
    running = server.submit()
    server.claim()
    asked = ask(running.id, "churn", 120.0)
    assert (asked.state, asked.ending, asked.stop_asked, asked.slots) == (RunState.STOPPING, ending, 120.0, 2)
    events = len(server.runs.events(running.id))
    assert ask(running.id, "churn", 130.0) == asked  # again: nothing more happens
    assert len(server.runs.events(running.id)) == events


def test_a_stop_can_become_a_cancel_and_not_the_other_way_round(server: Server) -> None:
    run = server.submit()
    server.claim()
    server.requests.stop(run.id, "churn", 120.0)
    assert server.requests.cancel(run.id, "churn", 121.0).ending == RunState.CANCELLED
    assert server.requests.stop(run.id, "churn", 122.0).ending == RunState.CANCELLED
    server.runs.change(run.id, RunState.CANCELLED, 125.0)
    with pytest.raises(RefusedChangeError, match="is cancelled"):
        server.requests.resume(run.id, "churn", 130.0)


@pytest.mark.parametrize("word", ["stop", "cancel"])
def test_what_has_ended_has_nothing_left_to_end(server: Server, word: str) -> None:
    run = server.submit()
    server.claim()
    server.runs.change(run.id, RunState.FINISHED, 3.0)
    with pytest.raises(RefusedChangeError, match=f"is finished: nothing of it is left to {word}"):
        getattr(server.requests, word)(run.id, "churn", 4.0)


def test_a_resume_may_have_more_trials_and_other_slots(server: Server) -> None:
    run = server.submit(trials=10, target="y")
    with pytest.raises(RefusedChangeError, match="is queued"):
        server.requests.resume(run.id, "churn", 101.0)
    server.requests.stop(run.id, "churn", 102.0)
    server.runs.note(run.id, attempts=3, not_before=400.0)
    again = server.requests.resume(run.id, "churn", 103.0, trials=20, slots=3)
    assert (again.state, again.definition, again.slots_asked) == (RunState.QUEUED, {"trials": 20, "target": "y"}, 3)
    assert (again.attempts, again.not_before) == (0, 0.0)
    claimed = server.claim()
    assert claimed is not None
    assert claimed.slots == 3


def test_quotas_say_what_was_asked_for_used_and_allowed(database: Database) -> None:
    server = Server(database, queued_runs=2, slots=2, trials_per_run=100)
    with pytest.raises(QuotaError, match="`slots` is 3, but team 'churn' may have 2 at once") as refused:
        server.submit(slots=3)
    assert refused.value.later is None
    with pytest.raises(QuotaError, match="`slots` is 9, but this server has 4"):
        server.submit(team="credit", slots=9)
    with pytest.raises(QuotaError, match=r"has 101 trials, but team 'churn' may have 100"):
        server.submit(trials=101)
    runs = [server.submit(trials=100) for _ in range(2)]
    with pytest.raises(QuotaError, match="asks for 1 more queued run; 2 wait, and 2 are allowed") as refused:
        server.submit()
    assert refused.value.later
    server.requests.stop(runs[0].id, "churn", 101.0)
    server.submit()
    with pytest.raises(QuotaError, match="2 wait"):
        server.requests.resume(runs[0].id, "churn", 102.0)


def test_core_seconds_come_back_when_the_day_is_over(database: Database) -> None:
    server = Server(database, core_seconds_per_day=100)
    run = server.submit()
    server.claim(at=1000.0)
    server.runs.change(run.id, RunState.FINISHED, 1060.0)
    with pytest.raises(
        QuotaError, match="has used 120 core-seconds in the last 24 hours, and 100 are allowed"
    ) as refused:
        server.submit(at=1100.0)
    assert refused.value.later == pytest.approx(86_400 - 100 + 10, abs=2)
    assert server.submit(at=1100.0 + refused.value.later)


def test_storage_is_full_until_runs_are_deleted(database: Database) -> None:
    server = Server(database, storage_gb=1.0)
    run = server.submit()
    server.runs.note(run.id, bytes=2 * GB)
    with pytest.raises(QuotaError, match=r"have 2.00 GB of 1 GB. Delete some"):
        server.submit()
    server.requests.cancel(run.id, "churn", 101.0)
    server.runs.delete(run.id, "churn")
    assert server.submit()


def test_a_repeated_submission_is_no_matter_of_quotas(database: Database) -> None:
    server = Server(database, queued_runs=1)
    once = Submission("churn", "week", {}, key="k", digest="a")
    first = server.requests.submit(once, 100.0)
    assert server.requests.submit(once, 101.0) == first


def test_a_claim_sees_what_another_has_claimed_since_it_looked(server: Server) -> None:
    first, _ = (server.submit(at=at, slots=3) for at in (1.0, 2.0))
    looked, claimed = threading.Event(), list[SubmittedRun | None]()

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if "row_number" in statement:  # whose turn it is was asked
            looked.set()

    event.listen(server.database.engine, "after_cursor_execute", note)
    thread = threading.Thread(target=lambda: claimed.append(server.claim()))
    with server.database.write() as connection:
        thread.start()
        assert looked.wait(60)
        change(connection, first, RunState.RUNNING, 100.0, slots=3)
    thread.join()
    event.remove(server.database.engine, "after_cursor_execute", note)
    assert claimed == [None]  # of four slots three are taken


@pytest.mark.long
@pytest.mark.parametrize(
    ("scheduler", "trials", "why"),
    [
        (None, 3, "trials: 4 there, 3 here; they can only become more. Nothing was changed."),
        (
            "hyperband",
            6,
            "trials: 4 there, 6 here; under hyperband the trials of a study are one race, which has ended",
        ),
        (None, 6, ""),
        ("nothing began", 1, ""),  # such as after a refusal of too many trials
    ],
)
def test_a_resume_with_trials_that_a_run_cannot_have_is_refused_before_anything_changes(
    service: Service, web: TestClient, scheduler: str | None, trials: int, why: str
) -> None:
    data, headers = Path(service.settings.data[0]), bearer(service)
    write_customers(data, 1)
    given = definition(data, trials=4, **({"scheduler": scheduler} if scheduler == "hyperband" else {}))
    run = service.requests.submit(Submission("churn", "week", given), 1.0)
    service.runs.change(run.id, RunState.RUNNING, 2.0, slots=1)
    service.runs.change(run.id, RunState.FAILED, 3.0)
    if scheduler != "nothing began":
        TuneRunner(given).run(run.run_directory, progress=False, in_process=True)
    answer = web.post(f"/api/v1/runs/{run.id}/resume", json={"trials": trials}, headers=headers)
    after = service.runs.get(run.id)
    if why:
        assert (answer.status_code, answer.json()["key"]) == (422, "trials")
        assert answer.json()["detail"].startswith(why)
        assert (after.state, after.definition["trials"]) == (RunState.FAILED, 4)
    else:
        assert answer.status_code == 202
        assert (after.state, after.definition["trials"]) == (RunState.QUEUED, trials)
