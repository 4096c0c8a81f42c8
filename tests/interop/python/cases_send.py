"""cases_send.py - properties, and every way to send."""
import asyncio
import datetime

from azure.eventhub import EventData
from azure.eventhub.exceptions import EventDataSendError

from clients import until
from frame import Absent, Clock, case, check, numbered, numbers, same, send_numbered

BODIES = ["a", "b", "c"]


@case("properties")
async def properties(stand):
    async with stand:
        producer = stand.producer()
        hub = await producer.get_eventhub_properties()
        same("name", hub["eventhub_name"], stand.hub)
        same("partitions", hub["partition_ids"], ["0", "1", "2", "3"])
        age = datetime.datetime.now(datetime.timezone.utc) - hub["created_at"].replace(tzinfo=datetime.timezone.utc)
        check(abs(age.total_seconds()) < 3600, "created", age, "ago")
        empty = await producer.get_partition_properties("2")
        same("empty", (empty["is_empty"], empty["last_enqueued_sequence_number"]), (True, -1))
        await producer.send_batch(numbered(3), partition_id="1")
        full = await producer.get_partition_properties("1")
        last = (await stand.reader(partition="1").has(3))[2]
        same("full", (full["is_empty"], full["beginning_sequence_number"], full["last_enqueued_sequence_number"]), (False, 0, 2))
        same("offset", str(full["last_enqueued_offset"]), str(last.offset))
        same("time", full["last_enqueued_time_utc"].replace(tzinfo=None, microsecond=0),
             last.enqueued_time.replace(tzinfo=None, microsecond=0))


def marked(bodies):
    events = [EventData(body) for body in bodies]
    for n, event in enumerate(events):
        event.properties = {"n": n}
    return events


def same_events(events, bodies):
    same("bodies", [event.body_as_str() for event in events], bodies)
    same("properties", [event.properties for event in events], [{b"n": n} for n in range(len(bodies))])


@case("send-list")
async def send_list(stand):
    async with stand:
        producer = stand.producer()
        await producer.send_batch(marked(BODIES))
        await producer.send_event(EventData("one"))
        got = await stand.reader(partition=None).has(4)
        same("one", sorted(event.body_as_str() for event in got), sorted(BODIES + ["one"]))
        same_events([event for event in got if event.body_as_str() != "one"], BODIES)


@case("send-batch")
async def send_batch(stand):
    async with stand:
        producer = stand.producer()
        batch = await producer.create_batch(partition_id="0")
        count = 0
        try:
            for event in numbered(1000, 10000):
                batch.add(event)
                count += 1
        except ValueError:
            pass
        check(90 <= count < 110, count, "events of 10,000 bytes are a batch")
        await producer.send_batch(batch)
        same("events", numbers(await stand.reader().has(count)), list(range(count)))
        return "%d events" % count


@case("send-partition")
async def send_partition(stand):
    async with stand:
        producer = stand.producer()
        for partition in range(4):
            await producer.send_batch(marked([str(partition)] * 3), partition_id=str(partition))
        for partition in range(4):
            same_events(await stand.reader(partition=str(partition)).has(3), [str(partition)] * 3)


@case("send-key")
async def send_key(stand):
    async with stand:
        producer = stand.producer()
        for n in range(100):
            await producer.send_batch([EventData(str(n))], partition_key="key %d" % (n % 10))
        reader = stand.reader(partition=None)
        await reader.has(100)
        same("events", sorted(numbers(reader.events)), list(range(100)))
        where = {}
        for event, partition in zip(reader.events, reader.partitions):
            same("key", event.partition_key, b"key %d" % (int(event.body_as_str()) % 10))
            where.setdefault(event.partition_key, set()).add(partition)
        check(all(len(places) == 1 for places in where.values()), "a key in several partitions", where)


@case("send-ids")
async def send_ids(stand):
    async with stand:
        event = EventData(b"body")
        event.message_id, event.correlation_id, event.content_type = "message", "correlation", "text/plain"
        now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
        event.properties = {"text": "ä", "int": 7, "double": 0.5, "bool": True, "bytes": b"\0\xff", "time": now}
        await stand.producer().send_batch([event], partition_id="0")
        got = (await stand.reader().has(1))[0]
        same("ids", (got.message_id, got.correlation_id, got.content_type), ("message", "correlation", "text/plain"))
        found = {key.decode(): value for key, value in got.properties.items()}
        check(isinstance(found["time"], (int, datetime.datetime)), "time is", found["time"])
        if isinstance(found["time"], int):  # the client gives times as milliseconds
            found["time"] = datetime.datetime.fromtimestamp(found["time"] / 1000, datetime.timezone.utc)
        found["time"] = found["time"].replace(tzinfo=datetime.timezone.utc)
        same("properties", found, {**event.properties, "text": "ä".encode()})
        return await send_long(stand)


async def send_long(stand):
    """A property of 64 bits, for which the client has no type."""
    event = EventData(b"body")
    event.properties = {"long": 2**40}
    try:
        await stand.producer().send_batch([event], partition_id="1")
    except ValueError as error:
        check("Value supplied for int invalid" in str(error.__context__), "told:", error)
        return "without 64-bit integers, which the client refuses to encode"
    same("long", (await stand.reader(partition="1").has(1))[0].properties, {b"long": 2**40})
    return "with 64-bit integers"


@case("size-below")
async def size_below(stand):
    async with stand:
        body = bytes(range(250)) * 4000
        await stand.producer().send_batch([EventData(body)], partition_id="0")
        got = (await stand.reader().has(1))[0]
        check(b"".join(got.body) == body, "another body came back")


@case("size-above")
async def size_above(stand):
    async with stand:
        producer = stand.producer()
        clock = Clock()
        try:
            await producer.send_batch([EventData(b"x" * 1100000)], partition_id="0")
            raise AssertionError("1,100,000 bytes were taken")
        except (ValueError, EventDataSendError) as error:
            said = type(error).__name__
        seconds = clock.seconds
        check(seconds < 10, "told after", seconds)
        await producer.send_batch(numbered(1), partition_id="0")
        same("afterwards", numbers(await stand.reader().has(1)), [0])
        return "%s after %.1f s" % (said, seconds)


@case("buffered")
async def buffered(stand):
    async with stand:
        lost = []

        async def failed_aio(events, partition, error):
            lost.append(error)

        async def sent_aio(events, partition):
            pass
        aio = stand.client.kind == "aio"
        producer = stand.producer(buffered_mode=True,
                                  on_error=failed_aio if aio else lambda events, partition, error: lost.append(error),
                                  on_success=sent_aio if aio else lambda events, partition: None)
        for event in numbered(1000):
            await producer.send_event(event)
        await producer.flush()
        same("lost", lost, [])
        reader = stand.reader(partition=None)
        await reader.has(1000)
        await asyncio.sleep(0.5)  # for what may come twice
        same("events", sorted(numbers(reader.events)), list(range(1000)))


@case("idempotent")
async def idempotent(_stand):
    raise Absent("azure-eventhub 5.15.1 has no idempotent producer")
