#!/usr/bin/python3
"""fleet.py MODE ROUNDS - five `weir process` on `weir serve`, under load, and what happens to them.

  kill     one is killed with SIGKILL, and started again when the others have its partitions
  freeze   one is stopped with SIGSTOP until the others have them, and then goes on
  cut      the link of one is down until the others have them, and then up again
  move     one is stopped with SIGTERM and started again: its partitions move twice
  outage   PostgreSQL, the store, is shut down or frozen in turn, for OUTAGE_S seconds
  start    without load: one copy alone, and then five at once

What the copies say is audited by copies.py, and the store notes by a trigger of its own when a
checkpoint goes back. Besides, after `move` and `outage` no event was given twice, and a copy that
comes back finds its partitions lost. `cut` runs in the network FLEET_NETWORK (see 63-copy-cut.sh).
Exits 77 where there is no PostgreSQL."""
import json
import os
import signal
import subprocess
import sys
import threading
import time

from copies import COPIES, PARTITIONS, PATIENCE_S, WEIR, Copies, spawn
from postgres import Missing, Postgres, Session
from sqlite import Sqlite

RATE = os.environ.get("RATE", "1600")              # events in a second, one by one
OUTAGE_S = float(os.environ.get("OUTAGE_S", "60"))
SLACK_S = float(os.environ.get("SLACK_S", "0.5"))  # for the machine
BEAT_S, EXPIRE_S = 1, 3                            # the processor's defaults
PAUSE_S = 1.5 + SLACK_S                            # no partition waits longer for an event
TAKEN_S, MOVED_S = 5, 0.25                         # until others give its events, at p99
ALONE_S, ALL_S = 1, 3                              # from the start until all is owned
NETWORK, HOME = os.environ.get("FLEET_NETWORK"), os.environ.get("FLEET_HOME", "127.0.0.1")


def show_times(what, took, limit_s=None):
    """Prints how long things took; whether p99 is within the limit."""
    took = sorted(took)
    p99 = took[-(-len(took) * 99 // 100) - 1]
    limit = "" if limit_s is None else f" (p99 may be {limit_s:g} s)"
    print(f"{what}: {len(took)} times, p50 {took[len(took) // 2]:.3f} s, p99 {p99:.3f} s, "
          f"longest {took[-1]:.3f} s{limit}", flush=True)
    return limit_s is None or p99 <= limit_s


# ---- one is hit ----

def set_link(i, how):
    subprocess.run(["ip", "link", "set", f"port{i}", how], check=True)


def kill(copies, i, _):
    victim, now = copies.running[i], time.monotonic()
    partitions = sorted(victim.owned)
    victim.process.kill()
    victim.process.wait(PATIENCE_S)
    copies.note_hit(victim)
    took = copies.gaps(victim, partitions, dict.fromkeys(partitions, now))
    victim.reader.join()
    copies.take_rest()
    copies.closes += len(victim.owned)  # a dead one closes nothing
    copies.start(i)
    return took


def move(copies, i, _):
    victim = copies.running[i]
    partitions, ended = sorted(victim.owned), []
    stopper = threading.Thread(target=lambda: ended.append(victim.end()))
    stopper.start()
    took = copies.gaps(victim, partitions, {p: copies.last[p] for p in partitions})
    copies.until("the end", lambda: not stopper.is_alive())
    copies.odd += not ended[0]
    copies.start(i)
    return took


def send_away(copies, i, hit, heal, noticed):
    """It is hit and does not know; when it is back it finds out: noticed says how soon."""
    victim, now = copies.running[i], time.monotonic()
    partitions = sorted(victim.owned)
    hit()
    copies.note_hit(victim)
    took = copies.gaps(victim, partitions, dict.fromkeys(partitions, now))
    before = copies.stored()
    copies.away, victim.closed = victim, {}
    heal()
    back = time.monotonic()
    copies.until("the one away to notice", lambda: not set(partitions) - set(victim.closed))
    noticed.append(time.monotonic() - back)
    after = copies.stored()
    if any(victim.closed[p] != "lost" for p in partitions):
        sys.exit(f"{victim.name} closed for other reasons than it should: {victim.closed}")
    if any(after.get(p, -1) < sequence for p, sequence in before.items()):
        sys.exit(f"checkpoints went back: {before} {after}")
    copies.until("balance", copies.balanced)
    copies.away = None
    return took


def freeze(copies, i, noticed):
    process = copies.running[i].process
    return send_away(copies, i, lambda: process.send_signal(signal.SIGSTOP),
                     lambda: process.send_signal(signal.SIGCONT), noticed)


def cut(copies, i, noticed):
    return send_away(copies, i, lambda: set_link(i, "down"), lambda: set_link(i, "up"), noticed)


def hit_copies(copies, _, mode, rounds):
    hit, took, noticed = {"kill": kill, "freeze": freeze, "cut": cut, "move": move}[mode], [], []
    for n in range(rounds):
        took += hit(copies, n % COPIES, noticed)
        copies.until("balance", copies.balanced)
    if noticed:
        show_times(f"{mode}: all closed as lost after it was back", noticed)
    return show_times(f"{mode}: partitions given elsewhere", took,
                      MOVED_S if mode == "move" else TAKEN_S)


# ---- the store is away ----

def outage(copies, store, hang):
    """One of OUTAGE_S: how long a partition waited for an event meanwhile, and how long it took
    from when PostgreSQL answered again until what was marked by then was in it."""
    before, given = copies.stored(), sum(map(len, copies.given))
    if hang:
        store.freeze()
    else:
        store.stop()
    pause_s = copies.watch(OUTAGE_S)
    given = sum(map(len, copies.given)) - given
    began = time.monotonic()
    if hang:
        store.thaw()
    else:
        store.start()
    with Session(store) as session:
        session.checkpoints()
        back = time.monotonic()
        copies.take_rest()
        marked = dict(enumerate(copies.marked))
        copies.until("the checkpoints", lambda: session.has(marked))
        caught_s = time.monotonic() - back
    behind = sum(marked.values()) - sum(before.values())
    print(f"outage: {'hung' if hang else 'stopped'} for {OUTAGE_S:g} s, {given} events given, "
          f"longest pause of a partition {pause_s:.3f} s, answered {back - began:.3f} s after, "
          f"checkpoints caught up by {behind} events in {caught_s:.3f} s", flush=True)
    return pause_s, caught_s


def take_store(copies, store, _, rounds):
    opens, closes = copies.opens, copies.closes
    pauses, caught = [], []
    for n in range(rounds):
        pause_s, caught_s = outage(copies, store, n % 2 == 1)
        pauses.append(pause_s)
        caught.append(caught_s)
        copies.watch(EXPIRE_S + 2 * BEAT_S)  # whoever will be taken for dead is by then
    moves = copies.opens - opens, copies.closes - closes
    print(f"outage: {rounds} rounds, {moves[0]} partitions opened, {moves[1]} closed")
    paused = show_times("outage: longest pause of a partition", pauses, PAUSE_S)
    return show_times("outage: caught up", caught, BEAT_S + SLACK_S) and paused and moves == (0, 0)


# ---- the modes ----

def under_load(mode, rounds, folder, store, rounds_of):
    """Copies with events to give, while rounds_of does something to them; then the audit."""
    copies = Copies(store.url, folder, NETWORK)
    for i in range(COPIES):
        copies.start(i)
    copies.until("balance at the start", copies.balanced)
    load = spawn([WEIR, "bench", "send", "homes", "--rate", RATE, "--batch", "1", "--seconds",
                  "100000"], stdout=subprocess.DEVNULL)
    copies.until("events everywhere", lambda: all(copies.first))
    store.watch_checkpoints()
    good = rounds_of(copies, store, mode, rounds)
    load.send_signal(signal.SIGINT)
    load.wait(PATIENCE_S)
    copies.await_all()
    good = copies.end() and good

    events = sum(len(g) for g in copies.given)
    twice = sum(n - 1 for g in copies.given for n in g.values())
    went_back = store.count_back()
    print(f"{events} events, none missing, {twice} given twice, {copies.early} of these before one "
          f"of {copies.held} checkpoints; {went_back} checkpoints went back, {copies.stale} tried "
          f"by a copy that was away; {copies.opens} opened, {copies.closes} closed, {copies.odd} "
          f"out of turn")
    # Trying is no crime: who was away goes on with what it has in hand until it hears of its loss.
    again = twice if mode in ("move", "outage") else 0
    return good and copies.early + went_back + again == 0


def start_once(folder, name, count):
    """So many copies on a new store: from the last start to the last open. Nothing moves after
    that, and in the end all is closed."""
    copies = Copies(Sqlite(os.path.join(folder, name)).url, folder)
    for i in range(count):
        copies.start(i)
    copies.until("all partitions", lambda: copies.opens >= PARTITIONS)
    took = copies.opened_at - copies.running[count - 1].began
    copies.watch(EXPIRE_S)
    if copies.opens != PARTITIONS or copies.closes or (count == COPIES and not copies.balanced()):
        sys.exit(f"{name}: {copies.opens} opened, {copies.closes} closed, shares "
                 f"{sorted(len(c.owned) for c in copies.running.values())}")
    if not copies.end():
        sys.exit(f"{name}: {copies.opens} opened, {copies.closes} closed in the end")
    return took


def start(_, rounds, folder, *__):
    alone = [start_once(folder, f"alone-{n}", 1) for n in range(rounds)]
    five = [start_once(folder, f"five-{n}", COPIES) for n in range(rounds)]
    good = show_times("start: one copy has all", alone, ALONE_S)
    return show_times("start: five copies have 3/3/3/3/4, nothing moved", five, ALL_S) and good


MODES = {  # what runs it, whether on PostgreSQL, and what happens in a round
    "kill": (under_load, False, hit_copies),
    "freeze": (under_load, True, hit_copies),  # a file's lock would be frozen with its holder
    "move": (under_load, False, hit_copies),
    "cut": (under_load, True, hit_copies),
    "outage": (under_load, True, take_store),
    "start": (start, False, None),
}


def main():
    mode, rounds, folder = sys.argv[1], int(sys.argv[2]), os.environ["TMPDIR"]
    run, on_postgres, rounds_of = MODES[mode]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    server = spawn([WEIR, "serve", "--json", "--data", os.path.join(folder, "d"), "--amqp",
                    HOME + ":0", "--amqps", "off", "--http", "off", "--hub", f"homes:{PARTITIONS}"],
                   stdout=subprocess.PIPE, text=True)
    os.environ["WEIR_CONNECT"] = json.loads(server.stdout.readline())["connection_string"]
    try:
        with Postgres(HOME) if on_postgres else Sqlite(os.path.join(folder, "owners.db")) as store:
            good = run(mode, rounds, folder, store, rounds_of)
    except Missing as why:
        print(why)
        sys.exit(77)
    server.terminate()
    server.wait(PATIENCE_S)
    sys.exit(0 if good else 1)


main()
