"""issuer.py - tokens of an issuer over AMQP: put-token of type jwt, and how rights that rest on them
end. tests/scenario/issuer.sh makes the keys, rsa.key and ec.key, and their sets, *.json."""
import base64
import json
import shutil
import signal
import subprocess
import time
import unittest

from client import (APPLICATION_PROPERTIES, DATA, DETACH, PROPERTIES, TRANSFER, VALUE,
                    Connection, Server, section, sections, token)

ISSUER, AUDIENCE = "https://issuer.test/tenant/", "https://eventhubs.azure.net"
LEEWAY_S = 60  # WEIR__JWT_LEEWAY_S
HUB = "sb://localhost/eh1"
PLACE = "eh1/ConsumerGroups/$Default/Partitions/0"
OWNER, SENDER, RECEIVER = ("Azure Event Hubs Data " + x for x in ("Owner", "Sender", "Receiver"))
UNAUTHORIZED, AUTH_FAILED = "amqp:unauthorized-access", "com.microsoft:auth-failed"


def base64url(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def raw_of(der):
    """r and s of a DER signature, side by side."""
    at, numbers = 2, b""
    for _ in range(2):
        size = der[at + 1]
        numbers += der[at + 2:at + 2 + size].lstrip(b"\0").rjust(32, b"\0")
        at += 2 + size
    return numbers


def jwt(role, key="rsa", lives_s=600, **more):
    claims = {"iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + lives_s, "roles": [role]}
    header = {"alg": {"rsa": "RS256", "ec": "ES256"}[key], "kid": key[0]}
    text = ".".join(base64url(json.dumps(x).encode()) for x in (header, {**claims, **more}))
    made = subprocess.run(["openssl", "dgst", "-sha256", "-sign", key + ".key"],
                          input=text.encode(), stdout=subprocess.PIPE, check=True).stdout
    return text + "." + base64url(made if key == "rsa" else raw_of(made))


class Issuer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.copy("keys.json", "served.json")
        cls.server = Server("eh1:1", more=("--amqps", "off", "--issuer", ISSUER, "--jwks",
                                           "served.json"))

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def connect(self):
        """With links for tokens on channel 0, and a session on channel 1."""
        c = Connection(self.server.address)
        self.addCleanup(c.close)
        c.begin(0)
        c.attach_sender(0, 0, "$cbs")
        c.attach_receiver(0, 1, "$cbs")
        c.flow(0, 1, 5000)
        c.begin(1)
        return c

    def put(self, c, text, kind="jwt", audience=HUB):
        """What is answered to put-token."""
        c.transfer(0, 0, section(PROPERTIES, ["id"]) + section(APPLICATION_PROPERTIES, {
            "operation": "put-token", "type": kind, "name": audience}) + section(VALUE, text))
        reply = c.hear(TRANSFER)
        c.settle(reply)
        return sections(reply.payload)[APPLICATION_PROPERTIES]

    def trusted(self, text):
        c = self.connect()
        self.assertEqual(self.put(c, text)["status-code"], 202)
        return c

    def sends(self, c, handle=0):
        c.attach_sender(1, handle, "eh1")
        return c.send(1, handle, section(DATA, b"x"))

    def refuse(self, text, words):
        answer = self.put(self.connect(), text)
        self.assertEqual(answer["status-code"], 401)
        self.assertEqual(answer["error-condition"], AUTH_FAILED)
        self.assertIn(words, answer["status-description"])

    def test_a_role_is_a_right(self):
        for key in ("rsa", "ec"):
            c = self.trusted(jwt(SENDER, key))
            self.assertIsNone(self.sends(c))
            c.attach_receiver(1, 5, PLACE)
            end = c.hear(DETACH)
            self.assertEqual(end.condition, UNAUTHORIZED)
            self.assertIn("'Listen' claim(s) are required", end.fields[2].value[1])
        c = self.trusted(jwt(RECEIVER))
        c.attach_receiver(1, 5, PLACE)
        c.flow(1, 5, 1)
        self.assertEqual(sections(c.hear(TRANSFER).payload)[DATA], b"x")
        c.attach_sender(1, 6, "eh1")
        self.assertEqual(c.hear(DETACH).condition, UNAUTHORIZED)
        c = self.trusted(jwt(OWNER, "ec"))
        self.assertIsNone(self.sends(c))
        c.attach_receiver(1, 5, PLACE)
        c.flow(1, 5, 1)
        c.hear(TRANSFER)

    # The audience of put-token is what the rights are for: a connection shows one for each.
    def test_rights_are_for_what_was_named(self):
        c = self.trusted(jwt(SENDER))
        self.assertEqual(self.put(c, jwt(SENDER), audience="sb://localhost/none")["status-code"], 404)
        c = self.connect()
        self.assertEqual(self.put(c, jwt(SENDER), audience=HUB + "/Partitions/0")["status-code"], 202)
        c.attach_sender(1, 0, "eh1")
        self.assertEqual(c.hear(DETACH).condition, UNAUTHORIZED)

    def test_refusals(self):
        good = jwt(SENDER)
        self.refuse(good[:-1], "InvalidSignature: The token has an invalid signature.")
        self.refuse(good + ".", "MalformedToken: ")
        self.refuse("", "MalformedToken: ")
        self.refuse("x" * 17000, "MalformedToken: The token is too long.")
        self.refuse(jwt(SENDER, iss="https://other"), "InvalidIssuer: Token issuer is invalid.")
        self.refuse(jwt(SENDER, aud="x"), "InvalidAudience: Invalid authorization token audience.")
        self.refuse(jwt(SENDER, lives_s=-LEEWAY_S - 1), "ExpiredToken: The token is expired.")
        self.refuse(jwt("Reader"), "Unauthorized access. The token has no role")
        self.refuse(token(HUB), "MalformedToken: ")
        answer = self.put(self.connect(), good, "servicebus.windows.net:sastoken")
        self.assertEqual(answer["status-code"], 401)
        self.assertIn("MalformedToken: ", answer["status-description"])

    # As of somebody in many groups: longer than what strangers may send otherwise.
    def test_a_long_token(self):
        c = self.trusted(jwt(SENDER, groups=["11111111-2222-3333-4444-555555555555"] * 280))
        self.assertIsNone(self.sends(c))

    # Rules and their keys count as before.
    def test_shared_keys_are_still_good(self):
        c = self.connect()
        kind = "servicebus.windows.net:sastoken"
        self.assertEqual(self.put(c, token(HUB), kind)["status-code"], 202)
        self.assertIsNone(self.sends(c))

    def test_questions_with_a_token_of_their_own(self):
        c = self.trusted(jwt(SENDER))
        c.attach_sender(1, 0, "$management")
        c.attach_receiver(1, 1, "$management")
        c.flow(1, 1, 100)
        for text, status in ((jwt(RECEIVER), 200), (token(HUB), 200), (jwt("Reader"), 401)):
            c.transfer(1, 0, section(PROPERTIES, ["id"]) + section(APPLICATION_PROPERTIES, {
                "operation": "READ", "type": "com.microsoft:eventhub", "name": "eh1",
                "security_token": text}))
            reply = c.hear(TRANSFER)
            c.settle(reply)
            self.assertEqual(sections(reply.payload)[APPLICATION_PROPERTIES]["status-code"], status)

    def test_a_link_ends_with_its_token(self):
        c = self.trusted(jwt(SENDER, lives_s=10 - LEEWAY_S))
        renewed = self.trusted(jwt(SENDER, lives_s=10 - LEEWAY_S))
        self.assertIsNone(self.sends(c))
        self.assertIsNone(self.sends(renewed))
        self.assertEqual(self.put(renewed, jwt(SENDER))["status-code"], 202)
        end = c.hear(DETACH)
        self.assertEqual(end.condition, UNAUTHORIZED)
        self.assertIn("ExpiredToken: ", end.fields[2].value[1])
        self.assertIsNone(renewed.send(1, 0, section(DATA, b"y")))

    # As with a rule that is removed: what rests on the key ends, what does not goes on.
    def test_a_link_ends_with_its_key(self):
        gone, stays = self.trusted(jwt(SENDER, "rsa")), self.trusted(jwt(SENDER, "ec"))
        shared = self.connect()
        self.put(shared, token(HUB), "servicebus.windows.net:sastoken")
        for c in (gone, stays, shared):
            self.assertIsNone(self.sends(c))
        shutil.copy("ec.json", "served.json")
        self.server.process.send_signal(signal.SIGHUP)
        end = gone.hear(DETACH)
        self.assertEqual(end.condition, UNAUTHORIZED)
        self.assertIn("removed or changed", end.fields[2].value[1])
        gone.attach_sender(1, 7, "eh1")
        self.assertEqual(gone.hear(DETACH).condition, UNAUTHORIZED)
        self.refuse(jwt(SENDER), "InvalidSignature: ")
        for c in (stays, shared):
            self.assertIsNone(c.send(1, 0, section(DATA, b"z")))
        shutil.copy("keys.json", "served.json")
        self.server.process.send_signal(signal.SIGHUP)
        while self.put(gone, jwt(SENDER))["status-code"] != 202:
            time.sleep(0.05)
        for c in (stays, shared):
            self.assertIsNone(c.send(1, 0, section(DATA, b"z")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
