"""abuse.py - what a rude or hostile client does, and what it gets: the right condition, and nothing
that anybody else would notice. After each test the server serves, and is not larger than it may
be."""
import os
import select
import socket
import struct
import threading
import time
import unittest
import urllib.request

from client import (ATTACH, BATCH, BEGIN, CLOSE, DATA, DETACH, DISPOSITION, END, FLOW, OPEN, SOURCE,
                    TARGET, TRANSFER, Connection, Described, Server, Short, section, token)

PLACE = "eh1/ConsumerGroups/$Default/Partitions/0"
LIMIT = 1 << 20
ROWS = os.environ["WEIR_TEST_ROWS"]
BUFFERS = 32 << 20  # for what clients send and are sent
MEMORY_KIB = 96 << 10  # of the server, whatever they do; it has 64 MiB for its own work


def event(body):
    return section(DATA, body)


def dial(address):
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), 20)


def read_all(s, seconds=20):
    """Everything until the server closes; None when it does not."""
    s.settimeout(seconds)
    data = b""
    try:
        while True:
            more = s.recv(65536)
            if not more:
                return data
            data += more
    except ConnectionResetError:
        return data
    except socket.timeout:
        return None


class Abuse(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("eh1:2", "eh2:1", more=("--amqps", "off", "--buffers", str(BUFFERS)))

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def tearDown(self):
        """It is alive, and no larger than it may be."""
        c = self.trusted("eh2")
        c.attach_sender(1, 0, "eh2")
        self.assertIsNone(c.send(1, 0, event(b"still here")))
        if not self.server.is_sanitized():
            self.assertLess(self.server.resident_kib(), MEMORY_KIB)

    def connect(self):
        c = Connection(self.server.address)
        self.addCleanup(c.close)
        return c

    def trusted(self, hub="eh1"):
        """With a session on channel 1."""
        c = self.connect()
        self.assertEqual(c.trust(f"sb://localhost/{hub}"), 202)
        c.begin(1)
        return c

    def ends_with(self, c, condition, kind=CLOSE):
        """The next end of that kind has this condition."""
        while True:
            frame = c.next_frame()
            if frame.kind in (kind, CLOSE):
                self.assertEqual((frame.kind, frame.condition), (kind, condition))
                return

    # -- HTTP --

    def test_requests_that_two_programs_could_read_differently(self):
        with open(ROWS, encoding="ascii") as file:
            rows = [line.split() for line in file]
        self.assertGreaterEqual(len(rows), 100)
        for status, raw in rows:
            raw = bytes.fromhex(raw)
            with dial(self.server.http) as s:
                s.sendall(raw)
                answer = read_all(s)
                self.assertIsNotNone(answer, raw)  # it was closed
            lines = [at for at in answer.split(b"\r\n") if at.startswith(b"HTTP/1.1 ")]
            self.assertEqual(len(lines), 1, (raw, answer))  # nothing that was smuggled is answered
            self.assertIn(lines[0][9:10], (b"4", b"5"), (raw, answer))
            if status != "0":
                self.assertEqual(lines[0][9:12].decode(), status, (raw, answer))

    def test_a_head_without_end(self):
        with dial(self.server.http) as s:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20000)
            self.assertTrue(read_all(s).startswith(b"HTTP/1.1 431 "))

    def test_a_body_that_nobody_waits_for(self):
        with dial(self.server.http) as s:
            s.sendall(b"POST /eh1/messages HTTP/1.1\r\nHost: localhost\r\n"
                      b"Content-Length: 99999999999\r\n\r\n")
            self.assertTrue(read_all(s).startswith(b"HTTP/1.1 4"))

    def test_a_body_has_its_longest(self):
        """With its length told, and in chunks; what is within the limit is read and judged."""
        head = (b"POST /eh1/messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: "
                + token("sb://localhost/eh1").encode() + b"\r\n")
        refusal = b"A body has at most 2097152 bytes."
        for size, refused in ((2 << 20, False), ((2 << 20) + 1, True)):
            body = b"x" * size
            for rest in (b"Content-Length: %d\r\n\r\n" % size + body,
                         b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % size + body
                         + b"\r\n0\r\n\r\n"):
                with dial(self.server.http) as s:
                    pour(s, head + rest)
                    answer = read_all(s)
                self.assertTrue(answer.startswith(b"HTTP/1.1 413 "), answer[:200])
                self.assertEqual(refusal in answer, refused, answer)

    def test_bodies_that_are_never_finished(self):
        """All of them together have a limit; who is beyond it learns when to come again."""
        head = (b"POST /eh1/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: "
                + token("sb://localhost/eh1").encode() + b"\r\nContent-Length: ")
        size, held = 2 << 20, []
        for _ in range(BUFFERS // size + 1):  # a byte short each, so the last is beyond it
            held.append(dial(self.server.http))
            held[-1].sendall(head + b"%d\r\n\r\n" % size + b"x" * (size - 1))
        answered, _, _ = select.select(held, [], [], 20)
        lines = answered[0].recv(4096).split(b"\r\n")
        self.assertTrue(lines[0].startswith(b"HTTP/1.1 503 "))
        self.assertIn(b"Retry-After: 4", lines)
        for s in held:
            s.close()
        while True:  # as soon as it knows that they are gone
            with dial(self.server.http) as s:
                s.sendall(head + b"1\r\nConnection: close\r\n\r\nx")
                answer = read_all(s)
            if not answer.startswith(b"HTTP/1.1 503 "):
                break
        self.assertTrue(answer.startswith(b"HTTP/1.1 201 "), answer)

    # -- too large --

    def test_a_frame_larger_than_allowed(self):
        for c, size in ((self.connect(), 65537), (self.trusted(), 65537),
                        (self.trusted(), 0x7FFFFFFF)):
            c.socket.sendall(struct.pack(">IBBH", size, 2, 0, 0))
            self.ends_with(c, "amqp:connection:framing-error")

    def test_a_frame_smaller_than_its_header(self):
        for head in (struct.pack(">IBBH", 7, 2, 0, 0), struct.pack(">IBBH", 12, 1, 0, 0),
                     struct.pack(">IBBH", 12, 4, 0, 0)):
            c = self.trusted()
            c.socket.sendall(head + b"\0" * 8)
            self.ends_with(c, "amqp:connection:framing-error")

    def test_an_open_on_another_channel(self):
        with dial(self.server.address) as s:
            s.sendall(b"AMQP\0\1\0\0" + frame_of(5, OPEN, ["raw", "localhost", 65536]))
            self.assertIn(b"amqp:connection:framing-error", read_all(s))

    def test_a_message_of_a_hundred_megabytes(self):
        c = self.trusted()
        c.attach_sender(1, 0, "eh1")
        piece, count = b"\0" * 60000, 1700
        for n in range(count):
            c.say(1, TRANSFER, [0, 0, b"t", 0, False, n + 1 < count], piece)
        self.assertEqual(c.hear(DISPOSITION).condition, "amqp:link:message-size-exceeded")
        c.next_id[1] = 1
        self.assertIsNone(c.send(1, 0, event(b"x")))  # and the link works

    def test_messages_that_are_never_finished(self):
        c = self.trusted()
        begun = 0
        with self.assertRaises((EOFError, ConnectionError)):
            for handle in range(64):
                c.attach_sender(1, handle, "eh1", name=f"l{handle}")
                for _ in range(16):
                    c.say(1, TRANSFER, [handle, handle, b"t", 0, False, True], b"\0" * 60000)
                begun += 1
            c.hear(CLOSE)
            raise AssertionError("everything was kept")
        self.assertGreater(begun, 1)  # two large ones at once are nothing bad

    def test_a_stranger_that_sends_much(self):
        """A request has 64 KiB at most, whatever its frames; of a larger one nothing is kept."""
        c = self.connect()
        c.begin(0)
        c.attach_sender(0, 0, "$cbs")
        for n in range(20):
            c.say(0, TRANSFER, [0, 0, b"t", 0, False, n < 19], b"\0" * 8000)
        self.assertEqual(c.hear(DISPOSITION).condition, "amqp:link:message-size-exceeded")

    def test_long_tokens_that_are_never_finished(self):
        """Each is within its limit; all of them together are within the strangers' share."""
        for _ in range(900):
            c = self.connect()
            c.begin(0)
            c.attach_sender(0, 0, "$cbs")
            c.say(0, TRANSFER, [0, 0, b"t", 0, False, True], b"\0" * 60000)

    def test_silent_strangers_make_no_room(self):
        """Sent away for those who send much, they would leave them all of the buffers."""
        silent = [dial(self.server.address) for _ in range(500)]
        for _ in range(300):
            c = self.connect()
            c.begin(0)
            c.attach_sender(0, 0, "$cbs")
            c.say(0, TRANSFER, [0, 0, b"t", 0, False, True], b"\0" * 60000)
        for _ in range(50):  # those who were told to go are gone soon
            held = self.gauge("weir_stranger_buffer_bytes")
            if held <= self.gauge("weir_stranger_buffer_limit_bytes"):
                break
            time.sleep(0.1)
        self.assertLessEqual(held, BUFFERS // 4)
        for s in silent:
            s.close()

    def gauge(self, name):
        with urllib.request.urlopen(f"http://{self.server.http}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name + " "))

    def test_a_login_that_is_too_large(self):
        s = dial(self.server.address)
        body = b"\0\x53\x41\xd0" + struct.pack(">II", 20004, 1) + b"\0" * 20000
        s.sendall(b"AMQP\3\1\0\0" + struct.pack(">IBBH", 8 + len(body), 2, 1, 0) + body)
        self.assertIsNotNone(read_all(s))
        s.close()

    # -- links to nowhere --

    def test_links_without_an_address(self):
        """Before any token: no terminus, a coordinator, a source in a target's place."""
        coordinator, nothing = Described(0x30, []), None
        for source, target, receives in ((Described(SOURCE, []), nothing, False),
                                         (Described(SOURCE, []), coordinator, False),
                                         (Described(SOURCE, []), Described(SOURCE, ["eh1"]), False),
                                         (nothing, Described(TARGET, []), True),
                                         (Described(TARGET, [PLACE]), Described(TARGET, []), True)):
            c = self.connect()
            c.begin(0)
            c.say(0, ATTACH, ["l", 0, receives, None, None, source, target, None, None, 0])
            answer = c.hear(ATTACH)
            self.assertIsNone(answer.fields[5 if receives else 6])  # ours
            self.assertEqual(answer.fields[6 if receives else 5] is not None, receives)
            end = c.hear(DETACH)
            self.assertEqual(end.condition, "amqp:not-implemented")
            self.assertIn("a link without an address", end.fields[2].value[1])

    # -- credit and windows --

    def test_a_sender_that_does_not_wait_for_credit(self):
        c = self.trusted("eh2")
        c.attach_sender(1, 0, "eh2")
        credit = c.hear(FLOW).fields[6]
        self.assertGreaterEqual(credit, 1000)
        count = 3 * credit
        many = b"".join(frame_of(1, TRANSFER, [0, n, b"t", 0, True, False], event(b"x"))
                        for n in range(count))
        writer = threading.Thread(target=pour, args=(c.socket, many))
        writer.start()
        c.next_id[1] = count
        writer.join(20)  # it is read as fast as it is stored, and there is always credit again
        self.assertFalse(writer.is_alive())
        self.assertIsNone(c.send(1, 0, event(b"x")))
        last = self.trusted("eh2")
        last.attach_receiver(1, 0, PLACE.replace("eh1", "eh2"))
        last.flow(1, 0, count + 1)
        for _ in range(count + 1):
            last.hear(TRANSFER)

    def test_a_transfer_that_nobody_asked_for(self):
        c = self.trusted()
        c.transfer(1, 7, event(b"x"))
        self.ends_with(c, "amqp:session:unattached-handle", END)
        c = self.trusted()
        c.attach_receiver(1, 0, PLACE)
        c.transfer(1, 0, event(b"x"))  # on a link that goes the other way
        self.ends_with(c, "amqp:not-allowed", END)

    def test_deliveries_out_of_order(self):
        c = self.trusted()
        c.attach_sender(1, 0, "eh1")
        self.assertIsNone(c.send(1, 0, event(b"x")))
        c.next_id[1] = 9
        c.transfer(1, 0, event(b"x"))
        frame = c.hear(END, DETACH, CLOSE, DISPOSITION)
        self.assertNotEqual(frame.kind, DISPOSITION)
        self.assertTrue(frame.condition)

    def test_endless_credit_and_nothing_is_read(self):
        c = self.trusted()
        c.attach_sender(1, 0, "eh1/Partitions/0")
        batch = event(event(b"\0" * 1000)) * 900
        for _ in range(30):
            self.assertIsNone(c.send(1, 0, batch, BATCH))
        before = self.server.resident_kib()
        greedy = [self.trusted() for _ in range(4)]
        for one in greedy:
            one.say(1, FLOW, [0, 0xFFFFFFFF, 0, 2048])
            one.attach_receiver(1, 0, PLACE)
            one.flow(1, 0, 0xFFFFFFFF)
        time.sleep(1)  # the output fills up meanwhile
        self.assertLess(self.server.resident_kib() - before, 24 << 10)
        for n in range(2000):  # who reads gets all of it, in order
            self.assertEqual(greedy[0].hear(TRANSFER).fields[1], n)

    def test_questions_whose_answers_are_not_read(self):
        c = self.trusted()
        ask = frame_of(1, FLOW, [0, 2048, 0, 2048, None, None, None, None, None, True]) * 1000
        before = self.server.resident_kib()
        writer = threading.Thread(target=pour, args=(c.socket, ask * 200))
        writer.start()
        writer.join(3)  # it is not read any more, or answered and thrown away
        self.assertLess(self.server.resident_kib() - before, 16 << 10)
        c.close()
        writer.join(20)

    # -- too many --

    def test_more_sessions_than_allowed(self):
        c = self.trusted()
        last = c.announced[3]  # channel-max
        self.assertEqual(self.flood(c, range(2, 5001)),
                         (last - 1, "amqp:connection:framing-error"))

    def test_more_sessions_than_a_stranger_may_have(self):
        self.assertEqual(self.flood(self.connect(), range(5001)),
                         (64, "amqp:resource-limit-exceeded"))

    def flood(self, c, channels):
        """Begins sessions until the connection is closed for it: how many there were, and why."""
        asked = b"".join(frame_of(n, BEGIN, [None, 0, 2048, 2048]) for n in channels)
        writer = threading.Thread(target=pour, args=(c.socket, asked))
        writer.start()
        held, frame = 0, c.next_frame()
        while frame.kind != CLOSE:
            held += frame.kind == BEGIN
            frame = c.next_frame()
        c.close()
        writer.join(20)
        return held, frame.condition

    def test_more_links_than_allowed(self):
        c = self.trusted()
        source, target = Described(SOURCE, []), Described(TARGET, ["eh1"])
        links = b"".join(frame_of(1, ATTACH, [f"l{n}", n, False, None, None, source, target, None,
                                              None, 0]) for n in range(400))
        writer = threading.Thread(target=pour, args=(c.socket, links))
        writer.start()
        self.ends_with(c, "amqp:connection:framing-error")  # beyond the handle-max of our begin
        c.close()
        writer.join(20)

    def test_a_storm_of_connections(self):
        for _ in range(500):
            dial(self.server.address).close()
        many = [dial(self.server.address) for _ in range(500)]
        hello = b"AMQP\0\1\0\0" + frame_of(0, OPEN, ["raw", "localhost", 65536, Short(65535)])
        for s in many:
            s.sendall(hello)
        for s in many:
            self.assertEqual(s.recv(8), b"AMQP\0\1\0\0")
            s.close()

    def test_wrong_keys_again_and_again(self):
        c = self.connect()
        c.trust(text="SharedAccessSignature sr=a&sig=b&se=1&skn=c")
        for _ in range(300):
            c.put_token(0, 0, "sb://localhost/eh1", "nonsense")
            c.hear(TRANSFER)
        c.say(0, ATTACH, ["s", 5, False, None, None, Described(SOURCE, []),
                          Described(TARGET, ["eh1"]), None, None, 0])
        self.ends_with(c, "amqp:unauthorized-access", DETACH)


def frame_of(channel, kind, fields, payload=b""):
    body = section(kind, fields) + payload
    return struct.pack(">IBBH", 8 + len(body), 2, 0, channel) + body


def pour(s, data):
    """Writes until it is done or the other side has had enough."""
    try:
        s.sendall(data)
    except OSError:
        pass


if __name__ == "__main__":
    unittest.main()
