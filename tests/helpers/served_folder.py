"""`tuning serve` as a process in a folder with data, and the commands of its user."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml
from builders import write_customers

from tuning.service.client import TuningClient


class ServedFolder:
    """A server on loopback, and the environment in which its user's commands find their token.

    options: of `tuning serve`. environment: variables of the server and of all that it starts. descriptors: how many
    the server may have; 0 for as many as this process.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        customers: int = 3,
        slots: int = 2,
        environment: Mapping[str, str] = {},
        descriptors: int = 0,
    ) -> None:
        self.folder, self.port, self.descriptors = folder, 0, descriptors
        write_customers(folder / "data", customers)
        self.definition = folder / "shops.yaml"
        given = {"data": "data/*.csv", "target": "y", "metric": "r2", "search_space": "ridge", "trials": 2}
        self.definition.write_text(yaml.safe_dump({**given, "split": {"folds": 2}, "report": False}))
        self.environment = {**os.environ, "TUNING_CONFIG": str(folder / "config"), **environment}
        self.options = ("--slots", str(slots), *options)
        self.process = self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> str:
        return f"sqlite:///{self.folder}/service/service.db"

    def start(self) -> subprocess.Popen[str]:
        """Start it, also after it was killed: then on the same port."""
        limited = ["prlimit", f"--nofile={self.descriptors}"] if self.descriptors else []
        with (self.folder / "served.txt").open("a") as said:
            self.process = subprocess.Popen(
                [*limited, sys.executable, "-m", "tuning.cli", "serve", "--port", str(self.port), *self.options],
                cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=said, text=True,
            )  # fmt: skip
        assert self.process.stdout is not None
        answered = self.process.stdout.readline().strip()
        assert answered, (self.folder / "served.txt").read_text()
        self.port = int(answered.rpartition(":")[2])
        return self.process

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send it a signal, and wait for its end."""
        self.process.send_signal(number)
        code = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tuning.cli", *words], env=self.environment, capture_output=True, text=True,
            check=False, timeout=240,
        )  # fmt: skip

    def client(self) -> TuningClient:
        """A client with the first token, which belongs to the server's database whatever its port."""
        (token,) = json.loads((self.folder / "config" / "service-tokens.json").read_text()).values()
        return TuningClient(self.url, token=token)
