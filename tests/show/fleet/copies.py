"""copies.py - running copies of `weir process`, and the audit of what they say.

The --json lines of all copies are taken in the order they came, and held against what the
processor promises: every event is given, none again that lies before the checkpoint which the store
had when its owner was hit, and every open has exactly one close. Counted is what a copy that was
away tries to mark under an epoch that is over."""
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time

WEIR, PARTITIONS, COPIES = os.environ["WEIR"], 16, 5
PATIENCE_S = 60
ASKED_MAX, TIMED_OUT = 5, 5  # TIMED_OUT: the exit code of weir


def spawn(words, **more):
    """A process that dies with us."""
    return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *words], **more)


def ask(*words):
    """The lines that a command of weir prints. That a call of the store times out on a busy machine
    is no matter here."""
    for _ in range(ASKED_MAX):
        said = subprocess.run([WEIR, *words, "--json"], stdout=subprocess.PIPE, text=True)
        if said.returncode != TIMED_OUT:
            break
    said.check_returncode()
    return [json.loads(line) for line in said.stdout.splitlines()]


class Copy:
    """One running copy: its process, and a thread that puts its lines into the queue."""

    def __init__(self, name, store, inside, lines, errors):
        self.name, self.lines = name, lines
        self.owned = set()
        self.closed = {}  # partition: why, since somebody emptied it
        self.began = time.monotonic()
        self.process = spawn(
            [*inside, WEIR, "process", "homes", "--store", store, "--name", name, "--json"],
            stdout=subprocess.PIPE, stderr=errors, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put((time.monotonic(), self, json.loads(line)))

    def end(self):
        """Stops it in good order."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE_S)
        self.reader.join()
        if code != 0:
            print(f"{self.name}: exit code {code} after SIGTERM")
        return code == 0


class Copies:
    """All copies on one store. With a network, each lives in NETWORK-i."""

    def __init__(self, store, folder, network=None):
        self.store, self.network = store, network
        self.errors = open(os.path.join(folder, "errors"), "a", buffering=1)
        self.lines = queue.SimpleQueue()
        self.running = {}
        self.given = [{} for _ in range(PARTITIONS)]  # sequence: how often
        self.marked = [-1] * PARTITIONS               # the last mark that was told
        self.epochs = [0] * PARTITIONS                # the highest that was opened
        self.first = [None] * PARTITIONS              # event since somebody asked: (time, copy)
        self.last = [0.0] * PARTITIONS                # when the last event was given
        self.pause_s = 0.0                            # the longest between two, in this watch
        self.opened_at = 0.0                          # when the last open was told
        self.hit = {}                                 # partition: its checkpoint when last hit
        self.held = 0                                 # how often there was one
        self.away = None                              # who was frozen or cut, and is back
        self.opens = self.closes = self.odd = 0       # odd: opens and closes out of turn
        self.early = self.stale = 0                   # given again, and tried: see above
        self.takers = {"open": self.take_open, "close": self.take_close, "event": self.take_event,
                       "checkpoint": self.take_checkpoint, "error": self.take_error}

    def start(self, i):
        inside = ["ip", "netns", "exec", f"{self.network}-{i}"] if self.network else []
        self.running[i] = Copy(f"copy-{i}", self.store, inside, self.lines, self.errors)

    def end(self):
        """Stops all at once, and takes what they still say. Whether it was in good order."""
        copies, good = list(self.running.values()), []
        enders = [threading.Thread(target=lambda c=c: good.append(c.end())) for c in copies]
        for ender in enders:
            ender.start()
        self.until("the end", lambda: not any(ender.is_alive() for ender in enders))
        self.take_rest()
        return good.count(True) == len(copies) and self.odd == 0 and self.opens == self.closes

    # ---- what they say ----

    def take_open(self, at, copy, p, line):
        self.opens += 1
        self.odd += p in copy.owned
        copy.owned.add(p)
        self.opened_at = at
        self.epochs[p] = max(self.epochs[p], line["epoch"])

    def take_close(self, _, copy, p, line):
        self.closes += 1
        self.odd += p not in copy.owned
        copy.owned.discard(p)
        copy.closed[p] = line["reason"]

    def take_event(self, at, copy, p, line):
        sequence = line["sequence"]
        again = self.given[p].get(sequence, 0)
        if again and sequence <= self.hit.get(p, -1):
            self.early += 1
            self.note(at, copy, f"{p}/{sequence} again, the checkpoint was {self.hit[p]}")
        self.given[p][sequence] = again + 1
        self.pause_s = max(self.pause_s, at - self.last[p])
        self.last[p] = at
        if self.first[p] is None:
            self.first[p] = (at, copy)

    def take_checkpoint(self, _, copy, p, line):
        self.marked[p] = max(self.marked[p], line["sequence"])
        self.stale += copy is self.away and line["epoch"] < self.epochs[p]

    def take_error(self, at, copy, _, line):
        self.note(at, copy, f"{line['action']}: {line['reason']}")

    def note(self, at, copy, what):
        """For whoever wants to know why; in the file where their standard error goes."""
        self.errors.write(f"{at:.3f} {copy.name}: {what}\n")

    def take(self, wait_s):
        try:
            at, copy, line = self.lines.get(timeout=wait_s)
        except queue.Empty:
            return
        self.takers[line["type"]](at, copy, int(line.get("partition") or -1), line)

    def take_rest(self):
        while not self.lines.empty():
            self.take(0)

    def until(self, what, condition):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > end:
                shares = {c.name: sorted(c.owned) for c in self.running.values()}
                ended = [c.name for c in self.running.values() if c.process.poll() is not None]
                sys.exit(f"in vain for {PATIENCE_S} s: {what}: {shares}, ended: {ended}")
            self.take(0.05)

    def watch(self, seconds):
        """Only looks on. The longest time that a partition was without an event."""
        end = time.monotonic() + seconds
        self.take_rest()
        self.pause_s = 0.0
        while time.monotonic() < end:
            self.take(0.05)
        self.take_rest()
        return max(self.pause_s, max(time.monotonic() - last for last in self.last))

    # ---- how they are ----

    def balanced(self):
        return sorted(len(c.owned) for c in self.running.values()) == [3, 3, 3, 3, 4]

    def stored(self, owner=None):
        """The checkpoints in the store, of all or of one owner: partition: sequence."""
        lines = ask("checkpoint", "list", "homes", "--store", self.store)
        return {int(line["partition"]): line["sequence"] for line in lines
                if owner in (None, line["owner"])}

    def note_hit(self, victim):
        """Keeps the checkpoints that a copy leaves behind. What somebody has taken over by now is
        left out: it may have been marked since."""
        held = self.stored(victim.name)
        self.hit.update(held)
        self.held += len(held)

    def await_all(self):
        """Until every event that the hub has was given."""
        lines = ask("group", "describe", "homes", "--store", self.store)
        ends = {int(line["partition"]): line["last_sequence"] for line in lines
                if line["type"] == "partition"}
        self.until("every event", lambda: all(
            len(self.given[p]) == ends[p] + 1 for p in range(PARTITIONS)))

    def gaps(self, victim, partitions, began):
        """Until each partition is given elsewhere: how long since its last event of the victim, or
        since it was hit if that came later."""
        for p in partitions:
            self.first[p] = None

        def elsewhere():
            for p in partitions:
                if self.first[p] and self.first[p][1] is victim:
                    began[p], self.first[p] = self.first[p][0], None
            return all(self.first[p] for p in partitions)

        self.until(f"{victim.name}'s partitions elsewhere", elsewhere)
        return [self.first[p][0] - began[p] for p in partitions]
