"""What the pages of the service list is what the service has: states, routes, options, roles, quotas, errors."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest
from fastapi.routing import APIRoute
from pages import blocks
from paths import ROOT

from tuning.cli.serve import serve
from tuning.service.database.tokens import Role
from tuning.service.settings import Quotas, ServiceSettings, read_settings
from tuning.service.states import CHANGES
from tuning.service.web import problems
from tuning.service.web.app import API, ROUTERS

SERVICE, TEAMS, ROUTES = (ROOT / "docs" / f"{name}.md" for name in ("service", "teams", "api"))


def rows(page: str, head: str) -> list[list[str]]:
    """The rows of the table whose head begins like this."""
    _, _, after = page.partition(f"| {head} |")
    lines = after.splitlines()[2:]
    table = lines[: next((place for place, line in enumerate(lines) if not line.startswith("|")), len(lines))]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_each_state_is_listed_with_those_that_may_follow() -> None:
    listed = {code(state)[0]: set(code(next_)) for state, _, next_ in rows(SERVICE.read_text(), "state")}
    assert listed == {str(state): {str(after) for after in afters} for state, afters in CHANGES.items()}


def test_each_route_of_the_api_is_listed() -> None:
    listed = {code(route)[0] for route, _ in rows(ROUTES.read_text(), "route")}
    listed_by_app = [each for router in ROUTERS for each in router.routes if isinstance(each, APIRoute)]
    there = {f"{method} {route.path}" for route in listed_by_app for method in route.methods}
    assert listed == {route for route in there if f" {API}/" in route}


def test_each_option_of_the_server_is_listed() -> None:
    listed = {
        option.split()[0]
        for option, *_ in rows(SERVICE.read_text(), "option of `tuning serve`")
        for option in code(option)
    }
    assert listed == {name for option in serve.params for name in option.opts}


def test_each_role_and_quota_is_listed() -> None:
    assert [code(role)[0] for role, _ in rows(TEAMS.read_text(), "role")] == [str(role) for role in Role]
    assert [code(quota)[0] for quota, _ in rows(TEAMS.read_text(), "quota")] == list(Quotas.model_fields)


def test_each_status_of_an_error_is_listed() -> None:
    listed = {int(status) for cell, *_ in rows(ROUTES.read_text(), "status") for status in cell.split(",")}
    assert listed == set(problems.RESPONSES) - {500}


@pytest.mark.parametrize("page", [SERVICE, TEAMS], ids=lambda page: page.stem)
def test_a_configuration_is_one_that_a_server_takes(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = [block.text for block in blocks(page) if block.file == "service.yaml"]
    assert shown
    for text in shown:
        (tmp_path / "service.yaml").write_text(text)
        settings = read_settings(
            tmp_path / "service.yaml", {"database": "sqlite://", "storage": "runs", "work": str(tmp_path)}
        )
        assert isinstance(settings, ServiceSettings)


def test_the_unit_of_systemd_ends_the_server_alone() -> None:
    (block,) = (block for block in blocks(SERVICE) if block.language == "ini")
    unit = configparser.ConfigParser()
    unit.read_string(block.text)
    assert unit["Service"]["killmode"] == "process"
    assert "--config service.yaml" in unit["Service"]["execstart"]
