"""frame.py - what the cases share: their table, the ways they end, and the stand they run on."""
import os
import re
import time

from azure.eventhub import EventData

CASES = {}


class Absent(Exception):
    """The client has no such thing."""


class OwnFault(Exception):
    """The client fails by itself, whatever the service does."""


class Skipped(Exception):
    """It could not be run here."""


def case(name):
    def keep(function):
        CASES[name] = function
        return function
    return keep


def check(truth, *said):
    if not truth:
        raise AssertionError(" ".join(str(word) for word in said))


def same(what, got, wanted):
    if got != wanted:
        raise AssertionError("%s: %.120r instead of %.120r" % (what, got, wanted))


class Stand:
    """One case's view: its hub, and clients for it that are closed at the end of a `with`."""

    def __init__(self, client, hub):
        self.client = client
        self.hub = hub
        self.string = os.environ["STAND_STRING"]
        self.open = []

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        for thing in reversed(self.open):
            try:
                await thing.close()
            except Exception as error:  # pylint: disable=broad-except
                print("# closing:", error)
        self.open.clear()

    def keep(self, thing):
        self.open.append(thing)
        return thing

    def producer(self, string=None, hub=None, **options):
        return self.keep(self.client.producer(string or self.string, hub or self.hub, **options))

    def reader(self, string=None, hub=None, partition="0", position="-1", **options):
        """A reader of one partition, or of all when that is None, from the beginning unless told otherwise."""
        place = {} if partition is None else {"partition_id": partition}
        return self.keep(self.client.reader(string or self.string, hub or self.hub, starting_position=position,
                                            **place, **options))


def with_key(string, name, key):
    return re.sub(r"SharedAccessKeyName=.*?;SharedAccessKey=[^;]*", "SharedAccessKeyName=%s;SharedAccessKey=%s" % (name, key),
                  string)


def numbered(count, size=0):
    return [EventData(str(n).ljust(size)) for n in range(count)]


def numbers(events):
    return [int(event.body_as_str()) for event in events]


async def send_numbered(stand, count, partition="0", size=0):
    """Numbered events in one partition, in as many batches as that takes."""
    producer = stand.producer()
    batch = await producer.create_batch(partition_id=partition)
    for event in numbered(count, size):
        try:
            batch.add(event)
        except ValueError:
            await producer.send_batch(batch)
            batch = await producer.create_batch(partition_id=partition)
            batch.add(event)
    await producer.send_batch(batch)
    return producer


class Clock:
    def __init__(self):
        self.began = time.monotonic()

    @property
    def seconds(self):
        return time.monotonic() - self.began
