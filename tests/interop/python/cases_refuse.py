"""cases_refuse.py - what is not allowed or not there, with the time until the program is told."""
import os

from azure.eventhub.exceptions import AuthenticationError, EventHubError

from clients import NotTold, Sync
from frame import Clock, OwnFault, Stand, case, check, numbered, numbers, same, send_numbered, with_key

LIMIT_S = 10


def look_at(error, words):
    """Whether it is the fault that was expected; what the client makes of an answer of $cbs hides it."""
    if "Status code: None" in str(error) and AuthenticationError not in words:
        raise OwnFault("told %s without the reason: the client drops status and description of an answer of $cbs that has an "
                       "error-condition, and Azure's have one" % type(error).__name__)
    check(any(word in str(error) if isinstance(word, str) else isinstance(error, word) for word in words),
          "told:", type(error).__name__, error)


async def try_send(stand, words, to, options):
    """The seconds until a send is refused, and the name of the error."""
    producer = stand.producer(**options)
    clock = Clock()
    try:
        await producer.send_batch(numbered(1), partition_id=to)
    except EventHubError as error:
        look_at(error, words)
        return clock.seconds, type(error).__name__
    raise AssertionError("it was sent")


async def send_refused(stand, words, partition_id=None, **options):
    """A send that must be refused, with one of these words or exceptions. When that lasts too long, the client's
    retries are to blame if it does not without them."""
    seconds, name = await try_send(stand, words, partition_id, options)
    if seconds >= LIMIT_S:
        once, name = await try_send(stand, words, partition_id, {**options, "retry_total": 0})
        check(once < LIMIT_S, "told after %.1f s, and after %.1f s without retries" % (seconds, once))
        raise OwnFault("told %s, but not within %d s: the client retries a send that was refused for good. With retry_total=0 "
                       "it is told in time" % (name, LIMIT_S))
    return seconds, name


async def try_read(stand, words, options):
    clock = Clock()
    reader = stand.reader(**options)
    error = await reader.refused(LIMIT_S)
    look_at(error, words)
    same("events", len(reader.events), 0)
    return clock.seconds, type(error).__name__


async def read_refused(stand, words, **options):
    """A reader that must be refused. When the client does not tell, it is to blame if its synchronous form without
    retries is told on the same place."""
    try:
        return await try_read(stand, words, options)
    except NotTold:
        async with Stand(Sync(), stand.hub) as other:
            _, name = await try_read(other, words, {**options, "of_client": {"retry_total": 0}})
        raise OwnFault("not told within %d s: receive() begins anew whenever its link is refused in the form that Azure has, an "
                       "attach without source and target. The synchronous client with retry_total=0 is told %s in time"
                       % (LIMIT_S, name)) from None


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
        words = ["InvalidSignature", "invalid signature", AuthenticationError]
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
        words = ["out of range", "not found", "could not be found", "is not valid", "Invalid partition 99", "Wrong partition id"]
        return told(await send_refused(stand, words, partition_id="99"), await read_refused(stand, words, partition="99"))
