"""Winners as MLflow 3 models, found on their customer's run: which are there, which are to be made."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tuning.records.figures import shown_in
from tuning.records.schema import OK, StudyRecord
from tuning.storage.names import slug
from tuning.storage.run_directory import RunDirectory
from tuning.tracking import mlflow_limits
from tuning.tracking.identity import TrackedSearch
from tuning.tracking.model_folder import save_mlflow_model
from tuning.tracking.tracked_runs import CUSTOMER_TAG, KEY_TAG, PREFIX, RUN_TAG, SEARCH_TAG

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import LoggedModel

METRICS = tuple(each.name for each in shown_in("mlflow_model"))
PAGE = 50
NOT_FOUND = 404
DIGEST_TAG = f"{PREFIX}model_sha256"
FINAL_FIT_TAG = f"{PREFIX}final_fit"


def has_model(record: StudyRecord) -> bool:
    """True when there is something to log."""
    return record.status == OK and record.model_path is not None


class NoModelsError(Exception):
    """A store keeps no models."""


class ModelLogger:
    """Logs each study's winner once: a model that is there, complete, is found by its key and left alone.

    experiment: its id. run_id: MLflow's id of the run with a key.
    """

    def __init__(
        self,
        client: MlflowClient,
        experiment: str,
        run_id: Callable[[str], str],
        directory: RunDirectory,
        search: TrackedSearch,
    ) -> None:
        import mlflow.pyfunc  # noqa: F401  # a quarter of a second that the first model would take

        self.client = client
        self.experiment = experiment
        self.run_id = run_id
        self.directory = directory
        self.search = search
        self.logged = self._logged()

    def log(self, record: StudyRecord) -> None:
        """Log one winner; its study's run must have been written in this session."""
        from mlflow.entities import LoggedModelOutput, LoggedModelStatus, Metric
        from mlflow.models import Model

        from tuning.models.customer_model import describe_model  # with pandas, like MLflow only where models are logged

        key = self.search.id(record.study)
        there = self.logged.get(key)
        if there is not None:
            if there.tags.get(DIGEST_TAG) == record.model_sha256:
                return
            self.client.delete_logged_model(there.model_id)  # of a study that was resumed with more trials
        assert record.model_path is not None
        description = describe_model(self.directory, record.model_path, record.model_sha256)
        run_id = self.run_id(key)
        created = self.client.create_logged_model(
            experiment_id=self.experiment,
            name=slug(record.customer),
            source_run_id=run_id,
            tags=self._tags(record, key),
            params=mlflow_limits.params(
                {
                    "family": description["family"],
                    **({"ensemble": record.ensemble} if record.ensemble else {}),
                    **(record.config or {}),
                }
            ),
            model_type=description["task"],
        )
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "model"), Path(folder, "mlflow")
            self._fetch(record, source)
            own = Model(run_id=run_id, model_id=created.model_id, model_uuid=created.model_id)
            save_mlflow_model(target, source, description, own)
            self.client.log_model_artifacts(created.model_id, str(target))
        when = int((record.started + record.seconds) * 1000)
        metrics = [
            Metric(name, value, when, 0, model_id=created.model_id, run_id=run_id)
            for name in METRICS
            if (value := getattr(record, name)) is not None
        ]
        self.client.log_batch(run_id, metrics=metrics)
        self.client.log_outputs(run_id, [LoggedModelOutput(created.model_id, 0)])
        self.logged[key] = self.client.finalize_logged_model(created.model_id, LoggedModelStatus.READY)

    def _logged(self) -> dict[str, LoggedModel]:
        from mlflow.exceptions import MlflowException

        try:
            return self._find()
        except MlflowException as error:
            if error.get_http_status_code() != NOT_FOUND:
                raise
            raise NoModelsError(f"models are not in MLflow: its server is older than MLflow 3 ({error})") from error

    def _find(self) -> dict[str, LoggedModel]:
        """The models that are there, by key; one that was cut short is deleted, to be made again."""
        from mlflow.entities import LoggedModelStatus

        found = {}
        token = None
        condition = f"tags.`{SEARCH_TAG}` = '{self.search.id()}'"
        while True:
            page = self.client.search_logged_models([self.experiment], condition, max_results=PAGE, page_token=token)
            for model in page:
                if model.status == LoggedModelStatus.READY:
                    found[model.tags[KEY_TAG]] = model
                else:
                    self.client.delete_logged_model(model.model_id)
            token = page.token
            if not token:
                return found

    def _tags(self, record: StudyRecord, key: str) -> dict[str, str]:
        return {
            KEY_TAG: key,
            SEARCH_TAG: self.search.id(),
            RUN_TAG: self.search.run,
            CUSTOMER_TAG: record.customer,
            DIGEST_TAG: str(record.model_sha256),
            FINAL_FIT_TAG: record.final_fit or "search",  # as before there was a choice
        }

    def _fetch(self, record: StudyRecord, target: Path) -> None:
        from tuning.models.customer_model import saved_files

        assert record.model_path is not None
        target.mkdir()
        for file in saved_files(self.directory, record.model_path, record.model_sha256):
            (target / file.name).write_bytes(file.content)
