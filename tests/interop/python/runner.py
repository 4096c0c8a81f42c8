"""runner.py CLIENT CASE... - runs common cases with one of Azure's Python clients, see CASES.md."""
import asyncio
import concurrent.futures
import importlib
import logging
import os
import sys
import time
import traceback

from clients import CLIENTS
from frame import CASES, Absent, OwnFault, Skipped, Stand

MODULES = ["cases_send", "cases_read", "cases_message", "cases_refuse", "cases_roads", "cases_long", "rate"]
AT_ONCE = 8  # most of a case is waiting
# These wait for the longest: beside the others, from the beginning.
WAITING = {"quiet", "crash", "processor", "sixth-reader", "listen-only", "send-only", "wrong-key", "missing-group"}
LIMIT_S = 240
THREADS = 100  # the synchronous client's calls; a reader has one of its own


def say(case, status, seconds, text):
    print(case, status, "%.2f" % seconds, " ".join(str(text).split())[:400], flush=True)


async def run_case(stand, case):
    began = time.monotonic()
    try:
        if case not in CASES:
            raise AssertionError("there is no such case here")
        result = await asyncio.wait_for(CASES[case](stand), LIMIT_S)
        seconds, text = result if isinstance(result, tuple) else (time.monotonic() - began, result or "")
        say(case, "pass", seconds, text)
    except Absent as why:
        say(case, "absent", 0, why)
    except OwnFault as why:
        say(case, "own-fault", time.monotonic() - began, why)
    except Skipped as why:
        say(case, "skipped", 0, why)
    except Exception as error:  # pylint: disable=broad-except
        traceback.print_exc()
        say(case, "fail", time.monotonic() - began, "%s: %s" % (type(error).__name__, error))


async def run_all(client, cases):
    asyncio.get_running_loop().set_default_executor(concurrent.futures.ThreadPoolExecutor(THREADS))
    places = asyncio.Semaphore(AT_ONCE)

    async def one(case):
        stand = Stand(client, case)
        if case in WAITING:
            return await run_case(stand, case)
        async with places:
            return await run_case(stand, case)

    await asyncio.gather(*(one(case) for case in cases))


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    for name in MODULES:
        importlib.import_module(name)
    asyncio.run(run_all(CLIENTS[sys.argv[1]](), sys.argv[2:]))
    sys.stdout.flush()
    os._exit(0)  # whatever threads of the client are left
