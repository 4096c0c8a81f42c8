"""cases_long.py - what takes long: a quiet producer, a server that is killed, three processors."""
import asyncio
import collections
import os
import sys
import time

from azure.eventhub import EventData
from azure.eventhub.exceptions import EventHubError

from clients import until
from frame import Clock, Skipped, case, check, numbered, numbers, same, send_numbered

QUIET_S = 90
LOAD_S = 15
KILLS = 3
HALF = 2000


@case("quiet")
async def quiet(stand):
    async with stand:
        producer = await send_numbered(stand, 1)
        reader = stand.reader()
        await reader.has(1)
        await asyncio.sleep(QUIET_S)
        clock = Clock()
        await producer.send_batch([EventData("1")], partition_id="0")
        seconds = clock.seconds
        await until(lambda: len(reader.events) >= 2)
        same("events", numbers(reader.events), [0, 1])
        same("in the hub", numbers(await stand.reader().has(2)), [0, 1])
        check(seconds < 5, "the send after the silence took %.1f s" % seconds)
        return "sent after %.2f s" % seconds


async def load(producer, seconds):
    """Sends numbers until the time is over; returns those that were acknowledged, and how often a send was given up."""
    acknowledged, given_up, n, clock = [], 0, 0, Clock()
    while clock.seconds < seconds:
        try:
            await producer.send_batch([EventData(str(n))])
            acknowledged.append(n)
            n += 1
        except EventHubError:
            given_up += 1
    return acknowledged, given_up


async def kills(times, between):
    for _ in range(times):
        await asyncio.sleep(between)
        restart = await asyncio.create_subprocess_shell(os.environ["STAND_CRASH_RESTART"])
        same("restart", await restart.wait(), 0)


@case("crash")
async def crash(stand):
    async with stand:
        stand.string = os.environ["STAND_CRASH_STRING"]
        reader = stand.reader(partition=None)
        producer = stand.producer()
        (acknowledged, given_up), _ = await asyncio.gather(load(producer, LOAD_S), kills(KILLS, LOAD_S / (KILLS + 2)))
        wanted = set(acknowledged)
        fresh = stand.reader(partition=None)
        await until(lambda: wanted <= set(numbers(fresh.events)), 60)
        lost = wanted - set(numbers(fresh.events))
        check(not lost, len(lost), "of", len(wanted), "acknowledged events are lost")
        await until(lambda: wanted <= set(numbers(reader.events)), 60)
        missed = wanted - set(numbers(reader.events))
        check(not missed, len(missed), "of", len(wanted), "did not come to the reader that was there:", reader.errors[-1:])
        return "%d acknowledged, none lost, %d sends given up" % (len(acknowledged), given_up)


class Copy:
    """A process of the client's processor; it prints a line for each event: partition and body."""

    def __init__(self, kind, name):
        self.kind, self.name = kind, name
        self.seen = []
        self.last = {}  # when something came of a partition

    async def start(self):
        here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "processor.py")
        self.child = await asyncio.create_subprocess_exec(sys.executable, here, self.kind, stdout=asyncio.subprocess.PIPE)
        self.task = asyncio.ensure_future(self.listen())

    async def listen(self):
        async for line in self.child.stdout:
            partition, body = line.split()
            self.seen.append((partition.decode(), int(body)))
            self.last[partition.decode()] = time.monotonic()

    def ages(self):
        return self.name + "".join(" %s: %.0f s" % (p, time.monotonic() - at) for p, at in sorted(self.last.items()))

    async def end(self):
        if self.child.returncode is None:
            self.child.kill()
        await self.child.wait()


async def send_range(producer, first, count):
    for n in range(first, first + count, 50):
        await producer.send_batch([EventData(str(k)) for k in range(n, n + 50)], partition_id=str(n // 50 % 4))


@case("processor")
async def processor(stand):
    if not os.environ.get("STAND_BLOB"):
        raise Skipped("there is no Azurite")
    copies = [Copy(stand.client.kind, name) for name in "abc"]
    async with stand:
        producer = stand.producer()
        clock = Clock()
        try:
            await asyncio.gather(*(copy.start() for copy in copies))
            sent = 0
            while not all(copy.seen for copy in copies) or sent < HALF:  # until each has got a partition
                check(clock.seconds < 90, "not every process got a partition:", [len(copy.seen) for copy in copies])
                check(all(copy.child.returncode is None for copy in copies), "a process has ended by itself")
                if sent < HALF:
                    await send_range(producer, sent, 200)
                    sent += 200
                else:
                    await producer.send_batch([EventData("-1")], partition_id=str(int(clock.seconds) % 4))
                await asyncio.sleep(0.5)
            await copies[0].end()
            await send_range(producer, HALF, HALF)
            seen = lambda: {body for copy in copies for _, body in copy.seen}
            missing = lambda: sorted(set(range(2 * HALF)) - seen())
            check(await until(lambda: not missing(), 120 - clock.seconds), len(missing()), "events were not processed, of partitions",
                  dict(collections.Counter(n // 50 % 4 for n in missing())), "the first is", missing()[:1],
                  "and the last came ago:", ", ".join(copy.ages() for copy in copies))
            twice = sum(len(copy.seen) for copy in copies) - len(seen())
            return "%d events, one process killed, %d given twice" % (2 * HALF, twice)
        finally:
            await asyncio.gather(*(copy.end() for copy in copies if hasattr(copy, "child")))
