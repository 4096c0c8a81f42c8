"""azure.py - what Azure itself was recorded to answer, frame by frame, where clients rely on it."""
import unittest

from client import (APPLICATION_PROPERTIES, ATTACH, BATCH, CLOSE, DATA, DETACH, DISPOSITION, END,
                    PROPERTIES, SOURCE, TARGET, TRANSFER, VALUE, Byte, Connection, Described, Long,
                    Server, Symbol, section, sections, status, token)

PLACE = "{}/ConsumerGroups/$Default/Partitions/0"
UNSETTLED, SETTLED, MIXED = range(3)  # snd-settle-mode
FIRST, SECOND = range(2)  # rcv-settle-mode
HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS, FOOTER = 0x70, 0x71, 0x72, 0x78
HUBS = ("modes", "places", "empty", "events", "tags", "asked")


def event(body):
    return section(DATA, body)


class Azure(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(*(hub + ":1" for hub in HUBS))

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def connect(self, hub):
        """Trusted with everything of a hub, and with a session on channel 1."""
        c = Connection(self.server.address)
        self.addCleanup(c.close)
        self.assertEqual(c.trust(f"sb://localhost/{hub}"), 202)
        c.begin(1)
        return c

    def attach(self, c, handle, sends, address, modes):
        """The answer to an attach with these settle modes: its own two."""
        source, target = (None, address) if sends else (address, None)
        c.say(1, ATTACH, [f"l{handle}", handle, not sends, Byte(modes[0]), Byte(modes[1]),
                          Described(SOURCE, [source]), Described(TARGET, [target]), None, None, 0])
        return tuple(c.hear(ATTACH).fields[3:5])

    # Python's sender asks for second and waits for a settled disposition nevertheless.
    def test_senders_are_settled_first_whatever_they_ask_for(self):
        c = self.connect("modes")
        for handle, modes in enumerate(((UNSETTLED, SECOND), (MIXED, FIRST), (UNSETTLED, FIRST))):
            self.assertEqual(self.attach(c, handle, True, "modes", modes), (modes[0], FIRST))
            c.transfer(1, handle, event(b"x"))
            outcome = c.hear(DISPOSITION)
            self.assertIs(outcome.fields[3], True)
            self.assertIsNone(outcome.condition)

    # Go's reader asks for mixed and renews credit for settled deliveries only.
    def test_events_come_settled_whatever_is_asked_for(self):
        c = self.connect("modes")
        c.attach_sender(1, 100, "modes")
        self.assertIsNone(c.send(1, 100, event(b"x")))
        for handle, modes in enumerate(((UNSETTLED, FIRST), (MIXED, SECOND), (SETTLED, FIRST))):
            self.assertEqual(self.attach(c, handle, False, PLACE.format("modes"), modes),
                             (SETTLED, modes[1]))
            c.flow(1, handle, 1)
            came = c.hear(TRANSFER)
            self.assertIs(came.fields[4], True)
            self.assertIs(came.fields[10], True)  # batchable

    # A reply is an answer to a request, not an event.
    def test_requests_are_settled_as_asked(self):
        c = self.connect("modes")
        for handle, modes in ((0, (UNSETTLED, FIRST)), (2, (SETTLED, FIRST))):
            self.assertEqual(self.attach(c, handle, True, "$management", (UNSETTLED, FIRST)),
                             (UNSETTLED, FIRST))
            self.assertEqual(self.attach(c, handle + 1, False, "$management", modes), modes)

    def receive(self, c, handle, hub, properties=None, desired=None, selector=None):
        """Attaches a receiver that takes what there is. The attach's answer."""
        source = [PLACE.format(hub)] + ([None] * 6 + [{
            Symbol("apache.org:selector-filter:string"): selector}] if selector else [])
        c.say(1, ATTACH, [f"r{handle}", handle, True, None, None, Described(SOURCE, source),
                          Described(TARGET, ["mine"]), None, None, None, None, None,
                          desired and Symbol(desired), properties])
        answer = c.hear(ATTACH)
        c.flow(1, handle, 100)
        return answer

    def ask(self, c, properties):
        """READ: the frames of the answer, a disposition and a transfer, in their order."""
        c.attach_sender(1, 200, "$management")
        c.attach_receiver(1, 201, "$management")
        c.flow(1, 201, 1)
        c.transfer(1, 200, section(PROPERTIES, ["id"]) + section(APPLICATION_PROPERTIES, properties))
        return [c.hear(DISPOSITION, TRANSFER) for _ in range(2)]

    # Closed at twice that; Python's producers sleep through shorter ones.
    def test_patience_is_announced(self):
        c = Connection(self.server.address)
        self.addCleanup(c.close)
        self.assertEqual(c.announced[4], 120000)

    def test_the_outcome_comes_before_the_answer(self):
        c = Connection(self.server.address)
        self.addCleanup(c.close)
        c.begin(0)
        c.attach_sender(0, 0, "$cbs")
        c.attach_receiver(0, 1, "$cbs")
        c.flow(0, 1, 10)
        c.put_token(0, 0, "sb://localhost/empty")
        first, second = (c.hear(DISPOSITION, TRANSFER) for _ in range(2))
        self.assertEqual((first.kind, second.kind), (DISPOSITION, TRANSFER))
        self.assertIs(first.fields[3], True)
        self.assertEqual(status(second), 202)

    def test_what_an_empty_partition_is(self):
        outcome, answer = self.ask(self.connect("empty"), {
            "operation": "READ", "type": "com.microsoft:partition", "name": "empty",
            "partition": "0"})
        self.assertEqual((outcome.kind, answer.kind), (DISPOSITION, TRANSFER))
        found = sections(answer.payload)
        self.assertEqual(found[APPLICATION_PROPERTIES], {"operation": "READ", "status-code": 200})
        self.assertEqual(list(found[VALUE].items()), [
            ("name", "empty"), ("partition", "0"), ("type", "com.microsoft:partition"),
            ("begin_sequence_number_epoch", -1), ("begin_sequence_number", -1),
            ("last_enqueued_sequence_number_epoch", -1), ("last_enqueued_sequence_number", -1),
            ("last_enqueued_offset", "-1"), ("last_enqueued_time_utc", -62135596800000),
            ("is_partition_empty", True)])

    def test_no_event_of_an_empty_partition_can_be_named(self):
        for operator in (">", ">="):
            c = self.connect("empty")
            self.receive(c, 0, "empty",
                         selector=f"amqp.annotation.x-opt-sequence-number {operator} '0'")
            end = c.hear(DETACH)
            self.assertEqual(end.condition, "com.microsoft:argument-error")
            self.assertEqual(end.fields[2].value[1],
                             "The supplied sequence number '0' is invalid. The last sequence number "
                             "in the system is '-1'")

    def test_an_event_has_its_epochs(self):
        c = self.connect("events")
        c.attach_sender(1, 0, "events")
        self.assertIsNone(c.send(1, 0, section(HEADER, [True]) + event(b"x")))
        answer = self.receive(c, 1, "events", {Symbol("com.microsoft:epoch"): Long(7)},
                              "com.microsoft:enable-receiver-runtime-metric")
        self.assertEqual(answer.fields[13], {"com.microsoft:epoch": 7})
        found = sections(c.hear(TRANSFER).payload)
        self.assertEqual(list(found), [DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS, DATA])  # no header
        self.assertEqual(found[MESSAGE_ANNOTATIONS]["x-opt-sequence-number-epoch"], -1)
        self.assertEqual(found[DELIVERY_ANNOTATIONS]["last_enqueued_sequence_number_epoch"], -1)
        self.assertEqual(found[DELIVERY_ANNOTATIONS]["last_enqueued_sequence_number"], 0)

    # rhea writes the footer before the body, Azure's Python client its delivery annotations last.
    def test_sections_may_stand_anywhere_once(self):
        c = self.connect("places")
        c.attach_sender(1, 0, "places")
        footer, own = section(FOOTER, {Symbol("f"): 1}), section(DELIVERY_ANNOTATIONS,
                                                                  {Symbol("d"): 2})
        mine = section(MESSAGE_ANNOTATIONS, {Symbol("m"): 3})
        for form in (0, BATCH):
            message = footer + event(b"x") + mine + own
            self.assertIsNone(c.send(1, 0, event(message) if form else message, form))
        self.assertEqual(c.send(1, 0, event(b"x") + own + own), "com.microsoft:argument-error")
        self.receive(c, 1, "places")
        for _ in range(2):
            found = sections(c.hear(TRANSFER).payload)
            self.assertEqual(list(found), [MESSAGE_ANNOTATIONS, FOOTER, DATA, DELIVERY_ANNOTATIONS])
            self.assertEqual(found[FOOTER], {"f": 1})
            self.assertEqual(found[DELIVERY_ANNOTATIONS], {"d": 2})
            self.assertEqual(found[MESSAGE_ANNOTATIONS]["m"], 3)

    def test_what_is_wrong_with_a_single_event_is_told_of_it(self):
        c = self.connect("places")
        c.attach_sender(1, 0, "places")
        c.transfer(1, 0, b"\xd1\0\0\0\4\0\0\0\0")
        self.assertEqual(c.hear(DISPOSITION).fields[4].value[0].value[1],
                         "message section ?, byte 0: found a map, but a section must begin with 00")

    def test_the_tag_of_a_delivery_may_be_a_uuid(self):
        c = self.connect("tags")
        c.attach_sender(1, 0, "tags")
        for number, size in enumerate((36, 255)):
            c.say(1, TRANSFER, [0, number, b"t" * size, 0, False, False], event(b"x"))
            self.assertIsNone(c.hear(DISPOSITION).condition)

    # Python detaches its links for $management after it has ended their session.
    def test_frames_of_an_ended_session_are_passed_over(self):
        c = self.connect("empty")
        c.attach_sender(1, 0, "empty")
        c.say(1, END, [])
        c.hear(END)
        c.say(1, DETACH, [0, True])
        c.say(0, CLOSE, [])
        self.assertIsNone(c.hear(CLOSE).condition)

    # Azure's old Event Processor Host has no token but this one.
    def test_a_token_for_management_is_enough_to_read(self):
        c = Connection(self.server.address)
        self.addCleanup(c.close)
        self.assertEqual(c.trust("sb://localhost/asked/$management"), 202)
        c.begin(1)
        _, answer = self.ask(c, {"operation": "READ", "type": "com.microsoft:eventhub",
                                 "name": "asked"})
        self.assertEqual(status(answer), 200)
        self.receive(c, 0, "asked")
        self.assertEqual(c.hear(DETACH).condition, "amqp:unauthorized-access")

    # Azure's Java client has no other token for $management.
    def test_a_request_may_bring_the_only_token(self):
        question = {"operation": "READ", "type": "com.microsoft:eventhub", "name": "asked"}
        right, wrong = token("sb://localhost/asked"), token("sb://localhost/asked", key="wrong")
        for more, answered in (({}, 401), ({"security_token": wrong}, 401), ({"security_token": right}, 200)):
            c = Connection(self.server.address)
            self.addCleanup(c.close)
            c.begin(1)
            _, answer = self.ask(c, {**question, **more})
            self.assertEqual(status(answer), answered)
            self.receive(c, 0, "asked")
            self.assertEqual(c.hear(DETACH).condition, "amqp:unauthorized-access")

    # As Go's helper signs it.
    def test_a_host_alone_is_the_namespace(self):
        c = Connection(self.server.address)
        self.addCleanup(c.close)
        self.assertEqual(c.trust("sb://localhost/asked", token("localhost")), 202)

    # Entra's tokens have many kilobytes. An SDK whose connection is closed for one tries for ever.
    def test_a_long_token_is_answered(self):
        for size in (5000, 9000, 60000):
            for frames in (1, 4):
                c = Connection(self.server.address)
                self.addCleanup(c.close)
                c.begin(0)
                c.attach_sender(0, 0, "$cbs")
                c.attach_receiver(0, 1, "$cbs")
                c.flow(0, 1, 2)
                self.put_in_frames(c, "SharedAccessSignature sr=" + "x" * size, frames)
                self.assertEqual(status(c.hear(TRANSFER)), 401)
                c.next_id[0] = 1
                c.put_token(0, 0, "sb://localhost/asked")
                self.assertEqual(status(c.hear(TRANSFER)), 202)

    def put_in_frames(self, c, text, frames):
        """The first token of a connection, in so many frames."""
        request = (section(PROPERTIES, ["id"]) + section(APPLICATION_PROPERTIES, {
            "operation": "put-token", "type": "servicebus.windows.net:sastoken",
            "name": "sb://localhost/asked"}) + section(VALUE, text))
        part = len(request) // frames + 1
        for at in range(0, len(request), part):
            c.say(0, TRANSFER, [0, 0, b"t", 0, False, at + part < len(request)],
                  request[at:at + part])

    def test_a_scheme_stands_at_the_beginning(self):
        for signed, answer in (("/eh2/publishers/a://b", 401), ("sb://localhost/asked", 202)):
            c = Connection(self.server.address)
            self.addCleanup(c.close)
            self.assertEqual(c.trust("sb://localhost/asked", token(signed)), answer)

    def test_one_link_for_tokens_on_a_connection(self):
        c = self.connect("asked")
        c.attach_sender(1, 0, "$cbs")
        end = c.hear(DETACH)
        self.assertEqual(end.condition, "amqp:not-allowed")
        self.assertIn("$cbs node has already been opened", end.fields[2].value[1])

    def refuse(self, c, handle, place, target):
        """The target in the attach that refuses a receiver; its source is not there."""
        c.say(1, ATTACH, [f"r{handle}", handle, True, None, None, Described(SOURCE, [place]),
                          Described(TARGET, target)])
        answer = c.hear(ATTACH).fields
        self.assertIsNone(answer[5])
        self.assertIsNotNone(c.hear(DETACH).condition)
        return answer[6]

    # uAMQP tries again for ever when its own target, which has no address, is not repeated.
    def test_a_refused_receiver_finds_its_own_target(self):
        c = self.connect("asked")
        for handle, place in enumerate(("asked/ConsumerGroups/$Default/Partitions/9",
                                        "nope/ConsumerGroups/$Default/Partitions/0")):
            self.assertIsNotNone(self.refuse(c, handle, place, []))

    # Go names its target; it takes an attach with either end for success, and tries again for ever.
    def test_a_refused_receiver_that_names_its_target_finds_none(self):
        c = self.connect("asked")
        for handle, place in enumerate(("asked/ConsumerGroups/$Default/Partitions/9",
                                        "asked/ConsumerGroups/nobody/Partitions/0",
                                        "nope/ConsumerGroups/$Default/Partitions/0")):
            self.assertIsNone(self.refuse(c, handle, place, ["mine"]))

    def test_an_address_without_a_partition(self):
        c = self.connect("asked")
        c.attach_sender(1, 0, "asked/Partitions/")
        end = c.hear(DETACH)
        self.assertEqual(end.condition, "com.microsoft:argument-error")
        self.assertIn("Invalid EventHub address", end.fields[2].value[1])

    # Go lets go of its reply link and resets the connection when a request is rejected then.
    def test_a_request_without_a_link_for_the_reply_is_dropped(self):
        c = self.connect("asked")
        c.attach_sender(1, 0, "$management")
        c.transfer(1, 0, section(PROPERTIES, ["id"]) + section(APPLICATION_PROPERTIES, {
            "operation": "READ", "type": "com.microsoft:eventhub", "name": "asked"}))
        self.assertIsNone(c.hear(DISPOSITION).condition)


if __name__ == "__main__":
    unittest.main()
