"""Two clients of HTTP that keep their connection: one blocks its thread, one is awaited."""

import asyncio
import http.client

from examples.serving.process import HOST

TIMEOUT = 120.0  # seconds


class RefusedError(Exception):
    """No connection was made, so nothing was sent."""


class ClosedEarlyError(Exception):
    """The connection was closed before any byte of an answer."""


class BrokenError(Exception):
    """The connection was closed amid an answer."""


class ThreadClient:
    """Blocks its thread."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection(HOST, port, timeout=TIMEOUT)

    def ask(self, content_type: str, body: bytes) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        if self._connection.sock is None:
            try:
                self._connection.connect()
            except ConnectionError as error:
                raise RefusedError from error
        try:
            self._connection.request("POST", "/predict", body, {"content-type": content_type})
            response = self._connection.getresponse()
        except ConnectionError as error:
            raise ClosedEarlyError from error
        except http.client.HTTPException as error:
            raise BrokenError from error
        try:
            return response.status, response.read()
        except (ConnectionError, http.client.HTTPException) as error:
            raise BrokenError from error

    def close(self) -> None:
        """Hangs up."""
        self._connection.close()


class TaskClient:
    """Is awaited."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader = self._writer = None

    async def ask(self, content_type: str, body: bytes) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        if self._writer is None:
            try:
                self._reader, self._writer = await asyncio.open_connection(HOST, self._port)
            except ConnectionError as error:
                raise RefusedError from error
        length = f"content-length: {len(body)}"
        head = ["POST /predict HTTP/1.1", f"host: {HOST}", f"content-type: {content_type}", length]
        try:
            self._writer.write("\r\n".join([*head, "", ""]).encode() + body)
            await self._writer.drain()
            first = await self._reader.readexactly(1)
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            raise ClosedEarlyError from error
        try:
            return await self._rest(first)
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            raise BrokenError from error

    async def _rest(self, first: bytes) -> tuple[int, bytes]:
        status, *lines = (first + await self._reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        headers = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await self._reader.readexactly(int(headers["content-length"]))
        if headers.get("connection") == "close":
            self.close()
        return int(status.split()[1]), body

    def close(self) -> None:
        """Hangs up."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
