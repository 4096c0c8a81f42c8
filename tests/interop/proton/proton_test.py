"""A second peer that nobody here wrote: Qpid Proton, without TLS and with it."""
import os
import sys
import time
import unittest

from proton import SASL, Delivery, Event, Link, Message, int32, ulong

from peer import BATCH, Peer, batch_of

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "raw"))
from client import KEY, RULE, Server, token  # noqa: E402

HUB = "sb://localhost/eh1"
PLACE = "eh1/ConsumerGroups/$Default/Partitions/{}"
ACCEPTED, REJECTED = ("ACCEPTED", None), "REJECTED"
LIMIT = 1 << 20


def event(n, **more):
    return Message(body=str(n).encode(), inferred=True, **more)


def numbers(messages):
    return [int(bytes(m.body)) for m in messages]


class Proton:
    """What is the same with TLS and without; partitions are handed out, one to a test."""
    tls = False

    @classmethod
    def setUpClass(cls):
        cls.server = Server("eh1:32:cg1", more=(
            "--amqps", "127.0.0.1:0", "--tls-certificate", os.environ["WEIR_TEST_CERTIFICATE"],
            "--tls-key", os.environ["WEIR_TEST_KEY"]))
        cls.next = -1

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def setUp(self):
        type(self).next += 1
        self.partition = self.next
        self.place = PLACE.format(self.partition)
        self.target = f"eh1/Partitions/{self.partition}"

    def connect(self, **options):
        peer = self.dial(**options)
        self.addCleanup(peer.close)
        self.assertTrue(peer.open())
        return peer

    def dial(self, **options):
        return Peer(self.server.amqps if self.tls else self.server.address, self.tls, **options)

    def trusted(self, **options):
        """With SASL ANONYMOUS, and a token."""
        peer = self.connect(**options)
        self.assertEqual(peer.trust(token(HUB)), 202)
        return peer

    def fill(self, count):
        peer = self.connect(user=RULE, password=KEY, mechanisms="PLAIN")
        sender = peer.sender(self.target)
        for n in range(count):
            self.assertEqual(peer.send(sender, event(n)), ACCEPTED)
        return peer

    # -- who somebody is --

    def test_anonymous_and_a_token(self):
        peer = self.connect()
        refused = peer.sender("eh1")
        self.assertEqual(refused.remote_condition.name, "amqp:unauthorized-access")
        self.assertEqual(peer.trust(token(HUB, key="another")), 401)
        self.assertEqual(peer.trust(token(HUB, -10)), 401)
        self.assertEqual(peer.trust(token(HUB)), 202)
        self.assertEqual(peer.send(peer.sender("eh1"), event(1)), ACCEPTED)

    def test_no_sasl_at_all(self):
        peer = self.connect(mechanisms=None)
        self.assertEqual(peer.trust(token(HUB)), 202)
        self.assertEqual(peer.send(peer.sender("eh1"), event(1)), ACCEPTED)

    def test_plain_with_key_name_and_key(self):
        peer = self.connect(user=RULE, password=KEY, mechanisms="PLAIN")
        self.assertEqual(peer.send(peer.sender("eh1"), event(1)), ACCEPTED)
        self.assertEqual(numbers(peer.take(peer.receiver(self.place), 0)), [])

    def test_plain_with_a_wrong_key_or_name(self):
        for user, password in ((RULE, "another"), ("Nobody", KEY), (RULE, "")):
            peer = self.dial(user=user, password=password, mechanisms="PLAIN")
            self.assertFalse(peer.open())
            self.assertEqual(peer.transport.sasl().outcome, SASL.AUTH)
            peer.socket.close()

    def test_replies_have_the_id_of_the_request(self):
        peer = self.trusted()
        for number in ("text", ulong(7)):
            reply = peer.ask("$management", {"operation": "READ", "name": "eh1",
                                             "type": "com.microsoft:eventhub"}, message_id=number)
            self.assertEqual(reply.correlation_id, number)
            self.assertEqual(reply.properties["status-code"], int32(200))
            self.assertEqual(reply.body["partition_count"], int32(32))
            ids = list(reply.body["partition_ids"].elements)
            self.assertEqual(ids, [str(i) for i in range(32)])

    # -- sending --

    def test_events_and_batches(self):
        peer = self.trusted()
        sender = peer.sender(self.target)
        self.assertEqual(sender.remote_max_message_size, LIMIT)
        self.assertEqual(peer.send(sender, event(0)), ACCEPTED)
        peer.format = BATCH
        self.assertEqual(peer.send(sender, batch_of([event(1), event(2), event(3)])), ACCEPTED)
        peer.format = None
        self.assertEqual(peer.send(sender, event(4)), ACCEPTED)
        got = peer.take(peer.receiver(self.place), 5)
        self.assertEqual(numbers(got), [0, 1, 2, 3, 4])
        annotations = [m.annotations for m in got]
        self.assertEqual([a["x-opt-sequence-number"] for a in annotations], [0, 1, 2, 3, 4])
        for a in annotations:
            self.assertIsInstance(a["x-opt-offset"], str)
            self.assertLess(abs(time.time() * 1000 - a["x-opt-enqueued-time"]), 60000)

    def test_everything_in_a_message_comes_back(self):
        peer = self.trusted()
        sent = Message(body={"a": [1, None, {"b": True}]}, id="i", subject="s", reply_to="r",
                       correlation_id=ulong(3), content_type="text/x", durable=True, priority=7,
                       properties={"p": 1, "q": "x"}, annotations={"x-mine": "kept"})
        self.assertEqual(peer.send(peer.sender(self.target), sent), ACCEPTED)
        got, = peer.take(peer.receiver(self.place), 1)
        for name in ("body", "id", "subject", "reply_to", "correlation_id", "content_type",
                     "properties"):
            self.assertEqual(getattr(got, name), getattr(sent, name), name)
        self.assertEqual(got.annotations["x-mine"], "kept")

    def test_large_messages_of_many_frames(self):
        for frame_size in (512, 4096, None):  # of what we take; theirs is the server's choice
            peer = self.trusted(frame_size=frame_size)
            sender = peer.sender(self.target)
            sizes = [1, 400, 513, 70000, 1000000]
            for size in sizes:
                self.assertEqual(peer.send(sender, Message(body=b"\xaa" * size, inferred=True)),
                                 ACCEPTED)
            got = peer.take(peer.receiver(self.place), len(sizes), seconds=60)
            self.assertEqual([len(m.body) for m in got], sizes)
            self.assertEqual(set(b"".join(bytes(m.body) for m in got)), {0xAA})
            self.setUp()  # another place

    def test_one_byte_too_many(self):
        peer = self.trusted()
        sender = peer.sender(self.target)
        around = len(Message(body=b"\0" * 70000, inferred=True).encode()) - 70000
        largest = Message(body=b"\0" * (LIMIT - around), inferred=True)
        self.assertEqual(len(largest.encode()), LIMIT)
        self.assertEqual(peer.send(sender, largest), ACCEPTED)
        over = Message(body=b"\0" * (LIMIT - around + 1), inferred=True)
        self.assertEqual(peer.send(sender, over), (REJECTED, "amqp:link:message-size-exceeded"))
        self.assertEqual(peer.send(sender, event(1)), ACCEPTED)

    def test_settled_unsettled_and_mixed_senders(self):
        peer = self.trusted()
        for mode in (Link.SND_SETTLED, Link.SND_UNSETTLED, Link.SND_MIXED):
            sender = peer.sender(self.target, settle=mode)
            self.assertEqual(sender.remote_snd_settle_mode, mode)
            if mode != Link.SND_UNSETTLED:
                self.assertIsNone(peer.send(sender, event(mode), settled=True))
            if mode != Link.SND_SETTLED:
                self.assertEqual(peer.send(sender, event(mode)), ACCEPTED)
        got = peer.take(peer.receiver(self.place), 4)
        self.assertEqual(sorted(numbers(got)), sorted([Link.SND_SETTLED, Link.SND_UNSETTLED,
                                                       Link.SND_MIXED, Link.SND_MIXED]))

    def test_nonsense_is_rejected_and_the_link_stays(self):
        peer = self.trusted()
        sender = peer.sender(self.target)
        self.assertEqual(peer.send(sender, b"nonsense"), (REJECTED, "com.microsoft:argument-error"))
        peer.format = BATCH
        self.assertEqual(peer.send(sender, event(1).encode() + b"\0"),
                         (REJECTED, "com.microsoft:argument-error"))
        peer.format = None
        self.assertEqual(peer.send(sender, event(1)), ACCEPTED)

    # -- receiving --

    def test_selectors(self):
        peer = self.fill(6)
        offsets = [m.annotations["x-opt-offset"] for m in peer.take(peer.receiver(self.place), 6)]
        sequence, offset = "amqp.annotation.x-opt-sequence-number", "amqp.annotation.x-opt-offset"
        for selector, descriptor, first in (
                (f"{offset} > '-1'", None, 0),
                (f"{sequence} > '2'", 0x468C00000004, 3),
                (f"{sequence} >= 2", 0x137000000A, 2),
                (f"{offset} >'{offsets[3]}'", None, 4),
                (f"{offset} >='{offsets[3]}'", None, 3),
                ("amqp.annotation.x-opt-enqueued-time > '1'", None, 0)):
            link = peer.receiver(self.place, selector=selector, descriptor=descriptor)
            self.assertEqual(numbers(peer.take(link, 6 - first)), list(range(first, 6)), selector)
            link.close()

    def test_latest_is_what_comes_after(self):
        peer = self.fill(3)
        link = peer.receiver(self.place, selector="amqp.annotation.x-opt-offset > '@latest'")
        link.flow(10)
        self.assertEqual(peer.send(peer.sender(self.target), event(42)), ACCEPTED)
        self.assertEqual(numbers(peer.take(link, 1, credit=0)), [42])

    def test_credit_is_not_exceeded(self):
        peer = self.fill(10)
        link = peer.receiver(self.place)
        self.assertEqual(numbers(peer.take(link, 10, credit=3, seconds=1)), [0, 1, 2])
        self.assertEqual(numbers(peer.take(link, 10, credit=2, seconds=1)), [3, 4])
        self.assertEqual(numbers(peer.take(link, 5)), [5, 6, 7, 8, 9])

    def test_drain(self):
        peer = self.fill(4)
        link = peer.receiver(self.place)
        link.drain(100)
        self.assertEqual(len(peer.take(link, 4, credit=0)), 4)
        self.assertTrue(peer.until(lambda: link.credit == 0))
        self.assertEqual(link.drained(), 96)
        link.drain(5)  # with nothing there
        self.assertTrue(peer.until(lambda: link.credit == 0))
        link.drain_mode = False
        link.flow(2)
        self.assertEqual(peer.send(peer.sender(self.target), event(4)), ACCEPTED)
        self.assertEqual(numbers(peer.take(link, 1, credit=0)), [4])

    def test_deliveries_are_settled_whatever_is_asked_for(self):
        peer = self.fill(3)
        for mode in (Link.SND_SETTLED, Link.SND_UNSETTLED, Link.SND_MIXED):
            for settles in (Link.RCV_FIRST, Link.RCV_SECOND):
                link = peer.receiver(self.place, settle=mode, rcv_settle=settles)
                self.assertEqual(link.remote_snd_settle_mode, Link.SND_SETTLED)
                got = peer.take(link, 3)
                self.assertEqual([m.settled_by_sender for m in got], [True] * 3)
                link.close()

    def test_nothing_comes_twice(self):
        peer = self.fill(3)
        link = peer.receiver(self.place)
        for outcome in (Delivery.RELEASED, Delivery.REJECTED, Delivery.MODIFIED):
            self.assertEqual(len(peer.take(link, 1, outcome=outcome)), 1)
        self.assertEqual(peer.take(link, 1, seconds=0.5), [])  # to a stream they mean nothing

    # -- places --

    def test_a_higher_epoch_takes_the_place(self):
        peer = self.fill(1)
        other = self.trusted()
        low = peer.receiver(self.place, properties={"com.microsoft:epoch": 1,
                                                    "com.microsoft:receiver-name": "low"})
        self.assertEqual(len(peer.take(low, 1)), 1)
        high = other.receiver(self.place, properties={"com.microsoft:epoch": 2,
                                                      "com.microsoft:receiver-name": "high"})
        self.assertEqual(len(other.take(high, 1)), 1)
        self.assertTrue(peer.until(lambda: low.state & low.REMOTE_CLOSED))
        self.assertEqual(low.remote_condition.name, "amqp:link:stolen")
        self.assertIn("New receiver 'high' with higher epoch of '2' is created hence current "
                      "receiver 'low' with epoch '1'", low.remote_condition.description)
        late = peer.receiver(self.place, properties={"com.microsoft:epoch": 1})
        self.assertEqual(late.remote_condition.name, "amqp:link:stolen")
        none = peer.receiver(self.place)
        self.assertEqual(none.remote_condition.name, "amqp:link:stolen")

    def test_refused_links_say_why(self):
        peer = self.trusted()
        bad = "color = 'red'"
        for link, condition in (
                (peer.sender("eh1/Partitions/32"), "com.microsoft:argument-out-of-range"),
                (peer.sender("eh1/Partitions/x"), "com.microsoft:argument-out-of-range"),
                (peer.receiver(PLACE.format(-1)), "com.microsoft:argument-out-of-range"),
                (peer.receiver("eh1/ConsumerGroups/none/Partitions/0"), "amqp:not-found"),
                (peer.receiver(self.place, selector=bad), "com.microsoft:argument-error"),
                (peer.receiver("eh1"), "amqp:not-found"),
                (peer.sender(self.place), "amqp:not-found"),
                (peer.sender("eh2"), "amqp:unauthorized-access")):
            self.assertTrue(link.state & link.REMOTE_CLOSED)
            self.assertEqual(link.remote_condition.name, condition)
            self.assertTrue(link.remote_condition.description)
            # Refused, and not sent elsewhere: there is no place, and no redirect.
            self.assertIsNone(link.remote_condition.info)
            place = link.remote_target if link.is_sender else link.remote_source
            self.assertIsNone(place.address)
        self.assertEqual(peer.send(peer.sender("eh1"), event(1)), ACCEPTED)  # nothing is spoilt

    def test_a_refusal_is_text_wherever_it_is_cut(self):
        peer = self.connect(user=RULE, password=KEY, mechanisms="PLAIN")
        for ahead in range(4):
            name = "x" * ahead + "\u00fc\u65e5" * 50
            link = peer.sender(name)
            self.assertEqual(link.remote_condition.name, "amqp:not-found")
            text = link.remote_condition.description
            self.assertIn(name[:30], text)
            self.assertNotIn("\ufffd", text)
            self.assertTrue(text.encode())  # bytes that are no text would not go back

    # -- time --

    def test_silence_is_broken_on_both_sides(self):
        peer = self.trusted(idle_s=1)  # the server must speak at least every second
        frames, until = peer.transport.frames_input, time.monotonic() + 4
        while time.monotonic() < until:
            peer.step()
        self.assertFalse(peer.saw(Event.TRANSPORT_ERROR))
        self.assertGreaterEqual(peer.transport.frames_input - frames, 4)
        self.assertEqual(peer.transport.remote_idle_timeout, 120)
        self.assertEqual(peer.send(peer.sender("eh1"), event(1)), ACCEPTED)


class Plain(Proton, unittest.TestCase):
    pass


class WithTls(Proton, unittest.TestCase):
    tls = True


if __name__ == "__main__":
    unittest.main()
