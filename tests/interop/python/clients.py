"""clients.py - Azure's two Python clients behind one face, so that each case is written once.

Everything is awaited; the synchronous client does its work in threads. A Reader runs until it is
closed and gathers what its program would be told: events, and errors.
"""
import asyncio
import threading

from azure.eventhub import EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.aio import EventHubConsumerClient as AioConsumerClient
from azure.eventhub.aio import EventHubProducerClient as AioProducerClient

SHUT_S = 60


async def until(what, seconds=60):
    """Whether it became true in time."""
    end = asyncio.get_running_loop().time() + seconds
    while not what():
        if asyncio.get_running_loop().time() > end:
            return False
        await asyncio.sleep(0.01)
    return True


class NotTold(AssertionError):
    """A reader that should have been refused heard nothing."""


class Reader:
    """What a program gets: events with their partitions, and errors."""

    def __init__(self):
        self.events = []
        self.errors = []
        self.partitions = []
        self.context = None  # of the last event

    def take(self, context, event):
        if event is not None:
            self.events.append(event)
            self.partitions.append(context.partition_id)
            self.context = context

    def told(self, _context, error):
        self.errors.append(error)

    async def has(self, count, seconds=60):
        """The first events, when as many have come."""
        if not await until(lambda: len(self.events) >= count or self.errors, seconds) or len(self.events) < count:
            raise AssertionError("%d of %d events in %d s, errors: %r" % (len(self.events), count, seconds, self.errors))
        return self.events

    async def refused(self, seconds=10):
        """The first error, which must come in time."""
        if not await until(lambda: self.errors, seconds):
            raise NotTold("not told in %d s" % seconds)
        return self.errors[0]


class SyncReader(Reader):
    def __init__(self, client, options):
        super().__init__()
        self.client = client
        self.thread = threading.Thread(target=self.work, args=(options,), daemon=True)
        self.thread.start()

    def work(self, options):
        try:
            self.client.receive(on_event=self.take, on_error=self.told, **options)
        except Exception as error:  # pylint: disable=broad-except
            self.errors.append(error)

    async def close(self):
        await asyncio.to_thread(self.client.close)
        await asyncio.to_thread(self.thread.join, SHUT_S)


class AioReader(Reader):
    def __init__(self, client, options):
        super().__init__()
        self.client = client
        self.task = asyncio.ensure_future(self.work(options))

    async def take_aio(self, context, event):
        self.take(context, event)

    async def told_aio(self, context, error):
        self.told(context, error)

    async def work(self, options):
        try:
            await self.client.receive(on_event=self.take_aio, on_error=self.told_aio, **options)
        except Exception as error:  # pylint: disable=broad-except
            self.errors.append(error)

    async def close(self):
        await self.client.close()
        self.task.cancel()  # else receive() sleeps up to its load_balancing_interval, 30 s, before it looks
        await asyncio.wait([self.task], timeout=SHUT_S)


class Threaded:
    """A synchronous object whose methods are awaited."""

    def __init__(self, thing):
        self.thing = thing

    def __getattr__(self, name):
        method = getattr(self.thing, name)
        return lambda *args, **options: asyncio.to_thread(method, *args, **options)


class Sync:
    kind = "sync"

    def producer(self, string, hub, **options):
        return Threaded(EventHubProducerClient.from_connection_string(string, eventhub_name=hub, **options))

    def reader(self, string, hub, group="$Default", of_client=None, **options):
        client = EventHubConsumerClient.from_connection_string(string, group, eventhub_name=hub, **(of_client or {}))
        return SyncReader(client, options)


class Aio:
    kind = "aio"

    def producer(self, string, hub, **options):
        return AioProducerClient.from_connection_string(string, eventhub_name=hub, **options)

    def reader(self, string, hub, group="$Default", of_client=None, **options):
        client = AioConsumerClient.from_connection_string(string, group, eventhub_name=hub, **(of_client or {}))
        return AioReader(client, options)


CLIENTS = {"python": Sync, "python-aio": Aio}
