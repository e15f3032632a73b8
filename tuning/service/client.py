"""The service from Python: submit definitions to a server, and use what its runs have found."""

from __future__ import annotations

import io
import json
import os
import tempfile
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote, urlsplit

from tuning.basics.documents import Json
from tuning.basics.public import Public
from tuning.errors import DefinitionError, ServiceError
from tuning.reporting.cells import paragraph
from tuning.service.server_link import ClientEvent, Pauses, ServerLink
from tuning.service.states import ENDED, WORKING, RunState
from tuning.service.token_files import token_for

if TYPE_CHECKING:
    import pandas as pd

    from tuning.models.customer_model import CustomerModel

API = "/api/v1"
ADDRESS = "http://127.0.0.1:8420"  # where `tuning serve` listens by default


class TuningClient(Public):
    """A server of the tuning service.

    server: its address; by default `TUNING_SERVER`, else that of `tuning serve` on this machine. token: by default
    `TUNING_TOKEN`, the file that `TUNING_TOKEN_FILE` names, or what `tuning serve` has kept for this user. timeout:
    seconds that one request may take. say: hears that the server is away, while it is asked again for a minute.

    Errors are those of `tuning.errors`, with the server's sentences: `DefinitionError`, `MissingError`, …
    """

    public = ("submit", "plan", "run", "runs", "predict_by_champions", "schedules", "end_schedule")
    elsewhere: ClassVar[Mapping[str, str]] = {
        "fit": "submit(…)",
        "status": "run(ID)",
        "list": "runs()",
        **{name: f"run(ID).{name}()" for name in ("wait", "events", "stop", "cancel", "resume", "delete")},
        **{name: f"run(ID).{name}(…)" for name in ("leaderboard", "model", "predict")},
    }

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        timeout: float = 60.0,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.server = (server or os.environ.get("TUNING_SERVER") or ADDRESS).rstrip("/")
        if urlsplit(self.server).scheme not in ("http", "https"):
            raise DefinitionError(f"server {self.server!r} is not an address. Give one such as {ADDRESS}.")
        self._link = ServerLink(self.server, token or token_for(self.server), timeout, say)

    def __enter__(self) -> TuningClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"TuningClient({self.server!r})"

    def close(self) -> None:
        self._link.close()

    def submit(
        self, definition: Mapping[str, object] | str | Path, *, key: str | None = None, **changes: object
    ) -> RemoteRun:
        """Queue a run.

        definition: its keys, or a YAML or JSON file; data is named below the server's folders. changes: keys in place
        of those, also `priority` and `schedule`. key: of a submission that may be repeated: the same key with the same
        definition is the same run. One is made anew by default, so that a server that was away is asked again safely.
        """
        return _run(self._link, self._sent("runs", definition, key, changes))

    def plan(self, definition: Mapping[str, object] | str | Path, **changes: object) -> Json:
        """Return what would run, as `tuning plan --output json` prints it; `DefinitionError` says what is wrong."""
        plan = self._sent("plans", definition, None, changes)
        pause = Pauses()
        while plan["result"] is None and plan["problem"] is None:
            pause()
            plan = self._link.json("GET", plan["links"]["self"])
        if plan["problem"] is not None:
            raise DefinitionError(plan["problem"])
        found: Json = plan["result"]
        return found

    def _sent(
        self, what: str, definition: Mapping[str, object] | str | Path, key: str | None, changes: Mapping[str, object]
    ) -> Json:
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        return self._link.json("POST", f"{API}/{what}", json={**_document(definition), **changes}, headers=headers)

    def run(self, run: str) -> RemoteRun:
        """Return a run of the team by its id."""
        return _run(self._link, self._link.json("GET", f"{API}/runs/{run}"))

    def runs(self, *, state: str | None = None, name: str | None = None) -> Iterator[RemoteRun]:
        """Return the team's runs, the newest first."""
        asked = {key: value for key, value in {"state": state, "name": name}.items() if value is not None}
        while True:
            page = self._link.json("GET", f"{API}/runs", params=asked)
            yield from (_run(self._link, each) for each in page["runs"])
            if page["next"] is None:
                return
            asked["cursor"] = page["next"]

    def predict_by_champions(
        self, name: str, rows: pd.DataFrame, customer: str | None = None, interval: float | None = None
    ) -> pd.DataFrame:
        """Predict as `RemoteRun.predict`, by the team's champions of a name.

        Further columns are `answer` (own, pool, constant) and `release`.
        """
        return _predicted(self._link, f"{API}/champions/{quote(name)}", rows, customer, interval)

    def schedules(self) -> list[Json]:
        """Return what the team submits again and again, by name: `id`, `cron`, `time_zone`, when `next`, and so on."""
        found: list[Json] = self._link.json("GET", f"{API}/schedules")["schedules"]
        return found

    def end_schedule(self, schedule: str) -> None:
        """Submit no more at its times; the runs that there are stay. schedule: its id."""
        self._link.answer("DELETE", f"{API}/schedules/{schedule}")


@dataclass(frozen=True, repr=False, eq=False)
class RemoteRun(Public):
    """A run of a server as it was when this was asked for; in a notebook it shows how far it is, and its customers.

    Attributes:
        id: by which the server knows it.
        name: that of its definition.
        state: `queued`, `running`, `stopping`, `stopped`, `finished`, `failed` or `cancelled`.
        reason: why it is in that state.
        progress: how far it said it is; None before its first word.
        outcome: what it said at its end, such as how many `customers` have `succeeded`; None before.
        schedule: the id of what submits it again and again; None where it was submitted once.
    """

    public = ("id", "name", "state", "reason", "running", "progress", "outcome", "schedule", "events", "wait",
              "leaderboard", "model", "predict", "stop", "cancel", "resume", "delete", "to_dict")  # fmt: skip
    elsewhere: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("kill", "interrupt", "terminate"), "cancel()"),
        **dict.fromkeys(("join", "get", "result"), "wait()"),
    }

    id: str
    name: str
    state: RunState
    reason: str
    progress: Json | None
    outcome: Json | None
    schedule: str | None
    _link: ServerLink
    _message: Json

    @property
    def running(self) -> bool:
        """Whether it has not ended yet; a run that waits counts, too."""
        return self.state not in ENDED

    def to_dict(self) -> Json:
        """Return all that the server has said of it."""
        return self._message

    def events(self) -> Iterator[ClientEvent]:
        """Return every change of its state once, and its newest progress, until it has ended.

        A server that is away meanwhile is asked again, from the event that came last.
        """
        return self._link.events(
            f"{self._path}/events", lambda event: event.kind == "state" and event.data["state"] in ENDED
        )

    def wait(self, timeout: float | None = None) -> RemoteRun:
        """Return the same run once it has ended, or after `timeout` seconds as it is then."""
        end = None if timeout is None else time.monotonic() + timeout
        pause = Pauses()
        while (found := self._now()).running and (end is None or time.monotonic() < end):
            pause(None if end is None else end - time.monotonic())
        return found

    def leaderboard(self, sort: str = "customer") -> pd.DataFrame:
        """Return one row per customer, as `RunResult.leaderboard`."""
        import pandas as pd

        answer = self._link.answer("GET", f"{self._path}/leaderboard", params={"sort": sort, "format": "parquet"})
        return pd.read_parquet(io.BytesIO(answer.content))

    def model(self, customer: str | None = None, *, allow_code: bool = False) -> CustomerModel:
        """Return a customer's model, which predicts here, its digests checked.

        customer: may be left out where the run has a single one. allow_code: also one that runs code of the run's.
        """
        answer = self._link.answer("GET", f"{self._path}/model", params=_chosen(customer))
        return _read_model(answer.content, allow_code)

    def predict(self, rows: pd.DataFrame, customer: str | None = None, interval: float | None = None) -> pd.DataFrame:
        """Return up to 10,000 rows with predictions: a column `prediction`, and of classes probabilities.

        customer: whose model; by default each row's own one's, by the key columns. interval: as of
        `CustomerModel.predict`.
        """
        return _predicted(self._link, self._path, rows, customer, interval)

    def stop(self) -> RemoteRun:
        """End it so that it can be resumed; what is recorded is kept."""
        return self._changed("stop")

    def cancel(self) -> RemoteRun:
        """End it for good; what is recorded is kept until it is deleted."""
        return self._changed("cancel")

    def resume(self, *, trials: int | None = None, slots: int | None = None) -> RemoteRun:
        """Queue it again once it has stopped, failed or finished. trials, slots: in place of those it had."""
        changes = {name: value for name, value in (("trials", trials), ("slots", slots)) if value is not None}
        return self._changed("resume", json=changes)

    def delete(self) -> None:
        """Delete it with its directory, once it has ended."""
        self._link.answer("DELETE", self._path)

    @property
    def _path(self) -> str:
        return f"{API}/runs/{self.id}"

    def _now(self) -> RemoteRun:
        return _run(self._link, self._link.json("GET", self._path))

    def _changed(self, how: str, **request: object) -> RemoteRun:
        return _run(self._link, self._link.json("POST", f"{self._path}/{how}", **request))

    def __repr__(self) -> str:
        return f"RemoteRun({self.name!r} {self.id}: {self.sentence})"

    @property
    def sentence(self) -> str:
        """Where it stands, in part of a sentence."""
        place = self._message["place"]
        where = f"{self.state}, place {place} in the queue" if place else str(self.state)
        told = self.progress["line"] if self.progress is not None and self.state in WORKING else ""
        return ", ".join(filter(None, (where, self.reason, told)))

    def _repr_html_(self) -> str:
        """Return it as it is now, not when it was asked for: a cell that is run again shows how far it has come."""
        from tuning.records.figures import notebook_table
        from tuning.runs.leaderboard import SHOWN

        now = self._now()
        shown = paragraph(repr(now))
        try:
            board = self._link.json("GET", f"{self._path}/leaderboard", params={"limit": SHOWN})
        except ServiceError:
            return shown  # nothing is recorded yet
        rows = [{**row, "reason": row["reason"] and row["reason"]["text"]} for row in board["rows"]]
        of_objective = "objective" in now.to_dict()["definition"]
        return f"{shown}{notebook_table(rows, board['customers'], of_objective=of_objective)}"


def _run(link: ServerLink, message: Json) -> RemoteRun:
    """Return the run that a server tells of."""
    names = ("id", "name", "reason", "progress", "outcome", "schedule")
    told = {name: message[name] for name in names}
    return RemoteRun(**told, state=RunState(message["state"]), _link=link, _message=message)


def _predicted(
    link: ServerLink, path: str, rows: pd.DataFrame, customer: str | None, interval: float | None
) -> pd.DataFrame:
    """Return rows with what a server predicts for them. path: of the run, or of the champions."""
    import pandas as pd

    cells = rows.astype(object).where(rows.notna(), None).to_dict("records")
    found = link.json(
        "POST",
        f"{path}/predictions",
        content=json.dumps({"rows": cells}, default=str),
        headers={"Content-Type": "application/json"},
        params={**_chosen(customer), **({} if interval is None else {"interval": str(interval)})},
    )
    answered = pd.DataFrame(found["rows"], index=rows.index)
    return rows.join(answered[[name for name in answered.columns if name not in rows.columns]])


def _read_model(archive: bytes, allow_code: bool) -> CustomerModel:
    """The model in an archive of `GET …/model`; `RunError` for one that is damaged."""
    from tuning.models.customer_model import load_model
    from tuning.runs.trusted_code import check_preparation
    from tuning.storage.run_directory import RunDirectory

    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(io.BytesIO(archive)) as files:
        files.extractall(f"{folder}/model")
        directory = RunDirectory(folder)
        found = load_model(directory, "model", allow_code=allow_code)
        check_preparation(found.preparation, directory, allow_code)
        return found


def _chosen(customer: str | None) -> dict[str, str]:
    return {} if customer is None else {"id": customer}


def _document(definition: Mapping[str, object] | str | Path) -> dict[str, object]:
    """The keys of a definition; a file's name is its `name` where it has none."""
    if isinstance(definition, Mapping):
        return dict(definition)
    from tuning.definition.yaml_file import read_values

    return {"name": Path(definition).stem, **read_values(definition)}
