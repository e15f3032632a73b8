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
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote, urlsplit

from search_spaces import SpaceError
from search_spaces.yaml_text import parse_yaml
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
    from tuning.records.columns import FigureRow

API = "/api/v1"
ADDRESS = "http://127.0.0.1:8420"  # where `tuning serve` listens by default


class TuningClient(Public):
    """A server of the tuning service.

    server: its address; by default `TUNING_SERVER`, else that of `tuning serve` on this machine. token: by default
    `TUNING_TOKEN`, the file that `TUNING_TOKEN_FILE` names, or what `tuning serve` has kept for this user. timeout:
    seconds that one request may take. say: hears that the server is away, while it is asked again for a minute.

    Errors are those of `tuning.errors`, with the server's sentences: `DefinitionError`, `MissingError`, …
    """

    public = ("submit", "plan", "run", "runs", "wait", "events", "leaderboard", "model", "predict",
              "predict_by_champions", "stop", "cancel", "resume", "delete", "schedules", "end_schedule")  # fmt: skip
    elsewhere: ClassVar[Mapping[str, str]] = {"fit": "submit(…)", "status": "run(ID)", "list": "runs()"}

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
        found = token or token_for(self.server)
        self._link = ServerLink(self.server, found, timeout, say)

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
        document = {**_document(definition), **changes}
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        return RemoteRun(self, self._link.json("POST", f"{API}/runs", json=document, headers=headers))

    def plan(self, definition: Mapping[str, object] | str | Path, **changes: object) -> Json:
        """What would run, as `tuning plan --output json` prints it; `DefinitionError` says what is wrong."""
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        plan = self._link.json("POST", f"{API}/plans", json={**_document(definition), **changes}, headers=headers)
        pause = Pauses()
        while plan["result"] is None and plan["problem"] is None:
            pause()
            plan = self._link.json("GET", plan["links"]["self"])
        if plan["problem"] is not None:
            raise DefinitionError(plan["problem"])
        found: Json = plan["result"]
        return found

    def run(self, run: str) -> RemoteRun:
        """A run of the team by its id."""
        return RemoteRun(self, self._link.json("GET", f"{API}/runs/{run}"))

    def runs(self, *, state: str | None = None, name: str | None = None) -> Iterator[RemoteRun]:
        """The team's runs, the newest first."""
        asked = {key: value for key, value in {"state": state, "name": name}.items() if value is not None}
        while True:
            page = self._link.json("GET", f"{API}/runs", params=asked)
            yield from (RemoteRun(self, each) for each in page["runs"])
            if page["next"] is None:
                return
            asked["cursor"] = page["next"]

    def wait(self, run: str, timeout: float | None = None) -> RemoteRun:
        """The run once it has ended, or after `timeout` seconds as it is then."""
        end = None if timeout is None else time.monotonic() + timeout
        pause = Pauses()
        while (found := self.run(run)).running and (end is None or time.monotonic() < end):
            pause(None if end is None else end - time.monotonic())
        return found

    def events(self, run: str) -> Iterator[ClientEvent]:
        """Every change of a run's state once, and its newest progress, until it has ended.

        A server that is away meanwhile is asked again, from the event that came last.
        """
        return self._link.events(
            f"{API}/runs/{run}/events", lambda event: event.kind == "state" and event.data["state"] in ENDED
        )

    def leaderboard(self, run: str, sort: str = "customer") -> pd.DataFrame:
        """One row per customer, as `RunResult.leaderboard`."""
        import pandas as pd

        answer = self._link.answer("GET", f"{API}/runs/{run}/leaderboard", params={"sort": sort, "format": "parquet"})
        return pd.read_parquet(io.BytesIO(answer.content))

    def rows(self, run: str, most: int, sort: str = "customer") -> tuple[list[FigureRow], int]:
        """The first rows of the leaderboard by column name, and how many customers it has."""
        found = self._link.json("GET", f"{API}/runs/{run}/leaderboard", params={"sort": sort, "limit": most})
        texts = [row["reason"] and row["reason"]["text"] for row in found["rows"]]
        return [{**row, "reason": why} for row, why in zip(found["rows"], texts, strict=True)], int(found["customers"])

    def model(self, run: str, customer: str | None = None, *, allow_code: bool = False) -> CustomerModel:
        """A customer's model, which predicts here, its digests checked.

        customer: may be left out where the run has a single one. allow_code: also one that runs code of the run's.
        """
        answer = self._link.answer("GET", f"{API}/runs/{run}/model", params=_chosen(customer))
        return _read_model(answer.content, allow_code)

    def predict(
        self, run: str, rows: pd.DataFrame, customer: str | None = None, interval: float | None = None
    ) -> pd.DataFrame:
        """Up to 10,000 rows with the server's predictions: a column `prediction`, and of classes probabilities.

        customer: whose model; by default each row's own one's, by the key columns. interval: as of
        `CustomerModel.predict`.
        """
        return self._predicted(f"{API}/runs/{run}/predictions", rows, customer, interval)

    def predict_by_champions(
        self, name: str, rows: pd.DataFrame, customer: str | None = None, interval: float | None = None
    ) -> pd.DataFrame:
        """The same by the team's champions of a name, with columns `answer` (own, pool, constant) and `release`."""
        return self._predicted(f"{API}/champions/{quote(name)}/predictions", rows, customer, interval)

    def _predicted(self, path: str, rows: pd.DataFrame, customer: str | None, interval: float | None) -> pd.DataFrame:
        import pandas as pd

        cells = rows.astype(object).where(rows.notna(), None).to_dict("records")
        document = json.dumps({"rows": cells}, default=str)
        headers = {"Content-Type": "application/json"}
        params = {**_chosen(customer), **({} if interval is None else {"interval": str(interval)})}
        found = self._link.json("POST", path, content=document, headers=headers, params=params)
        answered = pd.DataFrame(found["rows"], index=rows.index)
        return rows.join(answered[[name for name in answered.columns if name not in rows.columns]])

    def stop(self, run: str) -> RemoteRun:
        """End a run so that it can be resumed; what is recorded is kept."""
        return RemoteRun(self, self._link.json("POST", f"{API}/runs/{run}/stop"))

    def cancel(self, run: str) -> RemoteRun:
        """End a run for good; what is recorded is kept until it is deleted."""
        return RemoteRun(self, self._link.json("POST", f"{API}/runs/{run}/cancel"))

    def resume(self, run: str, *, trials: int | None = None, slots: int | None = None) -> RemoteRun:
        """Queue a run again that has stopped, failed or finished. trials, slots: in place of those it had."""
        changes = {name: value for name, value in (("trials", trials), ("slots", slots)) if value is not None}
        return RemoteRun(self, self._link.json("POST", f"{API}/runs/{run}/resume", json=changes))

    def delete(self, run: str) -> None:
        """Delete a run that has ended, with its directory."""
        self._link.answer("DELETE", f"{API}/runs/{run}")

    def schedules(self) -> list[Json]:
        """What the team submits again and again, by name: `id`, `cron`, `time_zone`, when `next`, and so on."""
        found: list[Json] = self._link.json("GET", f"{API}/schedules")["schedules"]
        return found

    def end_schedule(self, schedule: str) -> None:
        """Submit no more at its times; the runs that there are stay. schedule: its id."""
        self._link.answer("DELETE", f"{API}/schedules/{schedule}")


class RemoteRun(Public):
    """A run of a server as it was when this was asked for; in a notebook it shows how far it is, and its customers."""

    public = (
        "id",
        "name",
        "state",
        "reason",
        "running",
        "progress",
        "outcome",
        "schedule",
        "leaderboard",
        "model",
        "predict",
        "stop",
        "cancel",
        "resume",
        "wait",
        "to_dict",
    )
    elsewhere: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("kill", "interrupt", "terminate"), "cancel()"),
        **dict.fromkeys(("join", "get", "result"), "wait()"),
    }

    def __init__(self, client: TuningClient, message: Json) -> None:
        self._client, self._message = client, message

    @property
    def id(self) -> str:
        """By which the server knows it."""
        return str(self._message["id"])

    @property
    def name(self) -> str:
        """Of its definition."""
        return str(self._message["name"])

    @property
    def state(self) -> RunState:
        """`queued`, `running`, `stopping`, `stopped`, `finished`, `failed` or `cancelled`."""
        return RunState(self._message["state"])

    @property
    def reason(self) -> str:
        """Why it is in that state."""
        return str(self._message["reason"])

    @property
    def running(self) -> bool:
        """Whether it has not ended yet; a run that waits counts, too."""
        return self.state not in ENDED

    @property
    def progress(self) -> Json | None:
        """How far it said it is; None before its first word."""
        found: Json | None = self._message["progress"]
        return found

    @property
    def outcome(self) -> Json | None:
        """What the run said at its end, such as how many `customers` have `succeeded`; None before."""
        found: Json | None = self._message["outcome"]
        return found

    @property
    def schedule(self) -> str | None:
        """The id of what submits it again and again; None where it was submitted once."""
        found: str | None = self._message["schedule"]
        return found

    def to_dict(self) -> Json:
        """All that the server has said of it."""
        return self._message

    def leaderboard(self, sort: str = "customer") -> pd.DataFrame:
        """One row per customer."""
        return self._client.leaderboard(self.id, sort)

    def model(self, customer: str | None = None, *, allow_code: bool = False) -> CustomerModel:
        """A customer's model, as of `TuningClient.model`."""
        return self._client.model(self.id, customer, allow_code=allow_code)

    def predict(self, rows: pd.DataFrame, customer: str | None = None, interval: float | None = None) -> pd.DataFrame:
        """Rows with predictions, as of `TuningClient.predict`."""
        return self._client.predict(self.id, rows, customer, interval)

    def stop(self) -> RemoteRun:
        """End it so that it can be resumed."""
        return self._client.stop(self.id)

    def cancel(self) -> RemoteRun:
        """End it for good."""
        return self._client.cancel(self.id)

    def resume(self, *, trials: int | None = None, slots: int | None = None) -> RemoteRun:
        """Queue it again."""
        return self._client.resume(self.id, trials=trials, slots=slots)

    def wait(self, timeout: float | None = None) -> RemoteRun:
        """The same run once it has ended, or after `timeout` seconds as it is then."""
        return self._client.wait(self.id, timeout)

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
        """As it is now, not when it was asked for: a cell that is run again shows how far it has come."""
        from tuning.records.figures import notebook_table
        from tuning.runs.leaderboard import SHOWN

        now = self._client.run(self.id)
        shown = paragraph(repr(now))
        try:
            rows, customers = self._client.rows(self.id, SHOWN)
        except ServiceError:
            return shown  # nothing is recorded yet
        return f"{shown}{notebook_table(rows, customers, of_objective='objective' in now.to_dict()['definition'])}"


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
    file = Path(definition)
    try:
        found = parse_yaml(file.read_text(encoding="utf-8"), str(file))
    except OSError as error:
        raise DefinitionError(f"{file} cannot be read: {error.strerror}. Give a file with a definition.") from error
    except (UnicodeDecodeError, SpaceError) as error:
        raise DefinitionError(f"{file}: {error}") from error
    if not isinstance(found, Mapping):
        raise DefinitionError(f"{file} holds no keys of a definition. `tuning init` writes one.")
    return {"name": file.stem, **found}
