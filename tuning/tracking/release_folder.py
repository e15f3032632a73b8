"""The models of a release in one folder, where `tuning.tracking.loader` finds them: in packs, and a file with names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuning.basics.documents import Json
from tuning.models.model_files import Description, inputs, parts, saved_files
from tuning.serving.champion import NONE, Champion, champions_of
from tuning.serving.models import ReleaseModels
from tuning.serving.release import Release
from tuning.serving.releases import Releases
from tuning.storage.names import slug
from tuning.storage.packs import PackWriter
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.loader import CUSTOMER, RELEASE

FOLDER = "models"


@dataclass(frozen=True)
class ReleaseFolder:
    """A folder with the models of a release.

    Attributes:
        folder: where it is.
        by: the key columns; empty where customers are files.
        columns: what any of the models looks at.
        example: some rows, as of a model's description; None without any.
        parts: family and file of each fitted model.
        sha256: of the file that names the models, and has their digests.
        models: how many there are.
    """

    folder: Path
    by: tuple[str, ...]
    columns: tuple[str, ...]
    example: Json | None
    parts: frozenset[tuple[str, str]]
    sha256: str
    models: int


def with_models(releases: Releases, release: Release) -> tuple[list[Champion], Champion | None]:
    """The champions of a release that have a model, and what answers others; None where nothing does."""
    others = releases.others(release)
    found = champions_of(releases.champions(release))
    return [each for each in found if _answers(each)], others if others is not None and _answers(others) else None


def write_release(releases: Releases, release: Release, folder: Path) -> ReleaseFolder:
    """Write it. `RunError` for a model that is not what was written, or is not there any more."""
    champions, others = with_models(releases, release)
    writing = _Writing(releases, RunDirectory(str(folder)))
    places = {each.customer: writing.write(each) for each in sorted(champions, key=lambda each: str(each.model_path))}
    by = ReleaseModels(releases.name, releases.storage, release.number).definition.by
    content = json.dumps(
        {
            "name": releases.name,
            "by": list(by),
            "models": places,
            "others": None if others is None else writing.write(others),
        },
        ensure_ascii=False,
    ).encode()
    writing.writer.flush()
    (folder / RELEASE).write_bytes(content)
    return ReleaseFolder(
        folder=folder,
        by=by,
        columns=tuple(writing.columns),
        example=_with_keys(writing.example, by or (CUSTOMER,)),
        parts=frozenset(writing.parts),
        sha256=hashlib.sha256(content).hexdigest(),
        models=len(places) + (others is not None),
    )


def _answers(champion: Champion) -> bool:
    return champion.model_path is not None and champion.answer != NONE


def _with_keys(example: tuple[str, Json] | None, by: Sequence[str]) -> Json | None:
    """A customer's rows with the columns that name it."""
    keys = [] if example is None else [example[0]] if len(by) == 1 else example[0].split("/")
    if example is None or len(keys) != len(by):
        return None
    columns = [name for name in example[1]["columns"] if name not in by]
    places = [example[1]["columns"].index(name) for name in columns]
    return {
        "columns": [*by, *columns],
        "data": [[*keys, *(row[place] for place in places)] for row in example[1]["data"]],
    }


class _Writing:
    """Models on their way into a folder, and what they are made of."""

    def __init__(self, releases: Releases, directory: RunDirectory) -> None:
        self._releases, self._directory = releases, directory
        self.writer = PackWriter(directory)
        self.columns: dict[str, None] = {}
        self.parts: set[tuple[str, str]] = set()
        self.example: tuple[str, Json] | None = None
        self._shared: set[str] = set()

    def write(self, champion: Champion) -> tuple[str, str, str]:
        """Write a champion's model; (its folder, digest, what it answers)."""
        assert champion.model_path is not None
        assert champion.model_sha256 is not None
        source = self._releases.run_directory(champion.run)
        folder = self.writer.folder(FOLDER, slug(champion.customer))
        shared: Mapping[str, str] = {}
        for file in saved_files(source, champion.model_path, champion.model_sha256):
            if file.name == "model.json":
                description: Description = json.loads(file.content)
                shared = description.get("shared", {})
                self.columns |= dict.fromkeys(inputs(description))
                self.parts.update(parts(description))
                if self.example is None and description.get("example"):
                    self.example = champion.customer, description["example"]
            if (place := shared.get(file.name)) is None:
                self.writer.write(f"{folder}/{file.name}", file.content)
            elif place not in self._shared:  # the pool, once for all: its files are named by their content
                self._directory.write(place, file.content)
                self._shared.add(place)
        return folder, champion.model_sha256, champion.answer
