"""azure.py - what Azure itself was recorded to answer, frame by frame, where clients rely on it."""
import unittest

from client import (ATTACH, DATA, DETACH, DISPOSITION, SOURCE, TARGET, TRANSFER, Byte, Connection,
                    Described, Server, section)

PLACE = "{}/ConsumerGroups/$Default/Partitions/0"
UNSETTLED, SETTLED, MIXED = range(3)  # snd-settle-mode
FIRST, SECOND = range(2)  # rcv-settle-mode
HUBS = ("modes",)


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


if __name__ == "__main__":
    unittest.main()
