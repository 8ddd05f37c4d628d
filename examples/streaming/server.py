"""A server that sends numbers as they come."""

import asyncio
from contextlib import aclosing, suppress

from examples.streaming.generator import Generator


class Server:
    """Answers lines of a seed and a count with so many lines of a number."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client."""
        try:
            with suppress(ConnectionError):  # the client hung up
                while line := await reader.readline():
                    seed, count = map(int, line.split())
                    async with aclosing(self._generator.numbers(seed, count)) as numbers:
                        async for number in numbers:
                            writer.write(b"%d\n" % number)
                            await writer.drain()
        finally:
            writer.close()
