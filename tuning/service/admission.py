"""What a submitted definition may hold: names below the team's roots, and only code that the server's owner has listed.

Everything is looked at before it is read as a `Definition`, which is then read without the constraints of its search
space: those are code, which is imported by the driver alone. This is only the door: files are opened hours later, by
other processes, which are told the roots and check each file as they open it (`tuning/storage/data_roots.py`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from search_spaces import SearchSpace, SpaceError
from search_spaces.algorithms.grid import Grid
from tuning.basics.documents import Json
from tuning.basics.wording import did_you_mean, name_list, shorten
from tuning.definition.complaints import refused
from tuning.definition.definition import Definition, define
from tuning.definition.fields import NO_PORTFOLIO, SHIPPED
from tuning.definition.reach import Reference
from tuning.errors import CustomerError, DefinitionError, NotAllowedError
from tuning.service.database.runs import Submission
from tuning.service.schedules import next_time
from tuning.service.settings import NO_MLFLOW, ServiceSettings, Team
from tuning.storage.data_roots import DataRoots
from tuning.storage.names import is_uri, mask, without_query
from tuning.user_code import is_file

SERVERS_OWN = ("storage", "mlflow")
OURS = (("portfolio", SHIPPED), ("portfolio", NO_PORTFOLIO))  # keys with values that are no places
MOST_PRIORITY = 1000
LONGEST_NAME = 1000  # characters of a file's name with its folders
STRANGE = re.compile(r"[A-Z]|.*://(.*//|.*[\s\\@?#%\x00-\x1f\x7f])", re.DOTALL)  # URIs that clients read differently


class Timetable(BaseModel):
    """When a definition is submitted again: a cron expression in a time zone."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    cron: str
    time_zone: str = "UTC"

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return {"cron": value} if isinstance(value, str) else value


class _Asked(BaseModel):
    """What a document asks of the service besides the definition."""

    priority: Annotated[int, Field(strict=True, ge=-MOST_PRIORITY, le=MOST_PRIORITY)] = 0
    schedule: Timetable | None = None


@dataclass(frozen=True)
class Admitted:
    """A definition that may run, as the driver gets it, and when it is submitted again."""

    submission: Submission
    timetable: Timetable | None = None


def admit(
    values: Mapping[str, object],
    team: str,
    settings: ServiceSettings,
    *,
    key: str | None = None,
    digest: str = "",
    now: float = 0.0,
) -> Admitted:
    """Return what a team's document asks for; nothing is opened.

    key, digest: of a submission that may be repeated. `DefinitionError` for what is wrong, `NotAllowedError` for what
    the server's configuration does not allow; both begin with the key.
    """
    wanted: dict[str, object] = json.loads(json.dumps(dict(values), default=str))
    try:
        asked = _Asked.model_validate({name: wanted.pop(name) for name in _Asked.model_fields if name in wanted})
    except ValidationError as error:
        raise refused(error, _Asked) from None
    if asked.schedule is not None:
        next_time(asked.schedule.cron, asked.schedule.time_zone, now)
    for own in SERVERS_OWN:
        if own in wanted:
            raise NotAllowedError.about(own, "the server says this. Leave the key out.")
    roots = settings.roots(team)
    placed = {name: _placed(name, value, roots) for name, value in wanted.items()}
    check_again(placed, team, settings)
    definition = define(cast(Json, _without_constraints(placed)))
    _check_grid(definition)
    copied = settings.mlflow != NO_MLFLOW and {"experiment": f"{team}/{definition.name}"}
    kept = {**placed, "name": definition.name, "mlflow": copied}
    submission = Submission(team, definition.name, kept, asked.priority, definition.slots, key=key, digest=digest)
    return Admitted(submission, asked.schedule)


def check_again(definition: Json, team: str, settings: ServiceSettings) -> None:
    """Raise `NotAllowedError` where a definition holds code or places that its team may not use, or not any more."""
    allowed, roots = settings.team(team), settings.roots(team)
    for reference in Definition.references(definition):
        if reference.kind == "code":
            _check_code(reference, allowed)
        elif reference.kind == "parameter" and (reference.text or definition.get("objective") is None):
            raise NotAllowedError.about(
                reference.key,
                "it names a file or an address, which a model's library opens by itself. Leave the "
                "key out; a parameter of your own code may have numbers, or another name.",
            )
        elif (
            reference.kind in ("path", "uri")
            and (reference.key, reference.text) not in OURS
            and place_of(reference.text, roots, reference.key) != reference.text
        ):
            raise NotAllowedError.about(reference.key, f"{shorten(repr(reference.text))} is no place on this server.")


def _without_constraints(value: object, key: str = "") -> object:
    """Return a document without the constraints of its search spaces. key: that the document is the value of."""
    if isinstance(value, list):
        return [_without_constraints(each, key) for each in value]
    if not isinstance(value, Mapping):
        return value
    left = {name: each for name, each in value.items() if (key, name) != ("search_space", "constraints")}
    return {name: _without_constraints(each, "" if key == "data" else name) for name, each in left.items()}


def _check_code(reference: Reference, allowed: Team) -> None:
    """Raise `NotAllowedError` for code that the server's configuration does not list for the team."""
    text = shorten(repr(reference.text))
    if reference.key == "allow_code":
        if allowed.allow_pickle:
            return
        why = "pickles are code, which this server's configuration does not allow your team. Leave the key out."
    elif reference.text in allowed.code and not is_file(reference.text):
        return
    elif is_file(reference.text):
        why = f"{text} is a file of code, which no server takes. Have its module installed and listed in its settings."
    else:
        listed = f"Listed: {name_list(allowed.code)}." if allowed.code else "None is."
        near = did_you_mean(reference.text, list(allowed.code))
        why = f"{text} is code that this server's configuration does not list for your team.{near} {listed}"
    raise NotAllowedError.about(reference.key, why)


def _placed(name: str, value: object, roots: tuple[str, ...]) -> object:
    """Return a key's value with every path in it absolute, below one of the roots."""

    def placed(item: object, key: str) -> object:
        if isinstance(item, str):
            return place_of(item, roots, key)
        if isinstance(item, Mapping) and isinstance(item.get("path"), str):
            return {**item, "path": place_of(item["path"], roots, f"{key}.path")}
        return item

    if name not in ("data", "manifest", "portfolio") or (name, value) in OURS:
        return value
    if isinstance(value, list):
        return [placed(item, name) for item in value]
    if isinstance(value, Mapping) and name == "data":
        return {customer: placed(item, f"data.{customer}") for customer, item in value.items()}
    return placed(value, name)


def place_of(text: str, roots: tuple[str, ...], key: str) -> str:
    """Return the place of a name below the roots that a team may read; `NotAllowedError` where it is not below them.

    roots: absolute folders, and URIs. Of several folders a relative name is in the first one that has it.
    """
    folders, shown = [root for root in roots if not is_uri(root)], shorten(repr(without_query(mask(text))))
    if not text.strip() or "\0" in text or len(text) > LONGEST_NAME:
        raise DefinitionError.about(
            key, f"{shorten(ascii(text))} is no name of a file or folder, which has up to {LONGEST_NAME} characters."
        )
    if not (roots if is_uri(text) else folders):
        raise NotAllowedError.about(key, _expected(folders))
    path = text
    if not is_uri(text):
        if ".." in re.split(r"[/\\]", text) or text.startswith("~"):
            raise NotAllowedError.about(key, f"{shown} holds `..` or `~`. {_expected(folders)}")
        first = re.split(r"[*?\[]", text)[0].partition("/")[0]
        root = next((root for root in folders if first and os.path.lexists(os.path.join(root, first))), folders[0])
        path = os.path.normpath(os.path.join(root, text))
    try:
        DataRoots(roots).check(path)
    except CustomerError:
        raise NotAllowedError.about(
            key, f"{shown} is not below what your team may read. {_expected(folders)}"
        ) from None
    if is_uri(text) and STRANGE.match(text):
        raise NotAllowedError.about(key, f"{shown} holds what an address should not, such as a user or a query.")
    return path


def _expected(folders: list[str]) -> str:
    """Return what to give, without the places of folders on the server's machine."""
    if not folders:
        return "Name a file once the server's owner has given your team a folder by --data."
    return f"Give a name below {'your folder' if len(folders) == 1 else 'one of your folders'}, such as churn.csv."


def _check_grid(definition: Definition) -> None:
    """Raise `DefinitionError` for a grid that is too large, before it waits in the queue."""
    if not isinstance(definition.algorithm, Grid):
        return
    spaces = [definition.search_space, *(entry.search_space for entry in definition.models)]
    try:
        for space in spaces:
            if isinstance(space, SearchSpace) and not space.constraints:
                definition.algorithm.size(space)
    except SpaceError as error:
        raise DefinitionError.about("algorithm", f"{error}.") from error
