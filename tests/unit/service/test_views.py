"""The tables of a run for pages: what `RunResult` says, in pages, mapped and kept fresh."""

from __future__ import annotations

import dataclasses
import json
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from builders import write_customers
from chaos import wait_for
from pyarrow import feather

from tuning import RunResult, TuneRunner
from tuning.errors import MissingError, RunError
from tuning.runs.leaderboard import LEADERBOARD
from tuning.service.children import Children
from tuning.service.database.runs import SubmittedRun
from tuning.service.settings import ServiceSettings
from tuning.service.states import RunState
from tuning.service.views.tables import STUDIES_FILE, SUMMARY_FILE, TRIALS_FILE, UNSORTED, RunTables
from tuning.service.views.views import FRESH_S, LeaderboardCache
from tuning.service.views.write import write

RUN = SubmittedRun("r1", "churn", "week", {}, "runs/churn/r1", 1.0, 1.0, RunState.RUNNING, slots=1, started=1.0)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("views")
    write_customers(folder / "data", 12)
    (folder / "data" / "odd é.csv").write_text("a,b,c,y\n1,2,3,4\n")
    runner = TuneRunner(
        data=str(folder / "data" / "*.csv"), target="y", metric="rmse", models=["ridge"], trials=2, mlflow=False,
        report=False, split={"folds": 2},
    )  # fmt: skip
    return runner.run(folder / "run", in_process=True, progress=False)


@pytest.fixture(scope="module")
def tables(result: RunResult, tmp_path_factory: pytest.TempPathFactory) -> RunTables:
    folder = tmp_path_factory.mktemp("tables")
    write(result.directory.uri, str(folder))
    return RunTables(folder)


@pytest.mark.long
@pytest.mark.parametrize("sort", [name for name in LEADERBOARD if name not in UNSORTED or name == "customer"])
def test_pages_are_the_leaderboard_in_any_order(result: RunResult, tables: RunTables, sort: str) -> None:
    expected = [*result.board(sort)]
    found = [row for start in range(0, len(tables), 5) for row in tables.page(sort=sort, start=start, rows=5).rows]
    assert [row["customer"] for row in found] == [row["customer"] for row in expected]
    without_params = [{**row, "params": None} for row in expected]
    assert [{**row, "params": None} for row in found] == without_params


def test_a_search_finds_parts_of_ids_in_any_case_and_keeps_the_order(tables: RunTables) -> None:
    page = tables.page(search="C000", sort="test_score", rows=3)
    assert page.found == 10
    scores = [row["test_score"] for row in page.rows]
    assert scores == sorted(scores)
    assert [row["customer"] for row in tables.page(status="no_model").rows] == ["odd é"]
    assert tables.page(search="[").found == 0


@pytest.mark.long
def test_a_customer_is_what_its_records_say(result: RunResult, tables: RunTables) -> None:
    for customer in result:
        found, expected = tables.customer(customer), result.customer(customer)
        trials = found["trials"]
        assert isinstance(trials, list)
        assert [trial["trial"] for trial in trials] == [record.trial for record in expected.trial_records]
        for trial, record in zip(trials, expected.trial_records, strict=True):
            assert trial["config"] == record.config
            assert trial["score"] == record.score
            assert [step["score"] for step in trial["steps"]] == [step.score for step in record.steps]
    with pytest.raises(MissingError, match="no customer 'nobody'"):
        tables.customer("nobody")


def test_a_customer_of_whom_nothing_is_recorded_yet_has_a_row_alone(tables: RunTables, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tables.folder, tmp_path / "tables"))
    for name in (STUDIES_FILE, TRIALS_FILE):
        feather.write_feather(feather.read_table(folder / name).slice(0, 0), folder / name, "uncompressed")
    found = RunTables(folder).customer("c0000")
    assert (found["customer"], found["studies"], found["trials"]) == ("c0000", [], [])


def test_failures_stand_in_the_summary_with_what_to_do(tables: RunTables) -> None:
    (group,) = tables.summary["failures"]
    assert group["examples"] == ["odd é"]
    assert "min_rows" in group["advice"]


class Writer(Children):
    """Writes the same tables each time, and counts."""

    def __init__(self, tables: RunTables) -> None:
        super().__init__()
        self.tables, self.written, self.fails = tables, 0, False
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def run(self, function: str, values: Mapping[str, object], **_: object) -> None:
        self.written += 1
        assert self.may_go_on.wait(60)
        if self.fails:
            raise RunError("is not a run directory")
        for file in self.tables.folder.iterdir():
            Path(str(values["folder"]), file.name).write_bytes(file.read_bytes())


def settings(work: Path) -> ServiceSettings:
    return ServiceSettings(database="x", storage=str(work / "runs"), work=work)


def test_tables_of_a_run_that_works_are_made_anew_only_when_somebody_looks_and_they_are_old(
    tables: RunTables, tmp_path: Path
) -> None:
    now, writer = [100.0], Writer(tables)
    views = LeaderboardCache(settings(tmp_path), writer, lambda: now[0])
    first = views.ask(RUN).result()
    now[0] += FRESH_S
    assert views.ask(RUN).result() is first
    assert writer.written == 1
    now[0] += 1
    writer.may_go_on.clear()
    for _ in range(2):
        assert views.ask(RUN).result() is first  # the old ones meanwhile, and one child for both
    writer.may_go_on.set()
    newer = views.ask(dataclasses.replace(RUN, state=RunState.FINISHED, ended=now[0])).result()
    assert newer.written == now[0]
    assert writer.written == 2
    assert first.page(rows=1).rows == newer.page(rows=1).rows  # who looks at the old ones goes on


def test_tables_that_were_begun_before_the_end_are_not_those_of_an_ended_run(tables: RunTables, tmp_path: Path) -> None:
    now, writer = [100.0], Writer(tables)
    views = LeaderboardCache(settings(tmp_path), writer, lambda: now[0])
    writer.may_go_on.clear()
    early = views.ask(RUN)
    wait_for(lambda: writer.written == 1, what="the first child")
    now[0] += 5
    ended = dataclasses.replace(RUN, state=RunState.FINISHED, ended=now[0])
    asked = [views.ask(ended), views.ask(ended)]
    writer.may_go_on.set()
    assert early.result().written == 100.0
    assert [each.result().written for each in asked] == [105.0, 105.0]
    assert (views.ask(ended).result().written, writer.written) == (105.0, 2)


def test_a_new_server_finds_the_tables_of_the_one_before(tables: RunTables, tmp_path: Path) -> None:
    writer = Writer(tables)
    ended = dataclasses.replace(RUN, state=RunState.FINISHED, ended=90.0)
    LeaderboardCache(settings(tmp_path), writer, lambda: 100.0).ask(ended).result()
    assert LeaderboardCache(settings(tmp_path), writer, lambda: 200.0).ask(ended).result().written == 100.0
    assert writer.written == 1


def test_tables_of_another_version_are_written_anew(tables: RunTables, tmp_path: Path) -> None:
    """They may lack a column that is shown now."""
    writer = Writer(tables)
    ended = dataclasses.replace(RUN, state=RunState.FINISHED, ended=90.0)
    older = LeaderboardCache(settings(tmp_path), writer, lambda: 100.0).ask(ended).result().folder / SUMMARY_FILE
    summary = json.loads(older.read_text())
    older.write_text(json.dumps({**summary, "written_by": {**summary["written_by"], "columns": ["customer"]}}))
    assert LeaderboardCache(settings(tmp_path), writer, lambda: 200.0).ask(ended).result().written == 200.0
    assert not older.exists()


def test_a_run_without_records_has_no_tables_and_gets_them_later(tables: RunTables, tmp_path: Path) -> None:
    writer = Writer(tables)
    writer.fails = True
    views = LeaderboardCache(settings(tmp_path), writer, lambda: 100.0)
    with pytest.raises(MissingError, match="not a run directory"):
        views.ask(RUN).result()
    assert not (tmp_path / RUN.id).exists()  # as after a run was deleted while somebody looked
    writer.fails = False
    assert len(views.ask(RUN).result()) == len(tables)
    views.forget(RUN.id)
    assert not (tmp_path / RUN.id / "views").exists()
