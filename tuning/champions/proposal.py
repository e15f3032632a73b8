"""A proposal: whom a refresh would promote, as a file that somebody reads, shortens, and accepts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from tuning.champions.promotion import Decision
from tuning.champions.rules.rule import PROPOSED
from tuning.errors import RunError


class Proposal(BaseModel):
    """Whom a refresh would promote.

    name: of the champions. parent: number of the release that it follows, which must still be the newest when it is
    accepted. decisions: what is accepted with it; a challenger whose decision is deleted from the file stands on.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    parent: int
    decisions: tuple[Decision, ...]

    @classmethod
    def of(cls, name: str, parent: int, decisions: Sequence[Decision]) -> Self:
        """Of all decisions of a refresh those that wait for somebody's yes."""
        return cls(name=name, parent=parent, decisions=tuple(each for each in decisions if each.outcome == PROPOSED))

    def to_json(self) -> str:
        """The file's text."""
        return self.model_dump_json(indent=2) + "\n"

    @classmethod
    def of_json(cls, text: str, source: str) -> Self:
        """What a file says; source: how errors call it.

        Raises:
            RunError: it is no proposal; the message says where it is wrong.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the text"
            raise RunError(
                f"{source}: {place}: {first['msg']}. A proposal is a file of a refresh with `promotion: ask`, from "
                "which decisions may be deleted but not changed; refresh again for a new one."
            ) from None
