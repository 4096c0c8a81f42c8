#!/usr/bin/env python3
"""stand.py [--blob] COMMAND... - what one client needs for the common cases (see CASES.md).

It starts weir serve twice (one that the cases may kill), with --blob an Azurite, runs the command
with their places in STAND_... variables, ends everything and exits as the command did.
stand.py --restart SOCKET is the command of STAND_CRASH_RESTART.
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
READY_S = 60
BLOB_ACCOUNT = "devstoreaccount1"
BLOB_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def case_ids():
    """The ids of cases.txt, which are the names of the hubs as well."""
    with open(os.path.join(HERE, "cases.txt")) as table:
        rows = [line.split() for line in table if line.strip() and not line.startswith("#")]
    return [row[0] for row in rows]


def cache_folder():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("STAND_CACHE") or os.path.join(home, "weir-interop")


class Server:
    """weir serve on free ports, and on the same ones when it is started again."""

    def __init__(self, work, name, hubs, more):
        self.data = os.path.join(work, name)
        self.log = open(os.path.join(work, name + ".log"), "ab")
        self.places = {"amqp": "127.0.0.1:0", "http": "127.0.0.1:0", **more}
        self.hubs = hubs
        self.authority = os.path.join(work, "authority")
        self.start()

    def start(self):
        command = [os.environ["WEIR"], "serve", "--data", self.data, "--json", "--authority", self.authority]
        for option, place in self.places.items():
            command += ["--" + option, place]
        for hub in self.hubs:
            command += ["--hub", hub]
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log)
        alarm = threading.Timer(READY_S, self.child.kill)
        alarm.start()
        try:
            line = self.child.stdout.readline()
        except BaseException:
            self.child.kill()
            raise
        finally:
            alarm.cancel()
        if not line:
            with open(self.log.name, errors="replace") as log:
                sys.exit("stand: weir serve is not ready: %s" % log.read()[-1000:].strip())
        self.ready = json.loads(line)
        self.places.update({name: self.ready[name] for name in self.places if self.ready.get(name)})

    def restart(self):
        self.child.kill()
        self.child.wait()
        self.start()

    def port(self, name):
        return self.places[name].rsplit(":", 1)[1]

    def key(self, rights):
        """The connection string of a new rule with these rights alone."""
        made = subprocess.run([os.environ["WEIR"], "key", "add", "--data", self.data, "--rights", rights],
                              stdout=subprocess.PIPE, stderr=self.log, check=True, text=True)
        return made.stdout.strip().splitlines()[-1].replace("127.0.0.1", "localhost")

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        try:
            return self.child.wait(30)
        except subprocess.TimeoutExpired:
            self.child.kill()
            return self.child.wait()


class Azurite:
    """Microsoft's storage emulator, from npm. string is None where it cannot be had."""

    def __init__(self, work):
        self.string = self.child = None
        place = subprocess.run([os.path.join(HERE, "azurite", "install")], stdout=subprocess.PIPE, text=True)
        if place.returncode != 0:
            return
        log = open(os.path.join(work, "azurite.log"), "wb")
        self.child = subprocess.Popen(
            ["node", place.stdout.strip(), "--blobHost", "127.0.0.1", "--blobPort", "0", "--skipApiVersionCheck",
             "--disableTelemetry", "--location", os.path.join(work, "azurite")],
            stdout=subprocess.PIPE, stderr=log, text=True)
        for line in self.child.stdout:
            found = re.search(r"listens on http://127\.0\.0\.1:(\d+)", line)
            if found:
                threading.Thread(target=self.drain, daemon=True).start()
                self.string = ("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;"
                               "BlobEndpoint=http://127.0.0.1:%s/%s;" % (BLOB_ACCOUNT, BLOB_KEY, found[1], BLOB_ACCOUNT))
                return

    def drain(self):
        for _ in self.child.stdout:
            pass

    def stop(self):
        if self.child:
            self.child.kill()
            self.child.wait()


def serve_restarts(path, server):
    """Each connection is one wish to have the server killed and started again."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()

    def answer():
        while True:
            peer, _ = listener.accept()
            server.restart()
            peer.sendall(b"ready\n")
            peer.close()

    threading.Thread(target=answer, daemon=True).start()


def ask_restart(path):
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(path)
    return 0 if peer.recv(64) == b"ready\n" else 1


def environment(work, main, crash, azurite):
    crash_socket = os.path.join(work, "restart")
    serve_restarts(crash_socket, crash)
    string = main.ready["connection_string"]
    key = re.search(r"SharedAccessKeyName=.*?;SharedAccessKey=[^;]*", string)[0]
    env = {
        "STAND_STRING": string,
        "STAND_LISTEN": main.key("listen"),
        "STAND_SEND": main.key("send"),
        "STAND_AMQP": main.port("amqp"),
        "STAND_AMQPS": main.port("amqps"),
        "STAND_HTTPS": main.port("https"),
        "STAND_TLS_STRING": "Endpoint=sb://localhost/;" + key,
        "STAND_CA": os.path.join(main.authority, "ca.pem"),
        "STAND_CRASH_STRING": crash.ready["connection_string"],
        "STAND_CRASH_RESTART": "'%s' '%s' --restart '%s'" % (sys.executable, os.path.abspath(__file__), crash_socket),
        "STAND_CACHE": cache_folder(),
        "STAND_WORK": work,
    }
    if azurite and azurite.string:
        env["STAND_BLOB"] = azurite.string
    return env


def run(blob, command):
    work = tempfile.mkdtemp(prefix="stand-")
    things = []
    try:
        hubs = ["%s:4:cg1" % name for name in case_ids()] + ["rate:1"]
        tls = {"amqps": "127.0.0.1:0", "https": "127.0.0.1:0"}
        main = Server(work, "main", hubs, tls)
        things.append(main)
        crash = Server(work, "crash", ["crash:4:cg1"], {"amqps": "off"})
        things.append(crash)
        azurite = Azurite(work) if blob else None
        if azurite:
            things.append(azurite)
        code = subprocess.call(command, env={**os.environ, **environment(work, main, crash, azurite)})
        things.remove(main)
        if main.stop() != 0:
            print("# weir serve did not end well, its log:", open(main.log.name).read()[-2000:], file=sys.stderr)
            return 1
        return code
    finally:
        for thing in things:
            thing.stop()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    words = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if words[:1] == ["--restart"]:
        sys.exit(ask_restart(words[1]))
    blob = words[:1] == ["--blob"]
    sys.exit(run(blob, words[blob:]))
