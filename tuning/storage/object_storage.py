"""A run directory on object storage: each file is a single put, which is whole or not there."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence

import pyarrow.fs

from tuning.storage import s3
from tuning.storage.backend import TEMPORARY, Backend


class ObjectStorage(Backend):
    """Any remote filesystem that pyarrow knows: S3, Google Cloud Storage, Azure, …"""

    local = False

    def locate(self, name: str) -> str:
        uri, mark, query = self.uri.partition("?")
        return f"{uri.rstrip('/')}/{name}{mark}{query}"

    def name_of(self, location: str) -> str | None:
        uri, mark, query = self.uri.partition("?")
        before, after = f"{uri.rstrip('/')}/", f"{mark}{query}"
        inside = location.startswith(before) and location.endswith(after)
        return location.removeprefix(before).removesuffix(after) if inside else None

    def create(self) -> None:
        self.filesystem.create_dir(self.root, recursive=True)

    def put(self, path: str, data: bytes) -> None:
        self.put_pieces(path, [data])

    def put_pieces(self, path: str, pieces: Iterable[bytes]) -> None:
        with self.filesystem.open_output_stream(path) as stream:
            for piece in pieces:
                stream.write(piece)

    def put_new(self, path: str, data: bytes) -> None:
        """Exact on S3 with boto3; elsewhere it is a look before a put."""
        if s3.conditional(self.uri):
            s3.put_new(self.uri, path, data)
            return
        if self.exists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self.put(path, data)

    def files_below(self, path: str) -> Sequence[str]:
        selector = pyarrow.fs.FileSelector(path, allow_not_found=True, recursive=True)
        return [
            info.path
            for info in self.filesystem.get_file_info(selector)
            if info.type == pyarrow.fs.FileType.File and not info.base_name.startswith(TEMPORARY)
        ]

    def check_present(self) -> None:
        """`FileNotFoundError` when the bucket is gone: that is not an empty folder."""
        bucket = self.root.split("/")[0]
        if bucket and not self.exists(bucket):
            raise FileNotFoundError(errno.ENOENT, f"the bucket {bucket!r} does not exist (any more)")

    def is_damage(self, error: OSError) -> bool:
        return False
