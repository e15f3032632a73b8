"""Registered models of champions in MLflow: one whose versions are the releases, or one for each customer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tuning.errors import RunError, TuningError
from tuning.models.model_files import describe_model
from tuning.serving.champion import Champion
from tuning.serving.release import Release
from tuning.serving.releases import Releases
from tuning.storage.names import slug
from tuning.tracking.model_folder import save_mlflow_model, save_mlflow_release
from tuning.tracking.models import DIGEST_TAG, ModelLogger, NewModel, fetch
from tuning.tracking.release_folder import with_models, write_release
from tuning.tracking.settings import TrackingSettings
from tuning.tracking.stores.opening import open_store
from tuning.tracking.tracked_runs import CUSTOMER_TAG, PREFIX

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion, RegisteredModel
    from mlflow.models import Model

CHAMPION, PREVIOUS = "champion", "previous"  # MLflow's aliases
RELEASE_TAG = f"{PREFIX}release"
LINE_TAG = f"{PREFIX}champions"  # whose releases a registered model has: two may have the same name
PAGE = 1000
EXISTS = "RESOURCE_ALREADY_EXISTS"


def customer_name(name: str, customer: str) -> str:
    """The registered model of a customer alone. name: of the champions."""
    return f"{name}-{slug(customer)}"


class Registry:
    """Brings registered models up to date with releases. Whatever it raises but a `TuningError` is an outage."""

    def __init__(self, settings: TrackingSettings, releases: Releases) -> None:
        store = open_store(settings.tracking_uri, settings.search, settings.artifacts)
        logger = store.winners(releases.directory)
        assert isinstance(logger, ModelLogger)
        self._logger, self._client = logger, logger.client
        self._releases = releases

    def register_release(self, newest: Release) -> int:
        """One registered model: the newest release and the one before it as versions, with their aliases.

        `RunError` where the model of that name is not of these champions, or the newest release's models are not what
        was written. Gives back how many versions were found or made.
        """
        name = self._releases.name
        model = self._registered(name)
        before = None
        if newest.parent is not None:
            with suppress(TuningError):  # its models are gone
                before = self._version(name, self._releases.at(newest.parent))
        aliases: dict[str, str | None] = {CHAMPION: self._version(name, newest), PREVIOUS: before}
        self._set_aliases(name, model.aliases, aliases)
        return sum(each is not None for each in aliases.values())

    def register_customers(self, newest: Release) -> int:
        """A registered model for each customer, whose versions are the models that have served it; how many customers.

        Errors as of `register_release`.
        """
        name, (champions, _) = self._releases.name, with_models(self._releases, newest)
        there = {model.name: model for model in self._of_line()}
        for champion in champions:
            own = customer_name(name, champion.customer)
            model = there.get(own)
            if model is None or model.tags.get(DIGEST_TAG) != champion.model_sha256:
                self._register_customer(own, model or self._registered(own), champion, newest)
        return len(champions)

    def _register_customer(self, name: str, model: RegisteredModel, champion: Champion, newest: Release) -> None:
        digest, before = str(champion.model_sha256), model.aliases.get(CHAMPION)
        version = self._version_with(name, DIGEST_TAG, digest) or self._new_version(
            name,
            self._logged(self._of_customer(champion), lambda folder, own: self._write(champion, folder, own)),
            {DIGEST_TAG: digest, CUSTOMER_TAG: champion.customer, RELEASE_TAG: str(newest.number)},
        )
        aliases = {CHAMPION: version, PREVIOUS: model.aliases.get(PREVIOUS) if before in (None, version) else before}
        self._set_aliases(name, model.aliases, aliases)
        self._client.set_registered_model_tag(name, DIGEST_TAG, digest)  # last: from now on it is left alone

    def _version(self, name: str, release: Release) -> str:
        """The version that is a release, found or made."""
        digest = hashlib.sha256(release.encoded()).hexdigest()
        there = self._version_with(name, DIGEST_TAG, digest)
        if there is not None and int(there) >= release.number:
            return there
        content = f"{release.table}/{release.others['model_sha256']}" if release.others else str(release.table)
        new = NewModel(
            self._logger.search.id(content), slug(name), "release", config={"release": release.number}
        )  # a rollback has the models of an earlier one

        def write(folder: Path, own: Model) -> None:
            source = folder / "release"
            source.mkdir()
            save_mlflow_release(folder / "mlflow", write_release(self._releases, release, source), own)

        model_id, tags = self._logged(new, write), {DIGEST_TAG: digest, RELEASE_TAG: str(release.number)}
        made = self._new_version(name, model_id, tags)
        while int(made) < release.number:  # releases that nobody copied have their numbers, too
            self._client.delete_model_version(name, made)
            made = self._new_version(name, model_id, tags)
        return made

    def _logged(self, new: NewModel, write: Callable[[Path, Model], None]) -> str:
        """MLflow's id of a model with its files, found or made."""
        there = self._logger.logged.get(new.key)
        if there is not None:
            return str(there.model_id)
        model_id = self._logger.create(new, write)
        self._logger.finish(new, model_id)
        return model_id

    def _of_customer(self, champion: Champion) -> NewModel:
        key = self._logger.search.id(f"{champion.customer}/{champion.model_sha256}")
        tags = {CUSTOMER_TAG: champion.customer, DIGEST_TAG: str(champion.model_sha256)}
        return NewModel(key, slug(champion.customer), champion.answer, champion.model or "", tags=tags)

    def _write(self, champion: Champion, folder: Path, own: Model) -> None:

        assert champion.model_path is not None
        directory = self._releases.run_directory(champion.run)
        description = describe_model(directory, champion.model_path, champion.model_sha256)
        source = fetch(directory, champion.model_path, champion.model_sha256, folder)
        save_mlflow_model(folder / "mlflow", source, description, own)

    def _version_with(self, name: str, tag: str, value: str) -> str | None:
        """The newest version with a tag."""
        found = (each for each in self._client.search_model_versions(f"name = '{name}'") if each.tags.get(tag) == value)
        return max((str(each.version) for each in found), key=int, default=None)

    def _new_version(self, name: str, model_id: str, tags: dict[str, str]) -> str:
        made: ModelVersion = self._client.create_model_version(
            name, f"models:/{model_id}", tags=tags, model_id=model_id
        )
        return str(made.version)

    def _set_aliases(self, name: str, before: dict[str, str], after: dict[str, str | None]) -> None:
        for alias, version in after.items():
            if version is not None and str(before.get(alias)) != version:
                self._client.set_registered_model_alias(name, alias, version)
            elif version is None and alias in before:
                self._client.delete_registered_model_alias(name, alias)

    @cached_property
    def _line(self) -> str:
        """What tells these champions from others of the same name: whoever made the first release."""
        first = self._releases.at(self._releases.numbers()[0])
        return f"{self._releases.name} {first.maker[:12]}"

    def _of_line(self) -> Iterator[RegisteredModel]:
        """The registered models of these champions."""
        token = None
        while True:
            page = self._client.search_registered_models(
                f"tags.`{LINE_TAG}` = '{self._line}'", max_results=PAGE, page_token=token
            )
            yield from page
            token = page.token
            if not token:
                return

    def _registered(self, name: str) -> RegisteredModel:
        """A registered model of these champions, found or made."""
        from mlflow.exceptions import MlflowException

        try:
            return self._client.create_registered_model(name, tags={LINE_TAG: self._line})
        except MlflowException as error:
            if error.error_code != EXISTS:
                raise
        model = self._client.get_registered_model(name)
        if model.tags.get(LINE_TAG) != self._line:
            raise RunError(
                f"MLflow has a registered model {name!r} that is not of these champions. Rename it there, or switch "
                "this copy off (mlflow: {registered_models: none})."
            )
        return model
