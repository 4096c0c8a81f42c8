"""cases_roads.py - the ways to the server: TLS, WebSocket, the emulator's string."""
import os

from azure.eventhub import TransportType

from frame import case, numbered, numbers, same


async def there_and_back(stand, string, **options):
    async with stand:
        producer = stand.producer(string=string, **options)
        same("name", (await producer.get_eventhub_properties())["eventhub_name"], stand.hub)
        await producer.send_batch(numbered(10), partition_id="0")
        same("events", numbers(await stand.reader(string=string, of_client=options).has(10)), list(range(10)))


@case("tls")
async def tls(stand):
    await there_and_back(stand, os.environ["STAND_TLS_STRING"], connection_verify=os.environ["STAND_CA"],
                         transport_type=TransportType.Amqp,
                         custom_endpoint_address="sb://localhost:" + os.environ["STAND_AMQPS"])


@case("websocket")
async def websocket(stand):
    await there_and_back(stand, os.environ["STAND_TLS_STRING"], connection_verify=os.environ["STAND_CA"],
                         transport_type=TransportType.AmqpOverWebsocket,
                         custom_endpoint_address="sb://localhost:" + os.environ["STAND_HTTPS"])


@case("emulator")
async def emulator(stand):
    await there_and_back(stand, stand.string)
