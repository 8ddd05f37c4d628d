import asyncio
import os
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from examples.streaming.__main__ import ask
from examples.streaming.generator import Generator, expected
from tests.conftest import PROFILE
from tests.kernels import IS_SIMULATED

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.skipif(IS_SIMULATED and PROFILE != "13.5", reason="the example compiles for the driver as it is"),
    pytest.mark.thread_unsafe(reason="runs a server, and counts leases"),
]


def test_the_example_runs():
    result = subprocess.run(
        [sys.executable, "-m", "examples.streaming", "--clients", "8", "--numbers", "50"],
        cwd=ROOT, capture_output=True, text=True, timeout=240, env=dict(os.environ),
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert "8 clients got 306 numbers, all right" in result.stdout
    assert "2 hung up early; on lease are 0" in result.stdout


def test_a_generator_that_is_given_up(device):
    """Its memory is leased again once the steps ahead are done."""
    generator = Generator(device, 8192)

    async def main():
        async with aclosing(generator.numbers(7, 1000)) as numbers:
            assert [await anext(numbers) for _ in range(3)] == expected(7, 3)
        return [number async for number in generator.numbers(9, 20)]

    assert asyncio.run(main()) == expected(9, 20)
    device.sync()
    assert generator.pool.statistics.in_use_count == 0
    generator.pool.close()


def test_a_client_notices_a_wrong_number():
    async def lie(reader, writer):
        await reader.readline()
        writer.writelines(b"%d\n" % (number + (index == 1)) for index, number in enumerate(expected(5, 3)))
        writer.close()

    async def main():
        server = await asyncio.start_server(lie, "127.0.0.1", 0)
        async with server:
            return await ask(server.sockets[0].getsockname()[1], 5, 3, 3)

    assert asyncio.run(main()) == -1
