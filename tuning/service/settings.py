"""How a server is set up: the options of `tuning serve`, and the teams of its configuration file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, IPvAnyNetwork, ValidationError

from tuning.basics.user_folder import user_folder
from tuning.definition.complaints import refused
from tuning.definition.yaml_file import load_yaml
from tuning.errors import DefinitionError
from tuning.service.names import Names
from tuning.storage.names import is_uri, mask

GB = 2**30
NO_MLFLOW = "none"  # in place of a tracking URI
SECRET_FILES = ("TUNING_TOKEN_FILE", "PGPASSFILE")  # variables that name files with secrets


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Quotas(_Settings):
    """What a team may have at once, or in a day. None: no limit."""

    queued_runs: int | None = Field(1000, ge=0, description="Runs that wait.")
    slots: int | None = Field(None, ge=1, description="Slots at once.")
    trials_per_run: int | None = Field(None, ge=1, description="Studies times trials of one run.")
    core_seconds_per_day: float | None = Field(None, gt=0, description="Slots times seconds in the last 24 hours.")
    storage_gb: float | None = Field(None, gt=0, description="Size of the team's run directories.")
    requests_per_minute: int = Field(600, ge=1, description="Requests with one token.")


class Team(_Settings):
    """What one team may do.

    Attributes:
        share: of the slots, beside the other teams' shares.
        data: roots that the team may read, in place of the server's; a URI prefix such as `s3://bucket/churn` too.
        code: import paths that its definitions may name, such as `ours.metrics:profit`. They run as the server's user.
        allow_pickle: whether its definitions may say `allow_code`.
    """

    share: float = Field(1.0, gt=0)
    data: tuple[str, ...] | None = None
    code: tuple[str, ...] = ()
    allow_pickle: bool = False
    quotas: Quotas = Quotas()


class ServiceSettings(_Settings):
    """One server.

    Attributes:
        database: URL of SQLAlchemy.
        storage: folder or URI in which run directories are made, `<storage>/<team>/<run>`.
        work: local folder of what the service itself keeps of a run: its definition, log, and tables for pages.
        data: roots that definitions may read below.
        slots: that all running runs share; None with `ray_address`, whose slots are the cluster's.
        teams: by name; a team that is not named here has the defaults.
        mlflow: tracking URI that all runs copy to; None for a database in each run directory, "none" for no copy.
        config: the file that this is from.
        public_url: how people reach it, behind a reverse proxy.
        trusted_proxies: addresses and networks of the proxies that may say from where a request comes.
    """

    database: str
    storage: str
    work: Path
    data: tuple[str, ...] = ()
    slots: int | None = Field(None, ge=1)
    host: str = "127.0.0.1"
    port: int = Field(8420, ge=0, le=65535)
    ray_address: str | None = None
    teams: Mapping[str, Team] = {}
    mlflow: str | None = None
    config: Path | None = None
    public_url: str | None = None
    trusted_proxies: tuple[IPvAnyNetwork, ...] = (ip_network("127.0.0.1"), ip_network("::1"))
    body_bytes: int = Field(2**20, ge=1024, description="Largest body of a request.")
    body_seconds: float = Field(20.0, gt=0, description="In which a body has to come, beside 1 s for each 50 kB.")
    headers_seconds: float = Field(20.0, gt=0, description="In which the headers of a request have to come.")
    prediction_rows: int = Field(10_000, ge=1, description="Most rows that are predicted at once.")
    prediction_bytes: int = Field(2**24, ge=1024, description="Largest body of rows to predict.")
    champions_gb: float = Field(1.0, gt=0, description="Models of champions that stay in memory, of each team.")
    plan_seconds: float = Field(120.0, gt=0, description="Longest time of a plan.")
    plan_memory_gb: float = Field(8.0, gt=0, description="Memory of a plan.")
    requests_per_minute: int = Field(300, ge=1, description="Requests from one address without a valid token.")
    streams_per_token: int = Field(20, ge=1, description="Streams of events with one token at once.")

    def team(self, name: str) -> Team:
        return self.teams.get(name, Team())

    def roots(self, team: str) -> tuple[str, ...]:
        """What a team may read: absolute folders, and URIs without a slash at the end."""
        own = self.team(team).data
        given = self.data if own is None else own
        return tuple(root.rstrip("/") if is_uri(root) else os.path.abspath(root) for root in given)

    def names(self, team: str, run_directory: str = "") -> Names:
        """What a team calls its files and runs. run_directory: of a run, wherever it is."""
        own = {f"{self.storage}/{team}", os.path.dirname(run_directory), str(self.work)}
        paths = {place for place in {*self.roots(team), *own} - {""} if not is_uri(place)}
        folders = {*paths, *map(os.path.realpath, paths), *map(mask, filter(is_uri, own))}
        return Names(frozenset(folders - {"/"}))

    @property
    def missing_folders(self) -> list[str]:
        """The folders of data, the server's and the teams', that are not there."""
        roots = {*self.data, *(root for team in self.teams.values() for root in team.data or ())}
        return sorted(root for root in roots if not is_uri(root) and not os.path.isdir(root))

    @property
    def own_places(self) -> tuple[str, ...]:
        """Where the service keeps what is its own on this machine, which is no team's data: absolute paths.

        Its folders, database and configuration, and what its user keeps: tokens and passwords.
        """
        kept = [str(self.work), *([] if is_uri(self.storage) else [self.storage])]
        kept += [str(place) for place in (self.config, user_folder()) if place is not None]
        kept += [file for name in SECRET_FILES if (file := os.environ.get(name))]
        if re.match(r"sqlite(\+\w+)?:///", self.database):
            file = self.database.partition("///")[2].partition("?")[0]
            kept += [f"{file}{end}" for end in ("", "-wal", "-shm", "-journal")]
        return tuple(map(os.path.abspath, kept))


def read_settings(file: Path | None, given: Mapping[str, object], defaults: Mapping[str, object]) -> ServiceSettings:
    """The settings of a configuration file (YAML), with what is given in their place, and defaults for the rest.

    Relative folders in the file are relative to its own folder, others to the one where this is called.
    `DefinitionError` lists everything that is wrong.
    """
    written: Mapping[str, object] = {}
    if file is not None:
        try:
            written = load_yaml(file.read_text(encoding="utf-8"), str(file))
        except (OSError, UnicodeDecodeError) as error:
            raise DefinitionError(f"--config {str(file)!r} cannot be read: {error}.") from error
        written = {name: _from_folder(name, value, file.resolve().parent) for name, value in written.items()}
    here = {name: _from_folder(name, value, Path.cwd()) for name, value in given.items()}
    try:
        return ServiceSettings.model_validate({**defaults, **written, **here, "config": file})
    except ValidationError as error:
        raise refused(error, ServiceSettings) from None


def _from_folder(name: str, value: object, folder: Path) -> object:
    if name in ("storage", "work") and isinstance(value, str):
        return value if is_uri(value) else str(folder / value)
    if name == "data" and isinstance(value, list | tuple):
        return [root if not isinstance(root, str) or is_uri(root) else str(folder / root) for root in value]
    if name == "teams" and isinstance(value, Mapping):
        return {team: _team_from(options, folder) for team, options in value.items()}
    return value


def _team_from(options: object, folder: Path) -> object:
    if not isinstance(options, Mapping):
        return options
    return {name: _from_folder(name, value, folder) for name, value in options.items()}
