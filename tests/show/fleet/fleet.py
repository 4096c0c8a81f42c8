#!/usr/bin/python3
"""fleet.py MODE ROUNDS - five `weir process` on `weir serve`, under load, and what happens to them.

  kill     one is killed with SIGKILL, and started again when the others have its partitions
  freeze   one is stopped with SIGSTOP until the others have them, and then goes on
  move     one is stopped with SIGTERM and started again: its partitions move twice

Copies are read by their --json lines. At the end the load stops, and every event must have been given
at least once; after `move`, exactly once. What was given twice must lie behind the checkpoint that the
store had when the owner was hit; a copy that was frozen must not mark anything since, nor the store's
checkpoints go back."""
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time

WEIR, PARTITIONS, COPIES, RATE = os.environ["WEIR"], 16, 5, 1600
PATIENCE_S = 60


class Copy:
    """One running copy: its process, and a thread that hands its lines to the fleet."""

    def __init__(self, fleet, name):
        self.name, self.fleet, self.owned = name, fleet, {}
        self.process = subprocess.Popen(
            [WEIR, "process", "homes", "--store", fleet.store, "--name", name, "--json"],
            stdout=subprocess.PIPE, stderr=fleet.errors, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.fleet.lines.put((time.monotonic(), self, json.loads(line)))

    def end(self, number):
        self.process.send_signal(number)
        self.process.wait(PATIENCE_S)
        self.reader.join()


class Fleet:
    def __init__(self, folder):
        self.store = "sqlite:" + os.path.join(folder, "owners.db")
        self.errors = open(os.path.join(folder, "errors"), "w")
        self.lines = queue.SimpleQueue()
        self.given = [{} for _ in range(PARTITIONS)]    # sequence: how often
        self.first = [None] * PARTITIONS                # since it was asked for: (time, copy)
        self.last = [0.0] * PARTITIONS                  # when the last event was given
        self.hit = {}                                   # partition: its checkpoint when hit
        self.early = self.zombies = self.back = self.opens = self.closes = 0
        self.frozen = None                              # (copy, its partitions)
        self.copies = {}

    def stored(self):
        """The checkpoints in the store: partition: sequence."""
        said = subprocess.run([WEIR, "checkpoint", "list", "homes", "--store", self.store, "--json"],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
        lines = [json.loads(line) for line in said.splitlines()]
        return {int(line["partition"]): line["sequence"] for line in lines}

    def start(self, i):
        self.copies[i] = Copy(self, f"copy-{i}")

    def take(self, wait_s):
        try:
            at, copy, line = self.lines.get(timeout=wait_s)
        except queue.Empty:
            return
        kind, p = line["type"], int(line.get("partition") or -1)
        if kind == "open":
            self.opens += 1
            copy.owned[p] = True
        elif kind == "close":
            self.closes += 1
            copy.owned.pop(p, None)
        elif kind == "checkpoint":
            if self.frozen and copy is self.frozen[0] and p in self.frozen[1]:
                self.zombies += 1
        elif kind == "event":
            sequence = line["sequence"]
            again = self.given[p].get(sequence, 0)
            if again and sequence <= self.hit.get(p, -1):
                self.early += 1
            self.given[p][sequence] = again + 1
            self.last[p] = at
            if self.first[p] is None:
                self.first[p] = (at, copy)

    def until(self, what, condition):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > end:
                shares = {c.name: sorted(c.owned) for c in self.copies.values()}
                sys.exit(f"in vain for {PATIENCE_S} s: {what}: {shares}")
            self.take(0.05)

    def balanced(self):
        counts = sorted(len(c.owned) for c in self.copies.values())
        return counts == [3, 3, 3, 3, 4]

    def elsewhere(self, partitions, victim):
        return all(self.first[p] and self.first[p][1] is not victim for p in partitions)


def gaps(fleet, victim, partitions, began):
    """Until each partition was given elsewhere; what the victim still gave does not count."""
    for p in partitions:
        fleet.first[p] = None

    def done():
        for p in partitions:
            if fleet.first[p] and fleet.first[p][1] is victim:
                began[p], fleet.first[p] = fleet.first[p][0], None
        return fleet.elsewhere(partitions, victim)

    fleet.until(f"{victim.name}'s partitions elsewhere", done)
    return [fleet.first[p][0] - began[p] for p in partitions]


def one_round(fleet, mode, i):
    victim = fleet.copies[i]
    partitions = sorted(victim.owned)
    now = time.monotonic()
    if mode == "freeze":
        victim.process.send_signal(signal.SIGSTOP)
        fleet.hit = fleet.stored()
        took = gaps(fleet, victim, partitions, {p: now for p in partitions})
        fleet.frozen = (victim, partitions)
        before = fleet.stored()
        victim.process.send_signal(signal.SIGCONT)
        fleet.until("the frozen one to notice", lambda: not set(partitions) & set(victim.owned))
        after = fleet.stored()
        fleet.back += sum(after[p] < before[p] for p in partitions)
        fleet.until("balance", fleet.balanced)
        fleet.frozen = None
        return took
    if mode == "kill":
        victim.process.kill()
        victim.process.wait(PATIENCE_S)
        fleet.hit = fleet.stored()
        took = gaps(fleet, victim, partitions, {p: now for p in partitions})
        victim.reader.join()
        fleet.closes += len(victim.owned)  # a dead one closes nothing
    else:
        stopper = threading.Thread(target=victim.end, args=(signal.SIGTERM,))
        stopper.start()
        took = gaps(fleet, victim, partitions, {p: fleet.last[p] for p in partitions})
        fleet.until("the end", lambda: not stopper.is_alive())
    fleet.start(i)
    fleet.until("balance", fleet.balanced)
    return took


def main():
    mode, rounds, folder = sys.argv[1], int(sys.argv[2]), os.environ["TMPDIR"]
    server = subprocess.Popen(
        [WEIR, "serve", "--json", "--data", os.path.join(folder, "d"), "--amqp", "127.0.0.1:0",
         "--amqps", "off", "--http", "off", "--hub", f"homes:{PARTITIONS}"],
        stdout=subprocess.PIPE, text=True)
    os.environ["WEIR_CONNECT"] = json.loads(server.stdout.readline())["connection_string"]
    fleet = Fleet(folder)
    for i in range(COPIES):
        fleet.start(i)
    fleet.until("balance at the start", fleet.balanced)
    load = subprocess.Popen([WEIR, "bench", "send", "homes", "--rate", str(RATE), "--batch", "1",
                             "--seconds", "100000"], stdout=subprocess.DEVNULL)
    fleet.until("events everywhere", lambda: all(fleet.first))
    took = []
    for n in range(rounds):
        took += one_round(fleet, mode, n % COPIES)
    load.send_signal(signal.SIGINT)
    load.wait(PATIENCE_S)

    def whole():
        return all(g and len(g) == max(g) + 1 for g in fleet.given)

    fleet.until("every event", whole)
    for copy in fleet.copies.values():
        copy.end(signal.SIGTERM)
    while not fleet.lines.empty():
        fleet.take(0)
    server.terminate()
    server.wait(PATIENCE_S)

    events = sum(len(g) for g in fleet.given)
    twice = sum(n - 1 for g in fleet.given for n in g.values())
    took.sort()
    p99 = took[max(0, -(-len(took) * 99 // 100) - 1)]
    print(f"{mode}: {rounds} rounds, {len(took)} partitions taken over: "
          f"p50 {took[len(took) // 2]:.3f} s, p99 {p99:.3f} s, longest {took[-1]:.3f} s")
    print(f"{events} events, none missing, {twice} given twice, {fleet.early} of these before the "
          f"checkpoint; {fleet.zombies} checkpoints of a thawed copy, {fleet.back} went back; "
          f"{fleet.opens} opened, {fleet.closes} closed")
    limit_s = 0.25 if mode == "move" else 5
    good = (fleet.early == 0 and fleet.zombies == 0 and fleet.back == 0 and fleet.opens == fleet.closes and
            p99 <= limit_s and (mode != "move" or twice == 0))
    sys.exit(0 if good else 1)


main()
