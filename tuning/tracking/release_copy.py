"""The copy of releases in MLflow's registry: what serves now, and what served before it.

Like the copy of a run it is made by a process of its own, `tuning mlflow sync`, after what it copies is in place, and
never in the way of that: what an outage leaves out, the next command copies.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass

from tuning.basics.environment import environment_set, import_environment
from tuning.basics.wording import amount, command, duration
from tuning.definition.definition import Definition
from tuning.definition.options import MLflowOptions
from tuning.errors import RunError, TuningError
from tuning.runs.plan_file import frozen_definition
from tuning.serving.release import RELEASES, Release
from tuning.serving.releases import Releases
from tuning.storage.names import mask
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.copy.live import HANDED
from tuning.tracking.copy.loop import FIRST_PAUSE_S, LONGEST_PAUSE_S
from tuning.tracking.copy.sync import quiet_mlflow
from tuning.tracking.identity import experiment_name
from tuning.tracking.registry import CHAMPION, Registry
from tuning.tracking.settings import (
    URI_VARIABLE,
    TrackingSettings,
    default_artifacts,
    masked,
    tracking_uri_of,
    without_secrets,
)

CUSTOMERS, NONE = "customers", "none"  # what `mlflow.registered_models` may be beside "release"
COPIED = "mlflow/copied.json"  # in the champions' folder: what is in MLflow, so that nobody has to look there
PATIENCE_S = 10.0
LONGEST_S, LONGEST_S_PER_MODEL = 600.0, 0.5  # then a copy that a command waits for is ended
#: What a registered model of a customer's own costs in a SQLite file: 60 small ones took 8.2 core-seconds.
SECONDS_PER_MODEL = 0.14


@dataclass(frozen=True)
class ReleaseReport:
    """How the copy of a release stands. where: the store, secrets masked. models: registered or found. error: what
    keeps it from being complete; empty when it is."""

    release: int
    where: str
    models: int = 0
    seconds: float = 0.0
    error: str = ""

    @property
    def complete(self) -> bool:
        return not self.error


def is_champions(directory: RunDirectory) -> bool:
    """Whether a folder is one of champions, not a run's."""
    return any(True for _ in directory.list(RELEASES))


def release_settings(
    releases: Releases, tracking_uri: str | None = None, experiment: str | None = None
) -> TrackingSettings:
    """Where releases are copied to; what is None is as the definition says of the newest run that one of them took.

    Raises:
        RunError: no such run is there any more.
        PlanError: a remote storage without a tracking URI.
    """
    definition, directory = _definition(releases), releases.directory
    uri = tracking_uri_of(directory, tracking_uri or definition.mlflow.tracking_uri)
    return TrackingSettings(
        directory=directory.uri,
        tracking_uri=uri,
        experiment=experiment_name(experiment or definition.mlflow.experiment or definition.name),
        run=releases.name,
        record_models=definition.mlflow.registered_models,
        artifacts=default_artifacts(directory, uri),
    )


def copy_in_child(releases: Releases) -> str:
    """Bring MLflow up to date; a sentence on where it is, or that it is behind; empty where nothing was to be done.

    Never raises: the release is in force whatever becomes of its copy.
    """
    try:
        options, newest = _definition(releases).mlflow, releases.current()
        if not options.enabled or options.registered_models == NONE:
            return ""
        settings = release_settings(releases)
        if _is_copied(settings, releases, newest):
            return ""
    except (TuningError, OSError) as error:
        return _behind(releases, str(error))
    command = [sys.executable, "-m", "tuning.cli", "mlflow", "sync", mask(settings.directory)]
    command += ["--patience", str(PATIENCE_S), "--output", "json"]
    environment = {**os.environ, HANDED: settings.to_json(), **import_environment()}
    longest = LONGEST_S + LONGEST_S_PER_MODEL * len(releases.champions(newest))
    try:
        done = subprocess.run(  # noqa: S603  # our own interpreter and our own words
            command, env=environment, capture_output=True, text=True, timeout=longest, stdin=subprocess.DEVNULL
        )
        report = ReleaseReport(**json.loads(done.stdout.splitlines()[-1])["report"])
    except subprocess.TimeoutExpired:
        return _behind(releases, f"it took longer than {duration(longest)} and was ended")
    except OSError as error:
        return _behind(releases, str(error))
    except (ValueError, LookupError, TypeError):
        said = without_secrets(done.stderr, settings.tracking_uri).strip().rpartition("\n")[2]
        return _behind(releases, said or f"its process ended with exit code {done.returncode}")
    if report.error:
        return _behind(releases, report.error)
    return f"release {report.release} of {releases.name} is in MLflow, {report.where}: {_found_as(settings)}"


def copy_releases(settings: TrackingSettings, patience: float) -> ReleaseReport:
    """Copy what is not in MLflow yet. Doing it twice changes nothing.

    patience: seconds that the store may fail.
    """
    started, pause = time.monotonic(), FIRST_PAUSE_S
    releases = Releases.of_folder(RunDirectory(settings.directory))
    newest = releases.current()
    report = ReleaseReport(newest.number, mask(settings.tracking_uri))
    while True:
        try:
            with quiet_mlflow(), environment_set({URI_VARIABLE: settings.tracking_uri}):  # MLflow asks it for models
                registry = Registry(settings, releases)
                each = settings.record_models == CUSTOMERS
                models = registry.register_customers(newest) if each else registry.register_release(newest)
        except TuningError as error:
            return _ended(report, started, error=str(error))
        except Exception as error:  # whatever MLflow or a database driver raises is an outage
            if time.monotonic() - started >= patience:
                said = masked(f"{type(error).__name__}: {error}", settings.tracking_uri)
                return _ended(report, started, error=said)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)
        else:
            releases.directory.write(COPIED, json.dumps(_mark(settings, newest)).encode())
            return _ended(report, started, models=models)


def registration_cost(options: MLflowOptions, customers: int) -> str:
    """What registering each customer's model costs, as a sentence of a plan; empty where that is not asked for."""
    if not options.enabled or options.registered_models != CUSTOMERS:
        return ""
    seconds = duration(customers * SECONDS_PER_MODEL)
    models = amount(customers, "registered model")
    return (
        f"registered_models: customers: MLflow gets {models}, which takes about {seconds} where all are new "
        f"({SECONDS_PER_MODEL:g} s each); `release` makes one of all"
    )


def _definition(releases: Releases) -> Definition:
    """That of the newest run that a release took; `RunError` where none is there any more."""
    for release in releases.last(len(releases.numbers())):
        if release.run is not None:
            with suppress(TuningError, OSError):
                return frozen_definition(releases.run_directory(release.run))
    raise RunError(f"no run of {releases.name} is there any more, so nothing says whether releases are copied.")


def _ended(report: ReleaseReport, started: float, **values: object) -> ReleaseReport:
    return ReleaseReport(**{**asdict(report), "seconds": round(time.monotonic() - started, 2), **values})


def _behind(releases: Releases, why: str) -> str:
    return (
        f"MLflow is behind the releases of {releases.name}: {why.rstrip('.')}. The next promotion, refresh or rollback "
        f"copies them, or: {command('mlflow', 'sync', releases.directory.shown)}"
    )


def _found_as(settings: TrackingSettings) -> str:
    name = f"{settings.run}-CUSTOMER" if settings.record_models == CUSTOMERS else settings.run
    return f"models:/{name}@{CHAMPION}"


def _mark(settings: TrackingSettings, release: Release) -> dict[str, str]:
    place = [settings.tracking_uri, settings.experiment, settings.record_models]
    return {
        "place": hashlib.sha256(json.dumps(place).encode()).hexdigest(),
        "release": hashlib.sha256(release.encoded()).hexdigest(),
    }


def _is_copied(settings: TrackingSettings, releases: Releases, release: Release) -> bool:
    try:
        return bool(json.loads(releases.directory.read(COPIED)) == _mark(settings, release))
    except (FileNotFoundError, ValueError):
        return False
