"""cases_message.py - annotated messages: every section, and every kind of body."""
from azure.eventhub.amqp import AmqpAnnotatedMessage, AmqpMessageBodyType, AmqpMessageHeader, AmqpMessageProperties

from frame import case, check, same

PROPERTIES = {"message_id": "id", "user_id": b"user", "to": "to", "subject": "subject", "reply_to": "reply",
              "correlation_id": "correlation", "content_type": "type", "content_encoding": "encoding", "group_id": "group",
              "group_sequence": 7, "reply_to_group_id": "back"}


def plain(value):
    """The client gives text back as bytes."""
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value


async def there_and_back(stand, message):
    await stand.producer().send_batch([message], partition_id="0")
    return (await stand.reader().has(1))[0].raw_amqp_message


@case("annotated")
async def annotated(stand):
    async with stand:
        got = await there_and_back(stand, AmqpAnnotatedMessage(
            data_body=[b"one", b"two"], header=AmqpMessageHeader(durable=True, priority=3, time_to_live=600000),
            properties=AmqpMessageProperties(**PROPERTIES), application_properties={"a": 1},
            annotations={"x-own": "m"}, delivery_annotations={"x-delivery": "d"}, footer={"x-foot": "f"}))
        same("body", (got.body_type, list(got.body)), (AmqpMessageBodyType.DATA, [b"one", b"two"]))
        same("properties", plain({name: getattr(got.properties, name) for name in PROPERTIES}), plain(PROPERTIES))
        same("application properties", plain(got.application_properties), {"a": 1})
        own = {key: value for key, value in got.annotations.items() if not key.startswith(b"x-opt-")}
        same("annotations", plain(own), {"x-own": "m"})
        same("delivery annotations", plain(got.delivery_annotations), {"x-delivery": "d"})
        same("footer", plain(got.footer), {"x-foot": "f"})
        return "header " + ("kept" if got.header and got.header.priority == 3 else "dropped")


@case("body-value")
async def body_value(stand):
    async with stand:
        value = {"a": [1, "two", None, True], "b": 2**30}
        got = await there_and_back(stand, AmqpAnnotatedMessage(value_body=value))
        same("type", got.body_type, AmqpMessageBodyType.VALUE)
        same("body", plain(got.body), value)


@case("body-sequence")
async def body_sequence(stand):
    async with stand:
        got = await there_and_back(stand, AmqpAnnotatedMessage(sequence_body=[[1, "two"], [3, None]]))
        same("type", got.body_type, AmqpMessageBodyType.SEQUENCE)
        same("body", plain(list(got.body)), [[1, "two"], [3, None]])
