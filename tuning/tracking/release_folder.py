"""The models of a release as one MLflow model: in packs, with a file that says whose model is where (`loader`)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from tuning.models.model_files import inputs, parts, saved_files
from tuning.serving.champion import NONE, Champion, champions_of
from tuning.serving.models import ReleaseModels
from tuning.serving.release import Release
from tuning.serving.releases import Releases
from tuning.storage.names import slug
from tuning.storage.packs import PackWriter
from tuning.storage.run_directory import RunDirectory
from tuning.tracking import loader
from tuning.tracking.model_folder import save

if TYPE_CHECKING:
    from mlflow.models import Model

FOLDER = "models"


def save_release(target: Path, releases: Releases, release: Release, own: Model) -> None:
    """Write the folder of an MLflow model that answers for all customers of a release.

    target: the folder to make. own: MLflow's model. `RunError` for a model that is damaged or gone.
    """
    source = target.with_name("release")
    source.mkdir()
    others, writing = releases.others(release), _Writing(releases, RunDirectory(str(source)))
    champions = sorted(champions_of(releases.champions(release)), key=lambda each: str(each.model_path))
    by = ReleaseModels(releases.name, releases.storage, release.number).definition.by
    described = {
        "name": releases.name,
        "by": list(by),
        "models": {each.customer: writing.write(each) for each in champions if _answers(each)},
        "others": None if others is None or not _answers(others) else writing.write(others),
    }
    writing.writer.flush()
    content = json.dumps(described, ensure_ascii=False).encode()
    (source / loader.RELEASE).write_bytes(content)
    save(
        target,
        source,
        own,
        taken={**dict.fromkeys(writing.columns, False), **dict.fromkeys(by or (loader.CUSTOMER,), True)},
        answer={"prediction": None, loader.ANSWER: "string"},
        intervals=True,
        example=None,
        parts=writing.parts,
        metadata={"by": list(by), loader.DIGEST: hashlib.sha256(content).hexdigest()},
    )


def _answers(champion: Champion) -> bool:
    return champion.model_path is not None and champion.answer != NONE


class _Writing:
    """Models on their way into a folder. columns: what any of them looks at. parts: family and file of each."""

    def __init__(self, releases: Releases, directory: RunDirectory) -> None:
        self._releases, self._directory = releases, directory
        self.writer = PackWriter(directory)
        self.columns: dict[str, None] = {}
        self.parts: set[tuple[str, str]] = set()
        self._shared: set[str] = set()

    def write(self, champion: Champion) -> tuple[str, str, str]:
        """Write a champion's model; (its folder, digest, what it answers)."""
        assert champion.model_path is not None
        assert champion.model_sha256 is not None
        source = self._releases.run_directory(champion.run)
        folder = self.writer.folder(FOLDER, slug(champion.customer))
        shared: dict[str, str] = {}
        for file in saved_files(source, champion.model_path, champion.model_sha256):
            if file.name == "model.json":
                description = json.loads(file.content)
                shared = description["shared"]
                self.columns |= dict.fromkeys(inputs(description))
                self.parts.update(parts(description))
            if (place := shared.get(file.name)) is None:
                self.writer.write(f"{folder}/{file.name}", file.content)
            elif place not in self._shared:  # the pool, once for all: its files are named by their content
                self._directory.write(place, file.content)
                self._shared.add(place)
        return folder, champion.model_sha256, champion.answer
