"""cases_read.py - reading much, from every position, and against other readers."""
import asyncio

from azure.eventhub.exceptions import ConnectError, ConnectionLostError, EventHubError

from cases_refuse import read_refused
from clients import until
from frame import case, check, numbers, same, send_numbered

MANY = 3050  # the default prefetch is 300


@case("read-many")
async def read_many(stand):
    async with stand:
        await send_numbered(stand, MANY)
        got = await stand.reader().has(MANY, 60)
        same("events", numbers(got), list(range(MANY)))
        same("sequence numbers", [event.sequence_number for event in got], list(range(MANY)))


@case("start-earliest")
async def start_earliest(stand):
    async with stand:
        await send_numbered(stand, 20)
        same("events", numbers(await stand.reader().has(20)), list(range(20)))


@case("start-latest")
async def start_latest(stand):
    async with stand:
        producer = await send_numbered(stand, 20)
        reader = stand.reader(position="@latest")
        # It is attached when events begin to come: it is sent some until one does.
        for n in range(100, 200):
            await producer.send_batch([stand_event(n)], partition_id="0")
            if await until(lambda: reader.events, 0.3):
                break
        last = n
        await producer.send_batch([stand_event(999)], partition_id="0")
        await until(lambda: reader.events and numbers(reader.events)[-1] == 999)
        got = numbers(reader.events)
        same("events", got, list(range(got[0], last + 1)) + [999])
        check(got[0] >= 100, "an event of before came", got)


def stand_event(n):
    from azure.eventhub import EventData
    return EventData(str(n))


async def starts(stand, position):
    """Readers from position(event 7): inclusive, and exclusive."""
    await send_numbered(stand, 20)
    events = await stand.reader().has(20)
    at = position(events[7])
    same("from it", numbers(await stand.reader(position=at, starting_position_inclusive=True).has(13)), list(range(7, 20)))
    same("behind it", numbers(await stand.reader(position=at).has(12)), list(range(8, 20)))


@case("start-offset")
async def start_offset(stand):
    async with stand:
        await starts(stand, lambda event: event.offset)


@case("start-sequence")
async def start_sequence(stand):
    async with stand:
        await starts(stand, lambda event: event.sequence_number)


@case("start-time")
async def start_time(stand):
    async with stand:
        producer = await send_numbered(stand, 10)
        await asyncio.sleep(0.05)  # so that there is a time between
        await producer.send_batch([stand_event(n) for n in range(10, 20)], partition_id="0")
        events = await stand.reader().has(20)
        between = events[9].enqueued_time + (events[10].enqueued_time - events[9].enqueued_time) / 2
        same("events", numbers(await stand.reader(position=between).has(10)), list(range(10, 20)))


def disconnected(error):
    text = "%s %s" % (getattr(error, "error", ""), error)
    check("stolen" in text or "epoch" in text, "told:", type(error).__name__, text)


@case("epoch-higher")
async def epoch_higher(stand):
    async with stand:
        await send_numbered(stand, 5)
        low = stand.reader(owner_level=1)
        await low.has(5)
        high = stand.reader(owner_level=2)
        await high.has(5)
        disconnected(await low.refused())
        return type(low.errors[0]).__name__


@case("epoch-lower")
async def epoch_lower(stand):
    async with stand:
        await send_numbered(stand, 5)
        await stand.reader(owner_level=2).has(5)
        for level in (1, None):
            beside = stand.reader(owner_level=level)
            disconnected(await beside.refused())
            same("events", len(beside.events), 0)


@case("sixth-reader")
async def sixth_reader(stand):
    async with stand:
        await send_numbered(stand, 5)
        for _ in range(5):
            await stand.reader().has(5)
        _, name = await read_refused(stand, ["maximum number of allowed receivers"])
        return name


@case("metrics")
async def metrics(stand):
    async with stand:
        await send_numbered(stand, 20)
        reader = stand.reader(track_last_enqueued_event_properties=True)
        await reader.has(20)
        told = dict(reader.context.last_enqueued_event_properties or {})
        same("sequence number", told.get("sequence_number"), 19)
        same("offset", str(told.get("offset")), str(reader.events[19].offset))
        check(told.get("enqueued_time") and told.get("retrieval_time"), "times", told)
