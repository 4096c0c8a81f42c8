"""cases_refuse.py - what is not allowed or not there, with the time until the program is told."""
import os

from azure.eventhub.exceptions import AuthenticationError, ConnectError, EventHubError

from frame import Clock, case, check, numbered, numbers, same, send_numbered, with_key

LIMIT_S = 10


async def send_refused(stand, words, **options):
    """The seconds until a send is refused with one of these words."""
    to = {"partition_id": options.pop("partition_id", None)}
    producer = stand.producer(**options)
    clock = Clock()
    try:
        await producer.send_batch(numbered(1), **to)
    except EventHubError as error:
        check(any(word in str(error) for word in words), "told:", type(error).__name__, error)
        check(clock.seconds < LIMIT_S, "told after %.1f s" % clock.seconds)
        return clock.seconds, type(error).__name__
    raise AssertionError("it was sent")


async def read_refused(stand, words, **options):
    clock = Clock()
    reader = stand.reader(**options)
    error = await reader.refused(60)
    check(any(word in str(error) for word in words), "told:", type(error).__name__, error)
    check(clock.seconds < LIMIT_S, "told after %.1f s" % clock.seconds)
    same("events", len(reader.events), 0)
    return clock.seconds, type(error).__name__


def told(*both):
    return max(seconds for seconds, _ in both), ", ".join("%s %.1f s" % (name, seconds) for seconds, name in both)


@case("listen-only")
async def listen_only(stand):
    async with stand:
        await send_numbered(stand, 5)
        string = os.environ["STAND_LISTEN"]
        same("events", numbers(await stand.reader(string=string).has(5)), list(range(5)))
        _, text = told(await send_refused(stand, ["Unauthorized", "unauthorized", "'Send'"], string=string))
        return text


@case("send-only")
async def send_only(stand):
    async with stand:
        string = os.environ["STAND_SEND"]
        await stand.producer(string=string).send_batch(numbered(5), partition_id="0")
        same("events", numbers(await stand.reader().has(5)), list(range(5)))
        _, text = told(await read_refused(stand, ["Unauthorized", "unauthorized", "'Listen'"], string=string))
        return text


@case("wrong-key")
async def wrong_key(stand):
    async with stand:
        string = with_key(stand.string, "RootManageSharedAccessKey", "another")
        words = ["InvalidSignature", "invalid signature"]
        return told(await send_refused(stand, words, string=string), await read_refused(stand, words, string=string))


@case("missing-hub")
async def missing_hub(stand):
    async with stand:
        words = ["could not be found"]
        return told(await send_refused(stand, words, hub="nothing"), await read_refused(stand, words, hub="nothing"))


@case("missing-group")
async def missing_group(stand):
    async with stand:
        return told(await read_refused(stand, ["could not be found"], group="nobody"))


@case("missing-partition")
async def missing_partition(stand):
    async with stand:
        words = ["out of range", "not found", "could not be found", "is not valid", "invalid"]
        return told(await send_refused(stand, words, partition_id="99"), await read_refused(stand, words, partition="99"))
