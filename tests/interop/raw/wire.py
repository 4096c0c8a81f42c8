"""wire.py - habits of clients that the libraries under test elsewhere do not have, and what a rude
one may not do. Each was once answered wrongly."""
import unittest

from client import (APPLICATION_PROPERTIES, ATTACH, BATCH, BEGIN, CLOSE, DATA, DETACH, FLOW,
                    PROPERTIES, SOURCE, TARGET, TRANSFER, VALUE, Connection, Described, Long, Server,
                    Symbol, section, sections, status, token)

PLACE = "{}/ConsumerGroups/$Default/Partitions/0"


def event(body):
    return section(DATA, body)


def epoch(number):
    return {Symbol("com.microsoft:epoch"): Long(number)}


class Wire(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # A hub for each test that publishes, so that none sees the events of another.
        cls.server = Server("eh1:1", "python:1", "stolen:1", "poison:1", "drain:1", "crowd:1",
                            "many:1")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def connect(self, hub=None):
        """Trusted with everything of a hub, and with a session on channel 1; or a stranger."""
        c = Connection(self.server.address)
        self.addCleanup(c.close)
        if hub:
            self.assertEqual(c.trust(f"sb://localhost/{hub}"), 202)
            c.begin(1)
        return c

    def publish(self, hub, bodies):
        c = self.connect(hub)
        c.attach_sender(1, 0, hub)
        for body in bodies:
            self.assertIsNone(c.send(1, 0, event(body)))
        c.close()

    def receive(self, c, count):
        """The next frames, which must be events."""
        frames = [c.hear(TRANSFER, DETACH) for _ in range(count)]
        self.assertEqual({f.kind for f in frames}, {TRANSFER})
        return frames

    # Python: $cbs and the receiver on one session, and the reply is never settled.
    def test_an_unsettled_reply_holds_nothing_up(self):
        count = 600
        self.publish("python", [b"x"])
        c = self.connect()
        self.assertEqual(c.trust("sb://localhost/python", settle=False), 202)
        c.attach_sender(0, 2, "python")
        batch = b"".join(event(event(b"%d" % i)) for i in range(count - 1))
        self.assertIsNone(c.send(0, 2, batch, BATCH))
        c.attach_receiver(0, 3, PLACE.format("python"))
        c.flow(0, 3, 5000)
        for frame in self.receive(c, count):
            if not frame.fields[4]:
                c.settle(frame)

    def test_who_has_no_credit_is_told_that_its_place_is_taken(self):
        for number, waiting in enumerate((0, 1)):  # an event that it has no credit for
            old, new = self.connect("stolen"), self.connect("stolen")
            old.attach_receiver(1, 0, PLACE.format("stolen"), properties=epoch(2 * number))
            if waiting:
                self.publish("stolen", [b"x"])
            new.attach_receiver(1, 0, PLACE.format("stolen"), properties=epoch(2 * number + 1))
            self.assertEqual(old.hear(DETACH).condition, "amqp:link:stolen")
            old.close()
            new.close()

    def ask(self, c, desk, properties, body):
        """What a desk on channel 2 answers: status, condition and text."""
        c.begin(2)
        c.attach_sender(2, 0, desk)
        c.attach_receiver(2, 1, desk)
        c.flow(2, 1, 10)
        c.next_id[2] = 0
        c.transfer(2, 0, section(PROPERTIES, ["id"]) + section(APPLICATION_PROPERTIES, properties)
                   + section(VALUE, body))
        found = sections(c.hear(TRANSFER).payload)[APPLICATION_PROPERTIES]
        return found["status-code"], found.get("error-condition"), found.get("status-description")

    def test_requests_that_make_no_sense(self):
        good = {"operation": "put-token", "type": "servicebus.windows.net:sastoken",
                "name": "sb://localhost/eh1"}
        read = {"operation": "READ", "type": "com.microsoft:eventhub", "name": "eh1"}
        text = token("sb://localhost/eh1")
        for desk, properties, body, status_, says in (
                ("$cbs", good | {"operation": "take-token"}, text, 400, "take-token"),
                ("$cbs", good | {"type": "jwt"}, text, 401, "'jwt'"),
                ("$cbs", good, None, 401, "The body has no token"),
                ("$cbs", good, 7, 401, "The body has no token"),
                ("$management", read | {"operation": "WRITE"}, None, 400, "'WRITE'"),
                ("$management", read | {"type": "com.microsoft:dream"}, None, 400, "dream"),
                ("$management", read | {"name": "nope"}, None, 401, ""),
                ("$management", read | {"type": "com.microsoft:partition", "partition": "9"}, None,
                 400, "partition")):
            c = self.connect("eh1" if desk != "$cbs" else None)  # which has its $cbs already
            got = self.ask(c, desk, properties, body)
            self.assertEqual(got[0], status_, got)
            self.assertIn(says, got[2])
            c.close()

    def test_filters_that_are_none(self):
        for value in (7, [], Described(0x13, 7)):
            c = self.connect("eh1")
            source = [PLACE.format("eh1")] + [None] * 6 + [{
                Symbol("apache.org:selector-filter:string"): value}]
            c.say(1, ATTACH, ["r", 0, True, None, None, Described(SOURCE, source),
                              Described(TARGET, [])])
            end = c.hear(DETACH)
            self.assertEqual(end.condition, "amqp:not-allowed")
            self.assertIn("filter", end.fields[2].value[1])
            c.close()

    # An event that cannot be delivered would stop every receiver at its place.
    def test_broken_annotations_are_refused(self):
        c = self.connect("poison")
        c.attach_sender(1, 0, "poison")
        broken = b"\0\x53\x72\xc1\3\2\xff\xff" + event(b"x")
        batch = event(event(b"good")) + event(broken)
        for payload, kind in ((broken, 0), (batch, BATCH)):
            self.assertEqual(c.send(1, 0, payload, kind), "com.microsoft:argument-error")
        self.assertIsNone(c.send(1, 0, event(b"later")))
        c.attach_receiver(1, 1, PLACE.format("poison"))
        c.flow(1, 1, 10)
        self.assertTrue(self.receive(c, 1)[0].payload.endswith(b"later"))

    # Java begins a session for each partition while its first token is on the way.
    def test_sessions_may_begin_before_the_token(self):
        c = self.connect()
        for channel in range(33):
            c.say(channel, BEGIN, [None, 0, 2048, 2048])
        for _ in range(33):
            self.assertEqual(c.hear(BEGIN, CLOSE).kind, BEGIN)

    # Go waits for the flow that ends a drain, also when the events have used up the credit.
    def test_every_drain_is_answered(self):
        self.publish("drain", [b"1", b"2", b"3", b"4", b"5"])
        for handle, credit in enumerate((3, 0)):
            c = self.connect("drain")
            c.attach_receiver(1, handle, PLACE.format("drain"))
            c.flow(1, handle, credit, drain=True)
            if credit:
                self.receive(c, credit)
            frame = c.hear(FLOW, TRANSFER)
            while frame.kind == FLOW and frame.fields[4] is None:
                frame = c.hear(FLOW, TRANSFER)
            self.assertEqual(frame.kind, FLOW)
            self.assertEqual(frame.fields[5:7] + frame.fields[8:9], [credit, 0, True])
            c.close()

    # Replies repeat the request's id; who does not fetch them cannot have many kept.
    def test_a_stranger_cannot_have_much_kept(self):
        c = self.connect()
        c.begin(0)
        c.attach_sender(0, 0, "$cbs")
        c.attach_receiver(0, 1, "$cbs")
        ask = (section(PROPERTIES, [b"i" * 1500]) +
               section(APPLICATION_PROPERTIES, {"operation": "x"}) + section(VALUE, None))
        outcomes = [c.send(0, 0, ask) for _ in range(8)]
        self.assertIsNone(outcomes[0])
        kept = outcomes.count(None)
        self.assertLessEqual(kept * 1500, 4096)
        self.assertEqual(set(outcomes[kept:]), {"amqp:resource-limit-exceeded"})
        c.flow(0, 1, 100)
        for _ in range(kept):
            c.hear(TRANSFER)
        self.assertIsNone(c.send(0, 0, ask))  # there is room again

    # Five whose tokens have ended, and who say nothing to it, are no longer in the way.
    def test_an_ended_token_gives_the_place_back(self):
        old = []
        for _ in range(5):
            c = Connection(self.server.address)
            self.addCleanup(c.close)
            c.trust("sb://localhost/crowd", token("sb://localhost/crowd", 2))
            c.begin(1)
            c.attach_receiver(1, 0, PLACE.format("crowd"))
            old.append(c)
        for c in old:
            self.assertEqual(c.hear(DETACH).condition, "amqp:unauthorized-access")
        c = self.connect("crowd")
        self.publish("crowd", [b"x"])
        c.attach_receiver(1, 0, PLACE.format("crowd"))
        c.flow(1, 0, 1)
        self.receive(c, 1)

    # Each takes the place of the one before, which does not answer: its link remains, no more.
    def test_who_is_over_costs_little(self):
        if self.server.is_sanitized():
            self.skipTest("what is freed is kept by the sanitizer")
        self.publish("many", [b"z" * 100000 for _ in range(20)])
        c = self.connect("many")
        for number in range(20):  # what is allocated once
            self.steal(c, number)
        before = self.server.resident_kib()
        for number in range(20, 220):
            self.steal(c, number)
        self.assertLess(self.server.resident_kib() - before, 200 * 64)

    def steal(self, c, number):
        c.attach_receiver(1, number, PLACE.format("many"), properties=epoch(number))
        c.flow(1, number, 1)
        c.hear(TRANSFER)  # a detach of the one before comes first

    # A token for each partition of a large hub.
    def test_a_connection_has_many_tokens(self):
        c = self.connect("eh1")
        for number in range(1026):
            c.put_token(0, 0, f"sb://localhost/eh1/Partitions/{number}")
            self.assertEqual(status(c.hear(TRANSFER)), 202)

    def test_the_name_of_a_hub_is_not_the_name_of_the_host(self):
        c = self.connect()
        self.assertEqual(c.trust("sb://localhost/poison", token("eh1")), 401)
        self.assertEqual(self.connect().trust("sb://localhost/eh1", token("eh1")), 202)

    def test_a_reply_goes_to_the_pair_that_asked(self):
        c = self.connect()
        c.begin(0)
        c.attach_sender(0, 0, "$cbs")
        for handle, target in ((1, "here"), (2, "there"), (3, None)):
            c.attach_receiver(0, handle, "$cbs", name=f"link {handle}", target=target)
            c.flow(0, handle, 10)
        for reply_to, handle in (("here", 1), ("link 2", 2), ("link 3", 3), ("elsewhere", 3),
                                 (None, 3)):
            c.put_token(0, 0, "sb://localhost/eh1", reply_to=reply_to)
            # Our handles are the server's, in the order of the attaches.
            self.assertEqual(c.hear(TRANSFER).fields[0], handle)


if __name__ == "__main__":
    unittest.main()
