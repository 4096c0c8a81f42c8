"""slow.py - peers that take their time, all at once: each is closed when its time is up, and nobody
else waits for them."""
import concurrent.futures
import os
import socket
import struct
import time
import unittest

from client import CLOSE, DATA, Connection, Server, section

LORIS = 200  # of the same kind, besides
HANDSHAKE_S, HEAD_S, FRAME_S = 10, 10, 30
SLACK_S = 8


def dial(address):
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), 90)


def dribble(s, first, more, every_s):
    """Sends the first bytes, then a few at a time: what came, and after how long it was closed."""
    began = time.monotonic()
    heard = b""
    s.sendall(first)
    s.settimeout(every_s)
    while True:
        try:
            data = s.recv(65536)
            if not data:
                break
            heard += data
        except socket.timeout:
            try:
                s.sendall(more)
            except OSError:
                break
        except OSError:
            break
    s.close()
    return heard, time.monotonic() - began


def trusted(server):
    c = Connection(server.address)
    c.trust()
    c.begin(1)
    c.socket.settimeout(90)
    return c


def end_of(c):
    """The condition of the close, and when it came."""
    began = time.monotonic()
    while True:
        frame = c.next_frame()
        if frame.kind == CLOSE:
            c.close()
            return frame.condition, time.monotonic() - began


def half_a_frame(server):
    c = trusted(server)
    c.socket.sendall(struct.pack(">IBBH", 1000, 2, 0, 1))
    return end_of(c)


def a_frame_in_drops(server):
    c = trusted(server)
    return dribble(c.socket, struct.pack(">IBBH", 1000, 2, 0, 1), b"\0", 0.5)


def loris(server):
    return dribble(dial(server.http), b"GET /health HT", b"T", 3)[1]


class Slow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        authority = os.path.join(os.environ["TMPDIR"], "authority")
        cls.server = Server("eh1:1", more=("--amqps", "127.0.0.1:0", "--authority", authority))
        s = cls.server
        cls.pool = concurrent.futures.ThreadPoolExecutor(LORIS + 20)
        run = cls.pool.submit
        cls.running = {
            "head": run(lambda: dribble(dial(s.http), b"GET /health HTTP/1.1\r\nX: ", b"x", 0.5)),
            "header": run(lambda: dribble(dial(s.address), b"AMQ", b"", 1)),
            "sasl": run(lambda: dribble(dial(s.address), b"AMQP\3\1\0\0\0\0", b"", 1)),
            "tls": run(lambda: dribble(dial(s.amqps), b"\x16\3\1\2\0", b"\0", 1)),
            "nothing": run(lambda: dribble(dial(s.amqps), b"", b"", 1)),
            "half": run(half_a_frame, s),
            "drops": run(a_frame_in_drops, s),
        }
        cls.many = [run(loris, s) for _ in range(LORIS)]

    @classmethod
    def tearDownClass(cls):
        cls.pool.shutdown()
        assert cls.server.stop() == 0

    def closed_after(self, seconds, limit):
        self.assertGreaterEqual(seconds, limit - 1)
        self.assertLess(seconds, limit + SLACK_S)

    def test_a_head_in_drops(self):
        heard, seconds = self.running["head"].result()
        self.assertTrue(heard.startswith(b"HTTP/1.1 408 "), heard)
        self.closed_after(seconds, HEAD_S)

    def test_a_beginning_and_no_more(self):
        for name in ("header", "sasl", "tls", "nothing"):
            with self.subTest(name):
                self.closed_after(self.running[name].result()[1], HANDSHAKE_S)

    def test_frames_that_do_not_end(self):
        condition, seconds = self.running["half"].result()
        self.assertEqual(condition, "amqp:connection:forced")
        self.closed_after(seconds, FRAME_S)
        self.closed_after(self.running["drops"].result()[1], FRAME_S)

    def test_nobody_waits_for_them(self):
        c = trusted(self.server)
        c.attach_sender(1, 0, "eh1")
        slowest = 0
        for _ in range(100):
            began = time.monotonic()
            self.assertIsNone(c.send(1, 0, section(DATA, b"x")))
            slowest = max(slowest, time.monotonic() - began)
        self.assertLess(slowest, 2)
        c.close()
        for one in self.many:
            self.closed_after(one.result(), HEAD_S)


if __name__ == "__main__":
    unittest.main()
