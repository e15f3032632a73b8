"""What a copy needs to know, and what it reports: two values that travel between processes."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import PurePath
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from tuning.basics.environment import import_environment
from tuning.basics.wording import kinds_text
from tuning.errors import DefinitionError, PlanError
from tuning.records.ownership import Term, claim_file
from tuning.records.schema import FINISHED, TrialRecord
from tuning.storage.names import is_uri, mask
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.mlflow_names import TrackedSearch

HANDED = "TUNING_MLFLOW_COPY"  # a variable, because a command line is seen by everybody on the machine
ENDED = "ended\n"  # on the standard input of a child that follows a run: the run has ended
URI_VARIABLE = "MLFLOW_TRACKING_URI"
DATABASE = "mlflow.db"
ARTIFACTS = "mlruns"  # MLflow's own name for the folder beside its database
REQUEST_TIMEOUT_S = 15  # unless MLFLOW_HTTP_REQUEST_TIMEOUT says otherwise
MANY_MODELS = 100
SECRET_VARIABLES = ("MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN")
SECRET_NAMES = "secret|token|password|key|signature"  # noqa: S105  # a pattern that names match


@dataclass(frozen=True, slots=True)
class TrackingSettings:
    """What a copy is to do; travels to the process that makes the copy.

    Attributes:
        directory: The run directory's URI.
        tracking_uri: Any URI that MLflow knows.
        experiment: The experiment's name.
        run, token: Of the search, see `mlflow_names.TrackedSearch`.
        record_trials: "all", "top:K" (the best K of each study, written when it ends) or "none" (studies only).
        models: Whether winners are logged as models.
        artifacts: Where a database's experiment keeps its artifacts when we create it.
    """

    directory: str
    tracking_uri: str
    experiment: str
    run: str
    record_trials: str = "all"
    models: bool = False
    artifacts: str | None = None
    token: str = ""

    @property
    def search(self) -> TrackedSearch:
        """What the ids of the runs in MLflow are derived from."""
        return TrackedSearch(self.experiment, self.run, self.token)

    def environment(self) -> dict[str, str]:
        """Return the environment of a child process that is handed these settings."""
        return {**os.environ, HANDED: json.dumps(asdict(self)), **import_environment()}


def handed_settings() -> TrackingSettings | None:
    """Return the settings that the process which started this one has handed over; None when a user has called."""
    text = os.environ.pop(HANDED, None)
    return None if text is None else TrackingSettings(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Selection:
    """`record_trials`: at most `limit` trials of each study get runs, the best ones; None is all of them.

    >>> Selection.parse("top:5"), Selection.parse("all").limit, Selection.parse("none").limit
    (Selection(limit=5), None, 0)
    """

    limit: int | None

    @property
    def short(self) -> bool:
        """Whether runs hold only what somebody looks for among a million of them: where one trial of each is enough."""
        return self.limit == 1

    @staticmethod
    def parse(text: str) -> Selection:
        if text in ("all", "none"):
            return Selection(None if text == "all" else 0)
        match = re.fullmatch(r"top:([1-9]\d{0,8})", text)
        if match is None:
            raise DefinitionError(
                f"record_trials is {text!r}; it must be 'all', 'none' or 'top:K' with a whole number K, "
                "such as 'top:5'."
            )
        return Selection(int(match[1]))

    def best(self, trials: Iterable[TrialRecord], winner: int | None) -> list[TrialRecord]:
        """Return the chosen trials of one study: the winner first, then finished ones by score, then by number."""

        def rank(trial: TrialRecord) -> tuple[bool, bool, float, int]:
            scored = math.isfinite(trial.loss)
            last = trial.state != FINISHED or not scored
            return (trial.trial != winner, last, trial.loss if scored else 0.0, trial.trial)

        return sorted(trials, key=rank)[: self.limit]


def logs_models(chosen: str, studies: int) -> bool:
    """Return whether winners are logged as models; `record_models` may be "auto".

    A model costs 0.1 s in MLflow, hundreds of times what a trial costs.
    """
    return chosen == "all" or (chosen == "auto" and studies <= MANY_MODELS)


@dataclass(frozen=True, slots=True)
class CopyStatus:
    """How the copy stands.

    Attributes:
        trials, studies: Runs written or found complete in this session.
        copied: Parts that were read and written.
        pending: Parts that were not, and studies whose trials wait for its end.
        models: Logged or found.
        models_pending: To be logged.
        rejected: Runs that MLflow refuses for their content, damaged parts and damaged models.
        error: The last one, secrets masked; None after a success.
        note: What is to be said of how runs are written, if anything.
        healthy: False while the store or the copying process fails.
        abandoned: The run was followed, and its process died before the run had ended.
    """

    trials: int = 0
    studies: int = 0
    copied: int = 0
    pending: int = 0
    models: int = 0
    models_pending: int = 0
    rejected: int = 0
    error: str | None = None
    note: str | None = None
    healthy: bool = True
    abandoned: bool = False

    @property
    def not_copied(self) -> dict[str, int]:
        """How many of each kind are not in MLflow. Models are counted when all else is copied."""
        counts = {
            "record_parts": self.pending,
            "models": self.models_pending,
            "refused_runs_or_models": self.rejected,
        }
        return {what: number for what, number in counts.items() if number}

    @property
    def missing(self) -> str:
        """The same in words; empty when everything is there."""
        return kinds_text(self.not_copied)

    @property
    def complete(self) -> bool:
        """Whether nothing is missing in MLflow."""
        return self.healthy and not self.not_copied and not self.abandoned


def settings_of(
    directory: RunDirectory,
    term: Term,
    tracking_uri: str | None = None,
    experiment: str | None = None,
    record_trials: str | None = None,
    record_models: str | None = None,
) -> TrackingSettings:
    """Return the settings of the run in a folder; what is None is as the run's definition says.

    Raises:
        DefinitionError: `record_trials` is none that there is.
        PlanError: A remote run directory without a tracking URI.
    """
    from tuning.definition.mlflow_options import trials_recorded
    from tuning.runs.plan_file import frozen_definition, read_names  # pydantic and more: a child is given settings

    definition, names = frozen_definition(directory, term), read_names(directory, term)
    studies = len(names.studies) + len(names.ended)
    options, saves_models = definition.mlflow, definition.objective is None and definition.save_models
    uri = tracking_uri_of(directory, tracking_uri or options.tracking_uri)
    trials = trials_recorded(record_trials or options.record_trials, studies)
    Selection.parse(trials)
    return TrackingSettings(
        directory=directory.uri,
        tracking_uri=uri,
        experiment=experiment or options.experiment or definition.name,
        run=names.run,
        record_trials=trials,
        models=saves_models and logs_models(record_models or options.record_models, studies),
        artifacts=default_artifacts(directory, uri),
        token=token_of(directory),
    )


def token_of(directory: RunDirectory) -> str:
    """The random name of the run's first owner: another run in the same folder has another one."""
    try:
        return str(json.loads(directory.read(claim_file(1)))["folder"])
    except FileNotFoundError:
        return ""


def tracking_uri_of(directory: RunDirectory, chosen: str | None) -> str:
    """Where a run's copy goes: what its definition chose, else MLFLOW_TRACKING_URI, else its own database."""
    return chosen or os.environ.get(URI_VARIABLE) or default_tracking_uri(directory)


def how_to_look(tracking_uri: str, experiment: str) -> str:
    """What a user does to see the copy: an address to open, or a command; secrets masked."""
    if tracking_uri.startswith(("http://", "https://")):
        return f"{mask(tracking_uri)} (experiment {experiment})"
    if is_uri(tracking_uri):
        return f"mlflow ui --backend-store-uri {shlex.quote(mask(tracking_uri))}"
    return f"{tracking_uri} (experiment {experiment})"  # such as `databricks`


def default_tracking_uri(directory: RunDirectory) -> str:
    """`sqlite:///<run directory>/mlflow.db`; only a local directory can hold a database."""
    if not directory.local:
        raise PlanError(
            f"The run directory {directory.shown} is not on a local disk, so MLflow's default "
            "database cannot be placed in it. Set the tracking URI (a server, PostgreSQL or sqlite:///file), "
            "or switch MLflow off."
        )
    return sqlite_uri(directory.path(DATABASE))


def sqlite_uri(path: str) -> str:
    """The URI of a SQLite file; characters with a meaning in a URI are escaped."""
    escaped = path.replace("?", "%3F") if unquote(path) == path else path.replace("%", "%25").replace("?", "%3F")
    # Of what stands behind `sqlite:///` MLflow makes folders, escapes and all; behind a driver's name it makes none.
    return f"sqlite{'' if escaped == path else '+pysqlite'}:///{escaped}"


def default_artifacts(directory: RunDirectory, tracking_uri: str) -> str | None:
    """Where an experiment that we create keeps artifacts: beside a SQLite file, in the run directory for
    another database; a server decides for itself."""
    scheme = tracking_uri.split(":")[0].split("+")[0]
    if scheme == "sqlite":
        database = tracking_uri.split("?")[0].partition("://")[2].removeprefix("/").removeprefix("file:")
        return absolute(str(PurePath(unquote(database)).parent / ARTIFACTS))
    if scheme in ("postgresql", "mysql", "mssql"):
        return f"{directory.uri.rstrip('/')}/{ARTIFACTS}"
    return None


def absolute(place: str) -> str:
    """A path from the root, as a URI where MLflow would take escapes for something else; a URI stays as it is."""
    path = place if re.match(r"[a-z][a-z0-9+.-]*:", place) else os.path.abspath(place)
    return path if unquote(path) == path or is_uri(path) else PurePath(path).as_uri()


def masked(message: str, tracking_uri: str, lines: int = 3) -> str:
    """Return the first lines of a text without the secrets of the tracking URI and of MLflow's environment."""
    parts = urlsplit(tracking_uri)
    found = [parts.password or parts.username, *map(os.environ.get, SECRET_VARIABLES)]  # or a token before the host
    found += [value for name, value in parse_qsl(parts.query) if re.search(SECRET_NAMES, name, re.IGNORECASE)]
    secrets = {text for value in found if value for text in (value, quote(value, safe=""), unquote(value))}
    message = message.replace(tracking_uri, mask(tracking_uri))
    for secret in sorted(secrets, key=len, reverse=True):
        message = message.replace(secret, "***")
    return "\n".join([line.strip() for line in message.splitlines() if line.strip()][:lines])[:2000]
