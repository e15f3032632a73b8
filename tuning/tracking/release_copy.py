"""The copy of releases in MLflow's registry: a registered model with versions for what serves and what served before.

It is made after what it copies is in place, and never in the way of that: what an outage leaves out, the next command
copies.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from tuning.basics.environment import environment_set
from tuning.basics.wording import command
from tuning.definition.definition import Definition
from tuning.errors import RunError, TuningError
from tuning.runs.plan_file import frozen_definition
from tuning.serving.release import Release
from tuning.serving.releases import Releases
from tuning.storage.names import mask, slug
from tuning.tracking.follow import FIRST_PAUSE_S, LONGEST_PAUSE_S, quiet_mlflow
from tuning.tracking.mlflow_names import experiment_name
from tuning.tracking.models import DIGEST_TAG
from tuning.tracking.release_folder import save_release
from tuning.tracking.settings import (
    URI_VARIABLE,
    TrackingSettings,
    default_artifacts,
    masked,
    tracking_uri_of,
)
from tuning.tracking.stores import open_store
from tuning.tracking.tracked_runs import PREFIX, params_of

if TYPE_CHECKING:
    from mlflow.entities.model_registry import RegisteredModel
    from mlflow.models import Model

NONE = "none"  # what `mlflow.registered_models` may be besides "release"
PATIENCE_S = 10.0
CHAMPION, PREVIOUS = "champion", "previous"  # MLflow's aliases
RELEASE_TAG = f"{PREFIX}release"
LINE_TAG = f"{PREFIX}champions"  # whose releases a registered model has: two may have the same name
EXISTS = "RESOURCE_ALREADY_EXISTS"


def release_settings(
    releases: Releases, tracking_uri: str | None = None, experiment: str | None = None
) -> TrackingSettings:
    """Return where releases are copied to; what is None is as the newest promoted or refreshed run defines it.

    Raises:
        RunError: No such run is there any more.
        PlanError: A remote storage without a tracking URI.
    """
    definition, directory = _definition(releases), releases.directory
    uri = tracking_uri_of(directory, tracking_uri or definition.mlflow.tracking_uri)
    name = experiment_name(experiment or definition.mlflow.experiment or definition.name)
    artifacts = default_artifacts(directory, uri)
    return TrackingSettings(directory.uri, uri, name, releases.name, artifacts=artifacts)


def bring_up_to_date(releases: Releases) -> str:
    """Copy the newest release; a sentence on where it is, or that MLflow is behind; empty without a copy.

    Never raises: the release is in force whatever becomes of its copy.
    """
    try:
        options, newest = _definition(releases).mlflow, releases.current()
        if not options.enabled or options.registered_models == NONE:
            return ""
        settings = release_settings(releases)
        error = copy_release(settings, releases, newest, PATIENCE_S)
    except (TuningError, OSError) as failure:
        error = str(failure)
    if error:
        return (
            f"MLflow is behind the releases of {releases.name}: {error.rstrip('.')}. The next promotion, refresh or "
            f"rollback copies them, or: {command('mlflow', 'sync', releases.directory.shown)}"
        )
    where = mask(settings.tracking_uri)
    return f"release {newest.number} of {releases.name} is in MLflow, {where}: models:/{releases.name}@{CHAMPION}"


def copy_release(settings: TrackingSettings, releases: Releases, newest: Release, patience: float) -> str:
    """Copy what is not in MLflow yet; why the copy is not complete, else nothing. Doing it twice changes nothing.

    patience: seconds that the store may fail.
    """
    until, pause = time.monotonic() + patience, FIRST_PAUSE_S
    while True:
        try:
            # MLflow prints, and asks the environment where models are.
            uri = environment_set({URI_VARIABLE: settings.tracking_uri})
            with quiet_mlflow(), uri, contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what MLflow recommends
                Registry(settings, releases).register(newest)
            return ""
        except TuningError as refusal:
            return str(refusal)
        except Exception as outage:  # whatever MLflow or a database driver raises
            if time.monotonic() >= until:
                return masked(f"{type(outage).__name__}: {outage}", settings.tracking_uri)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)


class Registry:
    """Brings the registered model of some champions up to date. What it raises but a `TuningError` is an outage."""

    def __init__(self, settings: TrackingSettings, releases: Releases) -> None:
        self._logger = open_store(settings.tracking_uri, settings.search, settings.artifacts).models()
        self._client, self._releases, self._name = self._logger.client, releases, releases.name

    def register(self, newest: Release) -> None:
        """Have the newest release and the one before it as versions, with their aliases.

        `RunError` where the model of that name is not of these champions, or the newest release's models are not what
        was written.
        """
        before, model = None, self._registered()
        if newest.parent is not None:
            with contextlib.suppress(TuningError):  # its models are gone
                before = self._version(self._releases.at(newest.parent))
        for alias, version in {CHAMPION: self._version(newest), PREVIOUS: before}.items():
            if version is not None and str(model.aliases.get(alias)) != version:
                self._client.set_registered_model_alias(self._name, alias, version)
            elif version is None and alias in model.aliases:
                self._client.delete_registered_model_alias(self._name, alias)

    def _version(self, release: Release) -> str:
        """The version that is a release, found or made."""
        digest = hashlib.sha256(release.encoded()).hexdigest()
        there = self._client.search_model_versions(f"name = '{self._name}'")
        found = [int(each.version) for each in there if each.tags.get(DIGEST_TAG) == digest]
        if found and max(found) >= release.number:
            return str(max(found))
        model_id = self._logged(release)
        while True:
            made = self._client.create_model_version(
                self._name,
                f"models:/{model_id}",
                tags={DIGEST_TAG: digest, RELEASE_TAG: str(release.number)},
                model_id=model_id,
            )
            if int(made.version) >= release.number:
                return str(made.version)
            self._client.delete_model_version(self._name, made.version)  # the number of a release that nobody copied

    def _logged(self, release: Release) -> str:
        """MLflow's id of a model with the release's files, found or made; a rollback has those of an earlier one."""
        content = f"{release.table}/{release.others['model_sha256']}" if release.others else str(release.table)
        key = self._logger.search.id(content)

        def write(folder: Path, own: Model) -> None:
            save_release(folder / "mlflow", self._releases, release, own)

        params = params_of({"release": release.number})
        return self._logger.log(key, content, slug(self._name), "release", params, write)

    def _registered(self) -> RegisteredModel:
        """The registered model of these champions, found or made."""
        from mlflow.exceptions import MlflowException

        line = f"{self._name} {self._releases.at(self._releases.numbers()[0]).maker[:12]}"  # who made the first one
        try:
            return self._client.create_registered_model(self._name, tags={LINE_TAG: line})
        except MlflowException as error:
            if error.error_code != EXISTS:
                raise
        model = self._client.get_registered_model(self._name)
        if model.tags.get(LINE_TAG) != line:
            raise RunError(
                f"MLflow has a registered model {self._name!r} that is not of these champions. Rename it there, or "
                "switch this copy off (mlflow: {registered_models: none})."
            )
        return model


def _definition(releases: Releases) -> Definition:
    """That of the newest run that a release took; `RunError` where none is there any more."""
    for release in releases.last(len(releases.numbers())):
        if release.run is not None:
            with contextlib.suppress(TuningError, OSError):
                return frozen_definition(releases.run_directory(release.run))
    raise RunError(f"no run of {releases.name} is there any more, so nothing says whether releases are copied.")
