"""The server as a process of its own."""

import http.client
import json
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
PATIENCE = 60.0  # seconds for a start, and for an end
PAUSE = 0.05


class ServerProcess:
    """A server that answers.

    Attributes
    ----------
    port : int
        Where it listens.
    """

    def __init__(self, port: int, *options: str) -> None:
        self.port = port
        command = [sys.executable, "-m", "examples.serving.server", "--port", str(port), *options]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)

    def get(self, path: str) -> tuple[int, str]:
        """The status and the body of an answer."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=PATIENCE)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def metrics(self) -> dict[str, float]:
        """Each sample of `/metrics`; labels stand behind the name, as in ``digits_answers_total{status="200"}``."""
        _, text = self.get("/metrics")
        found = {}
        for metric in text_string_to_metric_families(text):
            for sample in metric.samples:
                labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
                found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
        return found

    def wait_until_ready(self) -> None:
        """Returns when it answers. Raises if it ends before."""
        limit = time.monotonic() + PATIENCE
        while self._process.poll() is None:
            try:
                status, _ = self.get("/health")
            except ConnectionError:
                status = None
            if status == 200:
                return
            if time.monotonic() > limit:
                raise TimeoutError(f"the server did not answer in {PATIENCE:g} s")
            time.sleep(PAUSE)
        raise RuntimeError(f"the server ended with exit code {self._process.returncode}")

    def terminate(self) -> None:
        """Sends SIGTERM, and does not wait."""
        self._process.terminate()

    def end(self) -> dict[str, int]:
        """Waits until it has ended after a SIGTERM. What it says of its requests. Raises if it did not end well."""
        said, _ = self._process.communicate(timeout=PATIENCE)
        if self._process.returncode != 0:
            raise RuntimeError(f"the server ended with exit code {self._process.returncode}")
        return json.loads(said.splitlines()[-1])

    def kill(self) -> None:
        """Ends it, if it has not ended."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def running(*options: str):
    """Gives a `ServerProcess` that answers."""
    # It keeps the port for granian, which shares it by SO_REUSEPORT. It does not listen, and so gets no connections.
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        keeper.bind((HOST, 0))
        server = ServerProcess(keeper.getsockname()[1], *options)
        try:
            server.wait_until_ready()
            yield server
        finally:
            server.kill()
