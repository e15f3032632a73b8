"""A Ray cluster of three nodes with a CPU each, in a process of its own: `python tests/helpers/cluster_process.py`.

It prints its address, and after each line that it reads, `add` or `remove`, the number of its nodes. It ends with its
standard input.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path


class ClusterProcess:
    """The same, from a test."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.address = self._line()

    def say(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        assert self._line() == "done"

    def kill_head(self) -> None:
        """As when its machine is lost."""
        for child in Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split():
            if b"gcs_server" in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(int(child), signal.SIGKILL)

    def kill(self) -> None:
        """End all of it at once, a head that is lost included."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def main() -> None:
    from ray.cluster_utils import Cluster

    # In a folder of its own: Ray's other users on this machine shall not find this cluster. Sockets need a short path.
    os.environ["RAY_TMPDIR"] = tempfile.mkdtemp(prefix="service-", dir="/tmp")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)]
    cluster.wait_for_nodes()
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line == "add\n":
            nodes.append(cluster.add_node(num_cpus=1))
        else:
            cluster.remove_node(nodes.pop())
        cluster.wait_for_nodes()
        print("done", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
