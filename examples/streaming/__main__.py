"""Runs the server and its clients; see README.md."""

import argparse
import asyncio
import sys
import time

import ftcuda
from examples.streaming.generator import Generator, expected
from examples.streaming.server import Server
from ftcuda import Device


async def ask(port: int, seed: int, count: int, wanted: int) -> int:
    """A client, which hangs up after `wanted` numbers. How many came, all right; -1 if any was wrong."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"%d %d\n" % (seed, count))
    numbers = [int(await reader.readline()) for _ in range(wanted)]
    if wanted < count:
        writer.transport.abort()
    writer.close()
    return wanted if numbers == expected(seed, wanted) else -1


async def run(device: Device, clients: int, count: int) -> int:
    """Prints what came of it; the exit code."""
    generator = Generator(device, 4096 * clients)
    server = Server(generator)
    listener = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    begun = time.perf_counter()
    wanted = [3 if number % 4 == 3 else count for number in range(clients)]
    came = await asyncio.gather(*(ask(port, number, count, wanted[number]) for number in range(clients)))
    seconds = time.perf_counter() - begun
    listener.close()
    await listener.wait_closed()
    device.sync()
    wrong = [number for number, found in enumerate(came) if found != wanted[number]]
    if wrong:
        print(f"wrong answers for clients {wrong}", file=sys.stderr)
        return 1
    print(f"{clients} clients got {sum(came)} numbers, all right, {sum(came) / seconds:,.0f} a second")
    on_lease = generator.pool.statistics.in_use_count
    print(f"{sum(each < count for each in wanted)} hung up early; on lease are {on_lease}")
    return int(on_lease != 0)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.streaming", description=__doc__)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--numbers", type=int, default=100, help="for each client")
    options = parser.parse_args()
    device = Device(0)
    where = "the simulated driver" if ftcuda.driver_info().simulated else device.name
    print(f"on {where}")
    return asyncio.run(run(device, options.clients, options.numbers))


if __name__ == "__main__":
    sys.exit(main())
