"""Names of files and runs in place of the folders of a server, and requests in place of commands."""

from __future__ import annotations

import json

import pytest

from tuning.basics.wording import command
from tuning.service.children import run_variable
from tuning.service.names import Names


def test_names_below_a_folder_and_others_that_only_look_so() -> None:
    names = Names(frozenset({"/srv/data", "/srv/runs/churn", "s3://bucket/runs/churn", '/srv/"été" & co'}))
    for text, shown in {
        "no file matches '/srv/data/none*.csv'.": "no file matches 'none*.csv'.",
        "below /srv/data.": "below data.",
        "(/srv/data/, /srv/data)": "(data, data)",
        "/srv/data.csv and /srv/database/x, /mnt/srv/data/x": "/srv/data.csv and /srv/database/x, /mnt/srv/data/x",
        "/srv/runs/churn/5f0c is being run": "5f0c is being run",
        "s3://bucket/runs/churn/5f0c": "5f0c",
        "/srv/runs/credit/5f0c": "/srv/runs/credit/5f0c",
        '/srv/"été" & co/a.csv': "a.csv",
        json.dumps('/srv/"été" & co/a.csv'): '"a.csv"',
        "/srv/&quot;été&quot; &amp; co/a.csv": "a.csv",
    }.items():
        assert names.text(text) == shown
    typed = {"data": ["/srv/data", {"path": "/srv/data/a.csv"}], "trials": 3, "by": None}
    assert names.document(typed) == {"data": [".", {"path": "a.csv"}], "trials": 3, "by": None}


def test_a_command_is_a_request_where_no_reader_has_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = command("show", "/srv/run", "--customer", "a b")
    assert typed == "tuning show /srv/run --customer 'a b'"
    monkeypatch.setenv(*next(iter(run_variable("5f0c").items())))
    assert command("show", "/srv/run", "--customer", "a b") == "GET /api/v1/runs/5f0c/customer?id=a+b"
    assert command("resume", "/srv/run") == "POST /api/v1/runs/5f0c/resume"
    assert command("explain", "/srv/run") == "tuning explain /srv/run"
