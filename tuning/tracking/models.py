"""Models in MLflow 3: winners, found on their customer's run, and releases; which are there, which are to be made."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from tuning.models.model_files import describe_model, saved_files
from tuning.records.figures import shown_in
from tuning.records.schema import OK, StudyRecord
from tuning.storage.names import slug
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.mlflow_names import TrackedSearch
from tuning.tracking.model_folder import save_winner
from tuning.tracking.tracked_runs import CUSTOMER_TAG, KEY_TAG, PREFIX, RUN_TAG, SEARCH_TAG, params_of

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import LoggedModel
    from mlflow.models import Model

METRICS = tuple(each.name for each in shown_in("mlflow_model"))
PAGE = 50
NOT_FOUND = 404
DIGEST_TAG = f"{PREFIX}model_sha256"
FINAL_FIT_TAG = f"{PREFIX}final_fit"


class NoModelsError(Exception):
    """A server keeps no models."""


def has_model(record: StudyRecord) -> bool:
    """Return whether there is something to log."""
    return record.status == OK and record.model_path is not None


class ModelLogger:
    """Logs each model once: one that is there, complete, is found by its key and left alone. experiment: its id."""

    def __init__(self, client: MlflowClient, experiment: str, search: TrackedSearch) -> None:
        import mlflow.pyfunc  # noqa: F401  # a quarter of a second that the first model would take

        self.client, self.experiment, self.search = client, experiment, search

    def log_winner(self, record: StudyRecord, directory: RunDirectory, run_id: str) -> None:
        """Log the winner of a study. run_id: MLflow's id of its customer's run.

        Raises `RunError` where the model is damaged, and `NoModelsError` where the server keeps none.
        """
        key, path, digest = self.search.id(record.study), record.model_path, str(record.model_sha256)
        if self._there(key, digest):
            return
        assert path is not None
        description = describe_model(directory, path, record.model_sha256)

        def write(folder: Path, own: Model) -> None:
            source = folder / "model"
            source.mkdir()
            for file in saved_files(directory, path, record.model_sha256):
                (source / file.name).write_bytes(file.content)
            save_winner(folder / "mlflow", source, description, own)

        config = {**({"ensemble": record.ensemble} if record.ensemble else {}), **(record.config or {})}
        tags = {RUN_TAG: self.search.run, CUSTOMER_TAG: record.customer, FINAL_FIT_TAG: str(record.final_fit)}
        params, name = params_of(config, description["family"]), slug(record.customer)
        self.log(key, digest, name, description["task"], params, write, tags=tags, run_id=run_id, record=record)

    def log(
        self,
        key: str,
        digest: str,
        name: str,
        kind: str,
        params: Mapping[str, str],
        write: Callable[[Path, Model], None],
        *,
        tags: Mapping[str, str] = MappingProxyType({}),
        run_id: str | None = None,
        record: StudyRecord | None = None,
    ) -> str:
        """Log a model unless it is there; its id.

        Args:
            key: `TrackedSearch.id`, by which the model is found again.
            digest: Of its content; a model with this key and another digest is deleted.
            name, kind, params, tags: What MLflow shows of it.
            write: Makes the folder `mlflow` of its files in a folder, given MLflow's own model.
            run_id: MLflow's id of the run that the model is of.
            record: Of the study with its scores.
        """
        from mlflow.entities import LoggedModelOutput, LoggedModelStatus, Metric
        from mlflow.models import Model

        if there := self._there(key, digest):
            return there
        if key in self.logged:  # of a study that was resumed with more trials
            self.client.delete_logged_model(self.logged.pop(key).model_id)
        created = self.client.create_logged_model(
            experiment_id=self.experiment,
            name=name,
            source_run_id=run_id,
            tags={KEY_TAG: key, SEARCH_TAG: self.search.id(), DIGEST_TAG: digest, **tags},
            params=dict(params),
            model_type=kind,
        )
        model_id = str(created.model_id)
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), Model(run_id=run_id, model_id=model_id, model_uuid=model_id))
            self.client.log_model_artifacts(model_id, str(Path(folder, "mlflow")))
        if run_id is not None and record is not None:
            when = int((record.started + record.seconds) * 1000)
            scores = {name: value for name in METRICS if (value := getattr(record, name)) is not None}
            metrics = [Metric(*score, when, 0, model_id=model_id, run_id=run_id) for score in scores.items()]
            self.client.log_batch(run_id, metrics=metrics)
            self.client.log_outputs(run_id, [LoggedModelOutput(model_id, 0)])
        self.logged[key] = self.client.finalize_logged_model(model_id, LoggedModelStatus.READY)
        return model_id

    def _there(self, key: str, digest: str) -> str | None:
        found = self.logged.get(key)
        return str(found.model_id) if found is not None and found.tags.get(DIGEST_TAG) == digest else None

    @cached_property
    def logged(self) -> dict[str, LoggedModel]:
        """The search's models by key; those that were cut short are deleted, to be made again."""
        from mlflow.entities import LoggedModelStatus
        from mlflow.exceptions import MlflowException

        found, token = {}, None
        condition = f"tags.`{SEARCH_TAG}` = '{self.search.id()}'"
        while True:
            try:
                page = self.client.search_logged_models(
                    [self.experiment], condition, max_results=PAGE, page_token=token
                )
            except MlflowException as error:
                if error.get_http_status_code() != NOT_FOUND:
                    raise
                raise NoModelsError(f"models are not in MLflow: its server is older than MLflow 3 ({error})") from error
            for model in page:
                if model.status == LoggedModelStatus.READY:
                    found[model.tags[KEY_TAG]] = model
                else:
                    self.client.delete_logged_model(model.model_id)
            token = page.token
            if not token:
                return found
