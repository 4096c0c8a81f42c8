"""postgres.py - a PostgreSQL server of a show's own, in a folder of its own, without a password. It
listens on one address, and is gone with us."""
import contextlib
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time

READY_S = 60

# What the store itself saw: checkpoints that went back though nobody had set them.
WATCH = """
CREATE TABLE public.went_back (LIKE weir.record);
CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO public.went_back SELECT NEW.*; RETURN NEW; END $$;
CREATE TRIGGER note AFTER UPDATE ON weir.record FOR EACH ROW
WHEN (NEW.mark_sequence < OLD.mark_sequence AND NEW.rewinds = OLD.rewinds)
EXECUTE FUNCTION public.note();
"""


class Missing(Exception):
    """There can be no server here; the text says why."""


def find_program(name):
    """Debian keeps the server's programs out of PATH; the newest is the last."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    if not found:
        raise Missing("PostgreSQL is not installed (Debian: postgresql)")
    return found[-1]


def find_user():
    """Whom the server runs as: it refuses to be root."""
    for name in ("postgres", "nobody") if os.geteuid() == 0 else ():
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return pwd.getpwuid(os.geteuid())


def free_port(address):
    with socket.socket() as taken:
        taken.bind((address, 0))
        return taken.getsockname()[1]


class Postgres:
    def __init__(self, address):
        self.user, self.address, self.port = find_user(), address, free_port(address)
        initdb, self.program = find_program("initdb"), find_program("postgres")
        # Not below TMPDIR, which may be root's alone.
        self.folder = tempfile.mkdtemp(prefix="weir-pg-", dir="/tmp")
        os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
        self.url = f"postgres://weir@{address}:{self.port}/postgres"
        self.process = None
        subprocess.run([*self.as_user(), initdb, "-D", self.folder, "-U", "weir", "-A", "trust",
                        "-E", "UTF8", "--locale=C", "--no-sync"],
                       stdout=subprocess.DEVNULL, check=True)
        with open(os.path.join(self.folder, "pg_hba.conf"), "a") as rules:
            rules.write("host all all samenet trust\n")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder)

    def as_user(self):
        words = ["setpriv", "--pdeathsig", "QUIT"]
        if os.geteuid() == 0:
            words += ["--reuid", str(self.user.pw_uid), "--regid", str(self.user.pw_gid),
                      "--clear-groups"]
        return words

    def is_ready(self):
        """The last line of postmaster.pid says how far it is."""
        try:
            with open(os.path.join(self.folder, "postmaster.pid")) as status:
                lines = status.read().split()
        except FileNotFoundError:
            return False
        return bool(lines) and lines[0] == str(self.process.pid) and lines[-1] == "ready"

    def start(self):
        """Returns when it accepts connections."""
        self.process = subprocess.Popen(
            [*self.as_user(), self.program, "-D", self.folder, "-k", self.folder, "-p",
             str(self.port), "-c", f"listen_addresses={self.address}", "-c", "fsync=off",
             "-c", "shared_buffers=16MB"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + READY_S
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("PostgreSQL does not start")
            time.sleep(0.005)

    def stop(self):
        """At once, as pg_ctl stop -m immediate."""
        self.thaw()
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(READY_S)

    def signal_all(self, number):
        """The postmaster first, so that it starts no more children."""
        pid = self.process.pid
        os.kill(pid, number)
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            for child in children.read().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(child), number)

    def freeze(self):
        """It hangs: connections stay, and nobody answers."""
        self.signal_all(signal.SIGSTOP)

    def thaw(self):
        if self.process.poll() is None:
            self.signal_all(signal.SIGCONT)

    def watch_checkpoints(self):
        """From now on those that go back are noted. The tables must be there."""
        with Session(self) as session:
            session.ask(WATCH)

    def count_back(self):
        with Session(self) as session:
            return int(session.ask("SELECT count(*) FROM public.went_back;")[0])


class Session:
    """psql with a connection of its own, which it waits for."""

    def __init__(self, postgres):
        self.process = subprocess.Popen(
            [find_program("psql"), "-qtAX", "-v", "ON_ERROR_STOP=1", postgres.url],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()

    def ask(self, sql):
        """The lines of the answer."""
        self.process.stdin.write(sql + "\n\\echo done\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line == "done\n":
                return lines
            lines.append(line.rstrip("\n"))
        raise RuntimeError("psql ended")

    def checkpoints(self):
        """partition: sequence"""
        lines = self.ask("SELECT partition, mark_sequence FROM weir.record WHERE marked = 1;")
        return {int(p): int(sequence) for p, sequence in (line.split("|") for line in lines)}

    def has(self, marked):
        """Whether the checkpoints have come so far."""
        stored = self.checkpoints()
        return all(stored.get(p, -1) >= sequence for p, sequence in marked.items())
