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
FOLDERS = ("storage", "work", "data")  # keys with folders or URIs
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


class Team(_Settings):
    """What one team may do.

    Attributes:
        share: of the slots, in proportion to the other teams' shares.
        data: roots that the team may read, in place of the server's; a URI prefix such as `s3://bucket/churn` too.
        code: import paths that its definitions may name, such as `ours.metrics:profit`. They run as the server's user.
        allow_pickle: whether its definitions may say `allow_code`.
    """

    share: float = Field(1.0, gt=0)
    data: tuple[str, ...] | None = None
    code: tuple[str, ...] = ()
    allow_pickle: bool = False
    quotas: Quotas = Quotas()


def default_database() -> str:
    """The database of a server that is started in this folder."""
    return f"sqlite:///{os.path.abspath('service')}/service.db"


class ServiceSettings(_Settings):
    """One server: what its configuration file says. A key with a title is an option, too: the title names its value."""

    database: str = Field(
        default_factory=default_database,
        title="URL",
        description="sqlite:///FILE or postgresql://… (default: ./service/service.db); also TUNING_DATABASE.",
    )
    storage: str = Field(
        "service/runs", title="ROOT", description="Folder or URI for run directories (default: ./service/runs)."
    )
    work: Path = Field(
        Path("service/work"),
        title="FOLDER",
        description="What the service keeps of each run (default: ./service/work).",
    )
    data: tuple[str, ...] = Field(
        (".",), title="ROOT", description="Folder or URI that may be read (can be repeated; default: this one)."
    )
    slots: int | None = Field(None, ge=1, title="N", description="Trials at once of all runs (default: the CPUs).")
    host: str = Field("127.0.0.1", title="ADDRESS", description="Address to listen on (default: 127.0.0.1).")
    port: int = Field(8420, ge=0, le=65535, title="N", description="Port to listen on (default: 8420; 0: a free one).")
    ray_address: str | None = Field(
        None, title="HOST:PORT", description="Ray cluster on which all runs work, with its slots."
    )
    mlflow: str | None = Field(
        None, title="URI", description="MLflow that all runs are copied to, or none; also in --config."
    )
    public_url: str | None = Field(None, title="URL", description="How people reach it, behind a reverse proxy.")
    config: Path | None = None
    teams: Mapping[str, Team] = {}  # one that is not named here has the defaults
    #: Addresses and networks of the proxies that may say from where a request comes.
    trusted_proxies: tuple[IPvAnyNetwork, ...] = (ip_network("127.0.0.1"), ip_network("::1"))
    body_bytes: int = Field(2**20, ge=1024, description="Largest body of a request.")
    prediction_rows: int = Field(10_000, ge=1, description="Most rows that are predicted at once.")
    prediction_bytes: int = Field(2**24, ge=1024, description="Largest body of rows to predict.")
    champions_gb: float = Field(1.0, gt=0, description="Models of champions that stay in memory, of each team.")
    plan_seconds: float = Field(120.0, gt=0, description="Longest time of a plan.")
    plan_memory_gb: float = Field(8.0, gt=0, description="Memory of a plan.")
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


def read_settings(file: Path | None, given: Mapping[str, object]) -> ServiceSettings:
    """The settings of a configuration file (YAML), with what is given in their place.

    Relative folders in the file are relative to its own folder, others to the one where this is called.
    `DefinitionError` lists everything that is wrong.
    """
    written: Mapping[str, object] = {}
    if file is not None:
        try:
            written = load_yaml(file.read_text(encoding="utf-8"), str(file))
        except (OSError, UnicodeDecodeError) as error:
            raise DefinitionError(f"--config {str(file)!r} cannot be read: {error}.") from error
    fields = {name: ServiceSettings.model_fields[name].default for name in FOLDERS}
    folder = Path.cwd() if file is None else file.resolve().parent
    said = {**_placed(fields, Path.cwd()), **_placed(written, folder), **_placed(given, Path.cwd())}
    try:
        return ServiceSettings.model_validate({**said, "config": file})
    except ValidationError as error:
        raise refused(error, ServiceSettings) from None


def _placed(values: Mapping[str, object], folder: Path) -> dict[str, object]:
    """Values with the folders in them below another one."""

    def placed(value: object, name: str) -> object:
        if isinstance(value, Mapping):
            return _placed(value, folder)
        if isinstance(value, list | tuple):
            return [placed(each, name) for each in value]
        if name in FOLDERS and isinstance(value, str | Path) and not is_uri(str(value)):
            return str(folder / value)
        return value

    return {name: placed(value, name) for name, value in values.items()}
