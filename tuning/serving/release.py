"""A release: one numbered state of all customers' champions, which never changes.

Its file names its table with the digest of that and has one of its own, so that what was changed by hand is noticed.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass, field
from uuid import uuid4

from tuning.basics.documents import Json

FORMAT = 2  # of a release; a change that older readers would misread makes it one higher
RELEASES, TABLES = "releases", "tables"
#: Why there is a release.
PROMOTE, REFRESH, ROLLBACK = "promote", "refresh", "rollback"


@dataclass(frozen=True)
class Release:
    """One state of all customers' champions.

    Attributes:
        number: from 1; the newest intact one is in force.
        parent: number of the release that it followed; None of the first.
        why: `PROMOTE`, `REFRESH` or `ROLLBACK`.
        created: when, UTC, as ISO 8601 has it.
        table: SHA-256 of the file with the champions (`table_name`); None of a draft.
        others: what answers customers that are not among the champions, as a row; None without an answer.
        run: the run that was promoted or made, as `Releases.reference` names it; None of others.
        equals: of a rollback, the number of the release that it brings back.
        customer: of a rollback of one customer alone, its id.
        maker: whoever made it, as a random word, so that two who make the same at once are told apart.
    """

    number: int
    parent: int | None
    why: str
    created: str = field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    table: str | None = None
    others: Json | None = None
    run: str | None = None
    equals: int | None = None
    customer: str | None = None
    maker: str = field(default_factory=lambda: uuid4().hex)

    @property
    def name(self) -> str:
        """The name of its file."""
        return file_of(self.number)

    @property
    def created_text(self) -> str:
        """When, to the minute."""
        return self.created[:16].replace("T", " ")

    @property
    def why_text(self) -> str:
        """Why it was made, with what a rollback brings back."""
        return self.why if self.equals is None else f"{self.why} to {self.equals}"

    def encoded(self) -> bytes:
        """Return its file."""
        content = json.dumps(asdict(self), ensure_ascii=False, sort_keys=True)
        document = {"format": FORMAT, "sha256": digest_of(content.encode()), "release": content}
        return json.dumps(document, ensure_ascii=False).encode()


def file_of(number: int) -> str:
    """Return the name of a release's file."""
    return f"{RELEASES}/{number:06d}.json"


def table_name(sha256: str) -> str:
    """Return the name of the file of a table."""
    return f"{TABLES}/{sha256}.parquet"


def decoded(data: bytes) -> Release:
    """Return the release of a file; `ValueError` says what is wrong with it."""
    try:
        document: Json = json.loads(data)
        written, content, digest = document["format"], str(document["release"]), document["sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError("it is no release") from error
    if written != FORMAT:
        raise ValueError(f"another version of this program wrote it, in format {written}; this one reads {FORMAT}")
    if digest_of(content.encode()) != digest:
        raise ValueError("its SHA-256 is not the one in it")
    return Release(**json.loads(content))


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(data).hexdigest()
