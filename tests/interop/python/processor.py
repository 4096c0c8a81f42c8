"""processor.py sync|aio - one process of the client's processor, its checkpoints in Azurite.

It prints partition and body of each event, and checkpoints every batch. It takes batches, for the
synchronous client goes round its partitions with one call each, and waits 0.2 s at each that has nothing.
"""
import asyncio
import os
import sys

CONTAINER = "checkpoints"
BATCH = 50
BALANCE_S = 2  # the client's own 30 s and 180 s are too long for a test
EXPIRE_S = 12
STRING, BLOB = os.environ["STAND_STRING"], os.environ["STAND_BLOB"]
OPTIONS = {"eventhub_name": "processor", "load_balancing_interval": BALANCE_S,
           "partition_ownership_expiration_interval": EXPIRE_S}


def say(context, events):
    for event in events:
        print(context.partition_id, event.body_as_str(), flush=True)
    return events


def make_container():
    from azure.core.exceptions import ResourceExistsError
    from azure.storage.blob import ContainerClient
    try:
        ContainerClient.from_connection_string(BLOB, CONTAINER).create_container()
    except ResourceExistsError:
        pass


def run_sync():
    from azure.eventhub import EventHubConsumerClient
    from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore

    def take(context, events):
        if say(context, events):
            context.update_checkpoint(events[-1])
    store = BlobCheckpointStore.from_connection_string(BLOB, CONTAINER)
    client = EventHubConsumerClient.from_connection_string(STRING, "cg1", checkpoint_store=store, **OPTIONS)
    client.receive_batch(on_event_batch=take, max_batch_size=BATCH, starting_position="-1")


async def run_aio():
    from azure.eventhub.aio import EventHubConsumerClient
    from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore

    async def take(context, events):
        if say(context, events):
            await context.update_checkpoint(events[-1])
    store = BlobCheckpointStore.from_connection_string(BLOB, CONTAINER)
    client = EventHubConsumerClient.from_connection_string(STRING, "cg1", checkpoint_store=store, **OPTIONS)
    await client.receive_batch(on_event_batch=take, max_batch_size=BATCH, starting_position="-1")


if __name__ == "__main__":
    make_container()
    if sys.argv[1] == "aio":
        asyncio.run(run_aio())
    else:
        run_sync()
