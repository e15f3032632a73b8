"""Winners as MLflow 3 models, found on their customer's run: which are there, which are to be made."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tuning.models.model_files import describe_model, saved_files
from tuning.records.figures import shown_in
from tuning.records.schema import OK, StudyRecord
from tuning.storage.names import slug
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.identity import TrackedSearch
from tuning.tracking.model_folder import save_mlflow_model
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


def has_model(record: StudyRecord) -> bool:
    """True when there is something to log."""
    return record.status == OK and record.model_path is not None


@dataclass(frozen=True)
class NewModel:
    """What is said of a model in MLflow.

    Attributes:
        key: `identity.TrackedSearch.id`, by which it is found again.
        name, kind: MLflow's name and type of it.
        family: of what it consists of; empty where that is many things.
        config: its hyperparameters.
        tags: beside those of key and search.
        run_id: MLflow's id of the run that it is of; None without one.
    """

    key: str
    name: str
    kind: str
    family: str = ""
    config: Mapping[str, object] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    run_id: str | None = None


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
        from mlflow.entities import LoggedModelOutput, Metric

        key = self.search.id(record.study)
        there = self.logged.get(key)
        if there is not None:
            if there.tags.get(DIGEST_TAG) == record.model_sha256:
                return
            self.client.delete_logged_model(there.model_id)  # of a study that was resumed with more trials
        assert record.model_path is not None
        description = describe_model(self.directory, record.model_path, record.model_sha256)
        run_id = self.run_id(key)

        def write(folder: Path, model: Model) -> None:
            assert record.model_path is not None
            source = fetch(self.directory, record.model_path, record.model_sha256, folder)
            save_mlflow_model(folder / "mlflow", source, description, model)

        config = {**({"ensemble": record.ensemble} if record.ensemble else {}), **(record.config or {})}
        new = NewModel(
            key, slug(record.customer), description["task"], description["family"], config, self._tags(record), run_id
        )
        model_id = self.create(new, write)
        when = int((record.started + record.seconds) * 1000)
        metrics = [
            Metric(name, value, when, 0, model_id=model_id, run_id=run_id)
            for name in METRICS
            if (value := getattr(record, name)) is not None
        ]
        self.client.log_batch(run_id, metrics=metrics)
        self.client.log_outputs(run_id, [LoggedModelOutput(model_id, 0)])
        self.finish(new, model_id)

    def create(self, new: NewModel, write: Callable[[Path, Model], None]) -> str:
        """Log a model's files; its id. It is not there for `logged` before `finish`.

        write: makes the folder `mlflow` of MLflow's files in a folder, of MLflow's own model.
        """
        from mlflow.models import Model

        created = self.client.create_logged_model(
            experiment_id=self.experiment,
            name=new.name,
            source_run_id=new.run_id,
            tags={KEY_TAG: new.key, SEARCH_TAG: self.search.id(), **new.tags},
            params=params_of(new.config, new.family),
            model_type=new.kind,
        )
        with tempfile.TemporaryDirectory() as folder:
            own = Model(run_id=new.run_id, model_id=created.model_id, model_uuid=created.model_id)
            write(Path(folder), own)
            self.client.log_model_artifacts(created.model_id, str(Path(folder, "mlflow")))
        return str(created.model_id)

    def finish(self, new: NewModel, model_id: str) -> None:
        """All of a model is there."""
        from mlflow.entities import LoggedModelStatus

        self.logged[new.key] = self.client.finalize_logged_model(model_id, LoggedModelStatus.READY)

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

    def _tags(self, record: StudyRecord) -> dict[str, str]:
        return {
            RUN_TAG: self.search.run,
            CUSTOMER_TAG: record.customer,
            DIGEST_TAG: str(record.model_sha256),
            FINAL_FIT_TAG: str(record.final_fit),
        }


def fetch(directory: RunDirectory, path: str, sha256: str | None, folder: Path) -> Path:
    """A saved model's files in a folder of their own below one, which comes back. path, sha256: as of `saved_files`."""

    target = folder / "model"
    target.mkdir()
    for file in saved_files(directory, path, sha256):
        (target / file.name).write_bytes(file.content)
    return target
