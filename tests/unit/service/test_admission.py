"""What a submitted definition may hold; nothing of it is opened at the door."""

from __future__ import annotations

import glob
import os
import random
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from addresses import Listener, spellings
from service_app import child_here

from tuning.errors import DefinitionError, NotAllowedError, TuningError
from tuning.service.admission import Admitted, Timetable, admit, place_of
from tuning.service.children import Children
from tuning.service.plans import AskedPlan, PlanState
from tuning.service.service import Service
from tuning.service.settings import ServiceSettings, Team
from tuning.service.supervisor.drivers import driver_environment

CHURN = {"data": "churn.csv", "target": "churned"}


@pytest.fixture
def settings(service: Service) -> ServiceSettings:
    teams = {
        "coders": Team(code=("ours.metrics:profit", "ours.models:net", "ours.train:loss"), allow_pickle=True),
        "cloud": Team(data=("s3://bucket/churn",)),
        "two": Team(data=(service.settings.data[0], str(Path(service.settings.data[0]).parent / "more"))),
        "none": Team(data=()),
    }
    return service.settings.model_copy(update={"teams": teams})


def admitted(settings: ServiceSettings, team: str = "churn", **values: object) -> Admitted:
    return admit({**CHURN, **values}, team, settings)


def test_what_the_driver_gets_names_files_below_the_root_and_the_teams_experiment(settings: ServiceSettings) -> None:
    root = settings.data[0]
    found = admitted(settings, name="week", slots=3, priority=5, schedule={"cron": "0 3 * * 1", "time_zone": "UTC"})
    assert found.timetable == Timetable(cron="0 3 * * 1", time_zone="UTC")
    assert (found.submission.priority, found.submission.slots_asked, found.submission.name) == (5, 3, "week")
    assert found.submission.definition == {
        "data": f"{root}/churn.csv",
        "target": "churned",
        "name": "week",
        "slots": 3,
        "mlflow": {"experiment": "churn/week"},
    }
    data = {"acme": "a.csv", "beta": {"path": "b/*.csv", "trials": 3}, 7: "c.csv"}
    assert admitted(settings, data=data).submission.definition["data"] == {
        "acme": f"{root}/a.csv",
        "beta": {"path": f"{root}/b/*.csv", "trials": 3},
        "7": f"{root}/c.csv",
    }
    kept = admitted(settings, data=["a.csv", f"{root}/b.csv"], manifest="m.csv", portfolio="p.yaml").submission
    assert [kept.definition[key] for key in ("data", "manifest", "portfolio")] == [
        [f"{root}/a.csv", f"{root}/b.csv"],
        f"{root}/m.csv",
        f"{root}/p.yaml",
    ]
    assert admitted(settings, portfolio="none").submission.definition["portfolio"] == "none"


def test_a_server_without_mlflow_has_no_run_copied(settings: ServiceSettings) -> None:
    without = settings.model_copy(update={"mlflow": "none"})
    assert admitted(without).submission.definition["mlflow"] is False
    assert "MLFLOW_TRACKING_URI" not in driver_environment(without, "churn")


def test_of_several_roots_a_name_is_in_the_one_that_has_it(settings: ServiceSettings) -> None:
    first, second = settings.roots("two")
    Path(second, "sub").mkdir(parents=True)
    assert admitted(settings, "two", data="sub/*.csv").submission.definition["data"] == f"{second}/sub/*.csv"
    assert admitted(settings, "two", data="new/*.csv").submission.definition["data"] == f"{first}/new/*.csv"
    assert admitted(settings, "two", data=f"{second}/x.csv").submission.definition["data"] == f"{second}/x.csv"


def test_a_bucket_is_read_where_the_configuration_lists_it(settings: ServiceSettings) -> None:
    inside = "s3://bucket/churn/2026/*.parquet"
    assert admitted(settings, "cloud", data=inside).submission.definition["data"] == inside
    for outside in (
        "s3://bucket/churned/a.csv",
        "s3://bucket/other",
        "s3://bucket/churn/../other/a.csv",
        "s3://bucket/churn/%2e%2e/other/a.csv",
        "s3://key:secret@bucket/churn/a.csv",
        "s3://bucket/churn/a.csv?endpoint_override=127.0.0.1",
        "S3://bucket/churn/a.csv",
        "gs://bucket/churn/a.csv",
        "s3://bucket/churn//etc",
        "churn.csv",
    ):
        with pytest.raises(NotAllowedError) as refused:
            admitted(settings, "cloud", data=outside)
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"storage": "/tmp/x"}, "storage"),
        ({"mlflow": {"tracking_uri": "http://127.0.0.1:5000"}}, "mlflow"),
        ({"mlflow": False}, "mlflow"),
        ({"prepare": "clean.py:clean"}, "prepare"),
        ({"prepare": "ours.data:clean"}, "prepare"),
        ({"metric": "os:system"}, "metric"),
        ({"models": ["os:system"]}, "models"),
        ({"models": {"mine": "models.py:make"}}, "models.mine"),
        ({"models": [{"estimator": {"file": "estimators/x.pkl", "sha256": "0"}}]}, "models.estimator"),
        ({"objective": "ours.objective:train", "search_space": {}}, "objective"),
        ({"search_space": {"depth": [1, 2], "constraints": ["ours.rules:small"]}}, "search_space.constraints"),
        ({"allow_code": True}, "allow_code"),
        ({"search_space": {"forcedsplits_filename": ["/etc/passwd"]}}, "search_space.forcedsplits_filename"),
        ({"search_space": {"train_dir": ["/tmp"]}}, "search_space.train_dir"),
        (
            {"models": [{"estimator": "lightgbm", "search_space": {"machines": ["a:1"]}}]},
            "models.search_space.machines",
        ),
        ({"data": {"acme": {"path": "/etc/passwd"}}}, "data.acme.path"),
        ({"data": ["a.csv", "../b.csv"]}, "data"),
        ({"manifest": "~/m.csv"}, "manifest"),
        ({"portfolio": "/proc/self/environ"}, "portfolio"),
    ],
    ids=str,
)
def test_what_is_the_servers_or_code_or_elsewhere_is_refused_by_its_key(
    settings: ServiceSettings, values: dict[str, object], key: str
) -> None:
    with pytest.raises(NotAllowedError) as refused:
        admitted(settings, **values)
    assert str(refused.value).startswith(f"{key}: ")


def test_listed_code_is_admitted_for_its_team_alone_and_never_imported_here(settings: ServiceSettings) -> None:
    values = {"metric": "ours.metrics:profit", "models": ["ours.models:net"], "allow_code": True}
    assert admitted(settings, "coders", **values).submission.definition["metric"] == "ours.metrics:profit"
    with pytest.raises(NotAllowedError, match="None is"):
        admitted(settings, **values)
    # There is no such module: were it imported, this would fail.
    constrained = {"depth": {"type": "int", "low": 1, "high": 2}, "constraints": ["ours.metrics:profit"]}
    kept = admitted(settings, "coders", search_space=constrained).submission.definition
    assert kept["search_space"] == constrained
    with pytest.raises(NotAllowedError, match="file of code"):
        admitted(settings, "coders", metric="ours/metrics.py:profit")


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"models": [{"estimator": "ours.models:net", "params": {"output_model": "/srv/x"}}]}, "models.params"),
        ({"models": [{"estimator": "ours.models:net", "search_space": {"fs": ["/srv/x"]}}]}, "models.search_space"),
        ({"objective": "ours.train:loss", "search_space": {"parameters": {"machines": ["a:1"]}}}, "search_space"),
    ],
)
def test_listed_code_gets_no_file_or_address_by_a_librarys_parameter(
    settings: ServiceSettings, values: dict[str, object], key: str
) -> None:
    with pytest.raises(NotAllowedError, match=f"^{key}.*names a file or an address"):
        admitted(settings, "coders", **values)
    numbers = {"workers": {"type": "choice", "values": [1, 2]}}
    assert admitted(settings, "coders", objective="ours.train:loss", search_space={"parameters": numbers})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"split": {"folds": 3, "constraints": []}}, "split.constraints: unknown key"),
        ({"constraints": ["ours.metrics:profit"]}, "constraints: unknown key"),
        (
            {"data": {"search_space": {"path": "a.csv", "constraints": []}}},
            "data: customer 'search_space': constraints",
        ),
    ],
)
def test_what_is_called_constraints_elsewhere_is_checked_as_the_driver_gets_it(
    settings: ServiceSettings, values: dict[str, object], said: str
) -> None:
    with pytest.raises(DefinitionError, match=said):
        admitted(settings, **values)
    data = {"constraints": "a.csv", "b": {"path": "b.csv"}}
    assert set(admitted(settings, data=data).submission.definition["data"]) == set(data)


@pytest.mark.parametrize("team", ["churn", "two"])
def test_a_refusal_names_no_folder_of_the_machine(settings: ServiceSettings, team: str) -> None:
    for name in ("../b.csv", "~/b.csv", "/etc/passwd", "s3://bucket/b.csv"):
        with pytest.raises(NotAllowedError) as refused:
            admitted(settings, team, data=name)
        assert str(Path(settings.data[0]).parent) not in str(refused.value)


def test_a_team_without_a_root_reads_nothing(settings: ServiceSettings) -> None:
    with pytest.raises(NotAllowedError, match="--data"):
        admitted(settings, "none")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"trials": "many"}, "trials: "),
        ({"trails": 3}, "trails: unknown key. Did you mean"),
        ({"priority": 1.5}, "priority: "),
        ({"priority": 10**6}, "priority: "),
        ({"schedule": "every day"}, "schedule: "),
        ({"schedule": {"cron": "0 3 * * 1", "time_zone": "Europe/Nowhere"}}, "schedule: "),
        ({"schedule": ["0 3 * * 1"]}, "schedule: "),
        ({"data": " "}, "data: "),
        ({"data": "a/" * 501}, "data: 'a/a/a/"),
        (
            {"algorithm": "grid", "search_space": {f"p{n}": {"type": "float", "low": 0, "high": 1} for n in range(20)}},
            "algorithm: levels: the grid has 95,367,431,640,625 combinations",
        ),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_before_it_waits(settings: ServiceSettings, values: dict[str, object], said: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        admitted(settings, **values)
    assert str(refused.value).startswith(said)


NAMES = ("a", "churn.csv", "..", ".", "", "~", "~root", "...", "..\\", "%2e%2e", "*", "**", "[.][.]", "\x00", "\n", "é")
NAMES += (
    "etc",
    "passwd",
    "link",
    " ",
    "..;",
    "{..,a}",
    "．．",
    "..\u2215",
    "con",
    "-x",
    "$HOME",
    "`id`",
    "file:",
    "c:",
)


@pytest.mark.long
def test_of_ten_thousand_names_none_leads_out_of_the_root(settings: ServiceSettings, tmp_path: Path) -> None:
    root, drawn, refused, inside = Path(settings.data[0]), random.Random(7), 0, 0
    (root / "a").mkdir()
    (root / "a" / "churn.csv").write_text("x")
    (tmp_path / "churn.csv").write_text("secret")
    for number in range(10_000):
        name = "/".join(drawn.choices(NAMES, k=drawn.randint(1, 6)))
        name = drawn.choice(("", "", "", "/", "//", f"{root}/", f"{root}", "file://", "\\")) + name
        try:
            kept = place_of(name, settings.roots("churn"), "data")
        except TuningError:
            refused += 1
            if number % 20 == 0:
                with pytest.raises(TuningError):
                    admitted(settings, **{drawn.choice(("data", "manifest", "portfolio")): name})
            continue
        inside += 1
        assert os.path.commonpath([os.path.realpath(kept), root.resolve()]) == str(root.resolve()), name
        for found in glob.iglob(kept, recursive=True):
            assert os.path.realpath(found).startswith(str(root.resolve())), name
    assert refused > 2000
    assert inside > 2000


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    with closing(made.server):
        yield made


def made(service: Service, asked: AskedPlan) -> AskedPlan:
    while asked.state in (PlanState.WAITING, PlanState.PLANNING):
        time.sleep(0.05)
        asked = service.plans.get(asked.id, asked.team)
    return asked


def test_no_spelling_of_an_address_is_connected_to(
    service: Service, settings: ServiceSettings, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is refused, or is the name of a file; those that are names are planned, which opens what they name."""
    written = spellings(listener.port)
    assert len(set(written)) >= 40
    names = []
    for text in written:
        said = ""
        try:
            admitted(settings, data=text)
            names.append(text)
        except TuningError as error:
            said = str(error)
        assert "password" not in said
        if said:
            for values in ({"manifest": text}, {"portfolio": text}, {"data": {"a": {"path": text}}}, {"data": [text]}):
                with pytest.raises(TuningError):
                    admitted(settings, **values)
    assert 3 <= len(names) <= 10
    Path(settings.data[0], "churn.csv").write_text("x,churned\n" + "1,0\n2,1\n" * 20)
    monkeypatch.setattr(Children, "run", child_here)
    everywhere: list[dict[str, object]] = [
        {"data": {f"customer {number}": name for number, name in enumerate(names)}},
        {"manifest": names[0], "data": None},
        {"portfolio": names[1]},
    ]
    plans = [service.plans.ask(admitted(settings, **values).submission, 100.0) for values in everywhere]
    assert [made(service, plan).state for plan in plans] == [PlanState.REFUSED] * len(plans)
    assert listener.connections() == 0
    with socket.create_connection(("127.0.0.1", listener.port)):
        assert listener.connections() == 1  # it would have counted one
