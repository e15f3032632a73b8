"""What a submitted definition may hold: names below the team's roots, and only code that the server's owner has listed.

Everything is looked at before it is read as a `Definition`, which is then read without the constraints of its search
space: those are code, which is imported by the driver alone. This is only the door: files are opened hours later, by
other processes, which are told the roots and check each file as they open it (`tuning/storage/data_roots.py`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import unquote, urlsplit

from search_spaces import SearchSpace, SpaceError
from search_spaces.algorithms.grid import Grid
from tuning.basics.documents import Json
from tuning.basics.wording import did_you_mean, name_list, shorten
from tuning.definition.definition import Definition, define
from tuning.definition.fields import NO_PORTFOLIO, SHIPPED
from tuning.definition.reach import Reference
from tuning.errors import DefinitionError, NotAllowedError
from tuning.service.database.runs import Submission
from tuning.service.schedules import next_time
from tuning.service.settings import NO_MLFLOW, ServiceSettings, Team
from tuning.storage.names import is_uri
from tuning.user_code import is_file

SERVERS_OWN = ("storage", "mlflow")
MOST_PRIORITY = 1000
LONGEST_NAME = 1000  # characters of a file's name with its folders
ADMITTED_KEY = re.compile(r"[\x21-\x7e]{1,255}")  # of Idempotency-Key


@dataclass(frozen=True)
class Timetable:
    """When a definition is submitted again: a cron expression in a time zone."""

    cron: str
    time_zone: str = "UTC"


@dataclass(frozen=True)
class Admitted:
    """A definition that may run, as the driver gets it, and what else the document asked for."""

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
    """What a team's document asks for; nothing is opened.

    key, digest: of a submission that may be repeated. `DefinitionError` for what is wrong, `NotAllowedError` for what
    the server's configuration does not allow; both begin with the key.
    """
    if key is not None and not ADMITTED_KEY.fullmatch(key):
        raise DefinitionError.about("Idempotency-Key", "up to 255 visible characters of ASCII are expected.")
    wanted = cast(dict[str, object], _with_text_keys(values))
    priority, timetable = _priority(wanted.pop("priority", 0)), _timetable(wanted.pop("schedule", None), now)
    for own in SERVERS_OWN:
        if own in wanted:
            raise NotAllowedError.about(own, "the server says this. Leave the key out.")
    _check_listed(wanted, settings.team(team))
    roots = settings.roots(team)
    placed = {name: _placed(name, value, roots) for name, value in wanted.items()}
    _check_places(placed, roots)
    definition = define(_without_constraints(placed))
    _check_grid(definition)
    copied = settings.mlflow != NO_MLFLOW and {"experiment": f"{team}/{definition.name}"}
    kept = {**placed, "name": definition.name, "mlflow": copied}
    submission = Submission(team, definition.name, kept, priority, definition.slots, key=key, digest=digest)
    return Admitted(submission, timetable)


def check_again(definition: Json, team: str, settings: ServiceSettings) -> None:
    """`NotAllowedError` where a definition that was admitted holds what its team may not use any more."""
    _check_listed(definition, settings.team(team))
    _check_places(definition, settings.roots(team))


def _with_text_keys(value: object) -> object:
    """A document as JSON has it."""
    if isinstance(value, Mapping):
        return {_key_text(key): _with_text_keys(inner) for key, inner in value.items()}
    return [_with_text_keys(inner) for inner in value] if isinstance(value, list) else value


def _without_constraints(values: Mapping[str, object]) -> dict[str, object]:
    """A definition without the constraints of its search spaces: the definition's, those of models and of customers.

    Whatever else is called so stays, and is checked as the driver will get it.
    """
    inside = {name: _each_without(value) for name, value in values.items() if name in ("data", "models")}
    return {**_unconstrained(values), **inside}


def _each_without(value: object) -> object:
    """The customers of `data` and the entries of `models`, one or several of them."""
    if isinstance(value, list):
        return [_each_without(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if "estimator" in value:
        return _unconstrained(value)
    return {name: _unconstrained(item) if isinstance(item, Mapping) else item for name, item in value.items()}


def _unconstrained(options: Mapping[str, object]) -> dict[str, object]:
    """Options whose search space has no constraints."""
    space = options.get("search_space")
    if not isinstance(space, Mapping):
        return dict(options)
    return {**options, "search_space": {key: value for key, value in space.items() if key != "constraints"}}


def _key_text(key: object) -> str:
    return {True: "true", False: "false"}[key] if isinstance(key, bool) else "" if key is None else str(key)


def _priority(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > MOST_PRIORITY:
        raise DefinitionError.about(
            "priority",
            f"{shorten(repr(value))} is not a whole number from -{MOST_PRIORITY} to {MOST_PRIORITY}; the "
            "highest of a team is first.",
        )
    return value


def _timetable(value: object, now: float) -> Timetable | None:
    if value is None:
        return None
    if isinstance(value, str):
        value = {"cron": value}
    if not isinstance(value, Mapping) or not {"cron"} <= value.keys() <= {"cron", "time_zone"}:
        raise DefinitionError.about(
            "schedule", "a cron expression such as `0 3 * * 1`, or {cron: …, time_zone: Europe/Berlin}, is expected."
        )
    found = Timetable(**{name: str(text) for name, text in value.items()})
    next_time(found.cron, found.time_zone, now)
    return found


def _check_listed(values: Mapping[str, object], allowed: Team) -> None:
    for reference in Definition.references(cast(Json, values)):
        if reference.kind == "code":
            _check_code(reference, allowed)
        elif reference.kind == "parameter" and (reference.text or values.get("objective") is None):
            raise NotAllowedError.about(
                reference.key,
                "it names a file or an address, which a model's library opens by itself. Leave the "
                "key out; a parameter of your own code may have numbers, or another name.",
            )


def _check_code(reference: Reference, allowed: Team) -> None:
    """`NotAllowedError` for code that the server's configuration does not list for the team."""
    if reference.key == "allow_code":
        if not allowed.allow_pickle:
            raise NotAllowedError.about(
                "allow_code",
                "pickles are code, which this server's configuration does not allow your team. Leave the key out.",
            )
    elif is_file(reference.text):
        raise NotAllowedError.about(
            reference.key,
            f"{shorten(repr(reference.text))} is a file of code, which no server takes. Have its "
            "module installed and listed in the server's configuration.",
        )
    elif reference.text not in allowed.code:
        listed = f" Listed: {name_list(allowed.code)}." if allowed.code else " None is."
        raise NotAllowedError.about(
            reference.key,
            f"{shorten(repr(reference.text))} is code that this server's configuration does not list "
            f"for your team.{did_you_mean(reference.text, list(allowed.code))}{listed}",
        )


def _placed(name: str, value: object, roots: tuple[str, ...]) -> object:
    """A key's value with every path in it absolute, below one of the roots."""
    if name not in ("data", "manifest", "portfolio") or (name == "portfolio" and value in (SHIPPED, NO_PORTFOLIO)):
        return value
    if isinstance(value, list):
        return [place_of(item, roots, name) if isinstance(item, str) else item for item in value]
    if isinstance(value, Mapping) and name == "data":
        return {customer: _placed_entry(item, f"data.{customer}", roots) for customer, item in value.items()}
    return place_of(value, roots, name) if isinstance(value, str) else value


def _placed_entry(item: object, key: str, roots: tuple[str, ...]) -> object:
    """A customer's file, or options with its path."""
    if isinstance(item, str):
        return place_of(item, roots, key)
    path = item.get("path") if isinstance(item, Mapping) else None
    return {**cast(Json, item), "path": place_of(path, roots, f"{key}.path")} if isinstance(path, str) else item


def place_of(text: str, roots: tuple[str, ...], key: str) -> str:
    """Where a name is below the roots that a team may read; `NotAllowedError` where it is not below them.

    roots: absolute folders, and URIs. Of several folders a relative name is in the first one that has it.
    """
    folders = [root for root in roots if not is_uri(root)]
    if is_uri(text):
        if any(_below_uri(text, root) for root in roots if is_uri(root)):
            return text
        raise NotAllowedError.about(
            key,
            f"{shorten(repr(_shown(text)))} is not below a bucket that this server's configuration lists for "
            "your team, or holds what an address should not: `..`, a user, a query.",
        )
    if not text.strip() or "\0" in text or len(text) > LONGEST_NAME:
        raise DefinitionError.about(
            key, f"{shorten(ascii(text))} is no name of a file or folder, which has up to {LONGEST_NAME} characters."
        )
    if ".." in re.split(r"[/\\]", text) or text.startswith("~"):
        raise NotAllowedError.about(key, f"{shorten(repr(text))} holds `..` or `~`. {_expected(folders)}")
    if os.path.isabs(text):
        path = os.path.normpath(text)
        if any(_below(path, root) for root in folders):
            return path
        raise NotAllowedError.about(
            key, f"{shorten(repr(text))} is not below what your team may read. {_expected(folders)}"
        )
    if not folders:
        raise NotAllowedError.about(
            key, "this server has no folder that your team may read. Its owner gives one by --data."
        )
    first = re.split(r"[*?\[]", text)[0].partition("/")[0]
    root = next((root for root in folders if first and os.path.lexists(os.path.join(root, first))), folders[0])
    return os.path.normpath(os.path.join(root, text))


def _expected(folders: list[str]) -> str:
    """What to give; where folders are on the server's machine is no matter of who asks."""
    if not folders:
        return "Name a file once the server's owner has given your team a folder by --data."
    return f"Give a name below {'your folder' if len(folders) == 1 else 'one of your folders'}, such as churn.csv."


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _below_uri(text: str, root: str) -> bool:
    """Whether a URI is below another, however a client reads it: as it stands, or with its escapes taken back."""
    plain = unquote(text)
    strange = (
        re.search(r"[\s\\@?#%\x00-\x1f\x7f]", text) or ".." in plain.split("/") or "//" in text.partition("://")[2]
    )
    return not strange and _below(text, root)


def _shown(uri: str) -> str:
    """A URI without user and query, which may be secret."""
    try:
        parts = urlsplit(uri)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    except ValueError:
        return f"{uri.partition('://')[0]}://…"


def _check_places(values: Mapping[str, object], roots: tuple[str, ...]) -> None:
    """What `_placed` has not seen: whichever key names it, nothing may be outside the roots."""
    for reference in Definition.references(cast(Json, values)):
        if reference.kind == "path" and reference.key == "portfolio" and reference.text in (SHIPPED, NO_PORTFOLIO):
            continue
        if reference.kind in ("path", "uri") and place_of(reference.text, roots, reference.key) != reference.text:
            raise NotAllowedError.about(
                reference.key, f"{shorten(repr(reference.text))} is not below what your team may read."
            )


def _check_grid(definition: Definition) -> None:
    """A grid that is too large is refused before it waits in the queue; `DefinitionError`."""
    if not isinstance(definition.algorithm, Grid):
        return
    spaces = [definition.search_space, *(entry.search_space for entry in definition.models)]
    try:
        for space in spaces:
            if isinstance(space, SearchSpace) and not space.constraints:
                definition.algorithm.size(space)
    except SpaceError as error:
        raise DefinitionError.about("algorithm", f"{error}.") from error
