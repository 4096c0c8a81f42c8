"""rate.py - the case "rate": how fast the events of one partition come. They are counted, not kept."""
import asyncio
import os
import threading
import time

from azure.eventhub import EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AioConsumerClient

from clients import until
from frame import case, check

EVENTS = int(os.environ.get("STAND_EVENTS", "200000"))
LIMIT_S = float(os.environ.get("STAND_LIMIT", "200"))
QUIET_S = 15  # without an event: no more will come
PREFETCH = 300  # the client's default
PLACE = {"partition_id": "0", "starting_position": "-1"}


class Tally:
    def __init__(self):
        self.count = 0
        self.first = self.last = time.monotonic()
        self.error = None

    def take(self, _context, event):
        if self.over:
            return
        self.last = time.monotonic()
        if not self.count:
            self.first = self.last
        if event.sequence_number != self.count:
            self.error = "number %d came" % event.sequence_number
        self.count += 1

    def told(self, _context, error):
        self.error = error

    async def take_aio(self, context, event):
        self.take(context, event)

    async def told_aio(self, context, error):
        self.told(context, error)

    @property
    def over(self):
        return self.count >= EVENTS or self.error

    @property
    def quiet(self):
        return time.monotonic() - self.last > QUIET_S


def receive(string, tally):
    try:
        client = EventHubConsumerClient.from_connection_string(string, "$Default", eventhub_name="rate")
        client.receive(on_event=tally.take, on_error=tally.told, **PLACE)
    except Exception as error:  # pylint: disable=broad-except
        tally.told(None, error)


async def receive_aio(string, tally):
    try:
        client = AioConsumerClient.from_connection_string(string, "$Default", eventhub_name="rate")
        await client.receive(on_event=tally.take_aio, on_error=tally.told_aio, **PLACE)
    except Exception as error:  # pylint: disable=broad-except
        tally.told(None, error)


def start(kind, string, tally):
    """Begins to receive, which ends with the program."""
    if kind == "sync":
        thread = threading.Thread(target=receive, args=(string, tally), daemon=True)
        thread.start()
        return thread
    return asyncio.ensure_future(receive_aio(string, tally))


@case("rate")
async def rate(stand):
    tally = Tally()
    held = start(stand.client.kind, stand.string, tally)  # the loop itself does not hold a task
    await until(lambda: tally.over or tally.quiet, LIMIT_S)
    count, seconds, error = tally.count, tally.last - tally.first, tally.error
    whole = count >= EVENTS or count > 1 and not tally.quiet
    del held
    check(whole and not error, "stopped after", count, "events", error or "")
    return seconds, "%d events in %.3f s, prefetch %d" % (count - 1, seconds, PREFETCH)
