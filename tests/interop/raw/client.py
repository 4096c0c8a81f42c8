"""client.py - AMQP 1.0 frame by frame, for what no library would send, and a `weir serve` to send
it to. Nothing but Python's own library.

Values are None, bool, int (uint), bytes (binary), str (string), list, dict (map), or one of the
classes below; a described value that comes is a Described. Numbers of all widths come as int."""
import base64
import hashlib
import hmac
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import urllib.parse

PATIENCE_S = 20  # for what must come
RULE, KEY = "RootManageSharedAccessKey", "SAS_KEY_VALUE"
OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
EMPTY = 0  # the kind of a frame without a body
SOURCE, TARGET, ACCEPTED, REJECTED = 0x28, 0x29, 0x24, 0x25
PROPERTIES, APPLICATION_PROPERTIES, DATA, VALUE = 0x73, 0x74, 0x75, 0x77
BATCH = 0x80013700  # message-format


class Symbol(str):
    pass


class Long(int):
    pass


class Short(int):  # ushort
    pass


class Byte(int):  # ubyte
    pass


class Described:
    def __init__(self, code, value):
        self.code, self.value = code, value


def encode(v):
    if v is None or isinstance(v, bool):
        return {None: b"\x40", True: b"\x41", False: b"\x42"}[v]
    if isinstance(v, Described):
        return b"\0\x53" + bytes([v.code]) + encode(v.value)
    if isinstance(v, Long):
        return b"\x81" + struct.pack(">q", v)
    if isinstance(v, Short):
        return b"\x60" + struct.pack(">H", v)
    if isinstance(v, Byte):
        return b"\x50" + bytes([v])
    if isinstance(v, int):
        return b"\x70" + struct.pack(">I", v)
    if isinstance(v, (bytes, str)):
        raw = v if isinstance(v, bytes) else v.encode()
        code = 0xB0 if isinstance(v, bytes) else 0xB3 if isinstance(v, Symbol) else 0xB1
        return bytes([code]) + struct.pack(">I", len(raw)) + raw
    items = v if isinstance(v, list) else [x for pair in v.items() for x in pair]
    raw = b"".join(map(encode, items))
    code = 0xD0 if isinstance(v, list) else 0xD1
    return bytes([code]) + struct.pack(">II", len(raw) + 4, len(items)) + raw


SIMPLE = {0x40: None, 0x41: True, 0x42: False, 0x43: 0, 0x44: 0, 0x45: []}
FIXED = {0x50: "B", 0x51: "b", 0x52: "B", 0x53: "B", 0x54: "b", 0x55: "b", 0x56: "?", 0x60: "H",
         0x61: "h", 0x70: "I", 0x71: "i", 0x80: "Q", 0x81: "q", 0x83: "q"}


def decode(b, at=0):
    """A value and where it ends."""
    code = b[at]
    at += 1
    if code == 0:
        descriptor, at = decode(b, at)
        value, at = decode(b, at)
        return Described(descriptor, value), at
    if code in SIMPLE:
        return SIMPLE[code], at
    if code in FIXED:
        form = ">" + FIXED[code]
        return struct.unpack_from(form, b, at)[0], at + struct.calcsize(form)
    wide = code >> 4 in (0xB, 0xD, 0xF)
    size = struct.unpack_from(">I", b, at)[0] if wide else b[at]
    at += 4 if wide else 1
    raw, end = b[at:at + size], at + size
    if code >> 4 in (0xA, 0xB):
        return (raw if code & 15 == 0 else raw.decode()), end
    if code >> 4 in (0xE, 0xF):
        return raw, end  # arrays: nobody looks into them
    at, items = at + (4 if wide else 1), []
    while at < end:
        value, at = decode(b, at)
        items.append(value)
    return (items if code & 15 == 0 else dict(zip(items[::2], items[1::2]))), end


def section(code, value):
    return encode(Described(code, value))


def sections(payload):
    """code: value of a message; the last of each."""
    found, at = {}, 0
    while at < len(payload):
        value, at = decode(payload, at)
        found[value.code] = value.value
    return found


def token(audience, lives_s=600, key=KEY):
    resource, until = urllib.parse.quote_plus(audience), str(int(time.time() + lives_s))
    mac = hmac.new(key.encode(), f"{resource}\n{until}".encode(), hashlib.sha256).digest()
    sig = urllib.parse.quote_plus(base64.b64encode(mac))
    return f"SharedAccessSignature sr={resource}&sig={sig}&se={until}&skn={RULE}"


class Frame:
    def __init__(self, channel, kind, fields, payload):
        self.channel, self.kind, self.fields, self.payload = channel, kind, fields, payload

    @property
    def condition(self):
        """Of the error in a detach, end, close, or rejected disposition; None: there is none."""
        at = {DETACH: 2, END: 0, CLOSE: 0, DISPOSITION: 4}[self.kind]
        error = self.fields[at] if len(self.fields) > at else None
        if self.kind == DISPOSITION:
            error = error.value[0] if error.code == REJECTED else None
        return error.value[0] if error else None


class Connection:
    """Open when it is made, without SASL and without trust."""

    def __init__(self, address):
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), PATIENCE_S)
        self.bytes = b""
        self.next_id = {}  # of the deliveries of each channel
        self.socket.sendall(b"AMQP\0\1\0\0")
        self.say(0, OPEN, ["raw", "localhost", 65536, Short(65535)])
        assert self.take(8) == b"AMQP\0\1\0\0"
        self.announced = self.hear(OPEN).fields

    def close(self):
        self.socket.close()

    def take(self, count):
        while len(self.bytes) < count:
            more = self.socket.recv(65536)
            if not more:
                raise EOFError("the server has closed the connection")
            self.bytes += more
        taken, self.bytes = self.bytes[:count], self.bytes[count:]
        return taken

    def say(self, channel, kind, fields, payload=b""):
        body = section(kind, fields) + payload
        self.socket.sendall(struct.pack(">IBBH", 8 + len(body), 2, 0, channel) + body)

    def next_frame(self):
        size, _, _, channel = struct.unpack(">IBBH", self.take(8))
        body = self.take(size - 8)
        if not body:
            return Frame(channel, EMPTY, [], b"")
        value, end = decode(body)
        return Frame(channel, value.code, value.value, body[end:])

    def hear(self, *kinds):
        """The next frame of these kinds; others are passed over, but for an end of all."""
        while True:
            frame = self.next_frame()
            if frame.kind in kinds:
                return frame
            if frame.kind == CLOSE:
                raise EOFError(f"closed: {frame.condition}")

    def begin(self, channel):
        self.say(channel, BEGIN, [None, 0, 2048, 2048])
        self.hear(BEGIN)

    def attach_sender(self, channel, handle, address, name=None):
        self.say(channel, ATTACH, [name or f"s{handle}", handle, False, None, None,
                                   Described(SOURCE, []), Described(TARGET, [address]), None, None,
                                   0])
        self.hear(ATTACH)

    def attach_receiver(self, channel, handle, address, name=None, target=None, properties=None):
        self.say(channel, ATTACH, [name or f"r{handle}", handle, True, None, None,
                                   Described(SOURCE, [address]), Described(TARGET, [target]), None,
                                   None, None, None, None, None, properties])
        self.hear(ATTACH)

    def flow(self, channel, handle, credit, count=0, drain=False):
        """count: of the deliveries so far."""
        self.say(channel, FLOW, [0, 0xFFFFFFFF, 0, 2048, handle, count, credit, None, drain])

    def transfer(self, channel, handle, payload, message_format=0):
        number = self.next_id.get(channel, 0)
        self.next_id[channel] = number + 1
        for at in range(0, len(payload), 60000):
            self.say(channel, TRANSFER,
                     [handle, number, struct.pack(">I", number), message_format, False,
                      at + 60000 < len(payload)], payload[at:at + 60000])

    def settle(self, frame):
        number = frame.fields[1]
        self.say(frame.channel, DISPOSITION, [True, number, number, True, Described(ACCEPTED, [])])

    def put_token(self, channel, handle, audience, text=None, reply_to=None):
        self.transfer(channel, handle, section(PROPERTIES, ["id", None, None, None, reply_to]) +
                      section(APPLICATION_PROPERTIES, {
                          "operation": "put-token", "type": "servicebus.windows.net:sastoken",
                          "name": audience}) + section(VALUE, text or token(audience)))

    def trust(self, audience="sb://localhost/eh1", text=None, settle=True):
        """On channel 0, handles 0 and 1. The status."""
        self.begin(0)
        self.attach_sender(0, 0, "$cbs")
        self.attach_receiver(0, 1, "$cbs")
        self.flow(0, 1, 5000)
        self.put_token(0, 0, audience, text)
        reply = self.hear(TRANSFER)
        if settle:
            self.settle(reply)
        return status(reply)

    def send(self, channel, handle, payload, message_format=0):
        """One message and its outcome: a condition, or None when it was accepted."""
        self.transfer(channel, handle, payload, message_format)
        return self.hear(DISPOSITION).condition


def status(reply):
    return sections(reply.payload)[APPLICATION_PROPERTIES]["status-code"]


class Server:
    def __init__(self, *hubs, more=("--amqps", "off")):
        self.program = os.environ["WEIR"]
        self.data = tempfile.mkdtemp(prefix="weir-raw-", dir=os.environ.get("TMPDIR"))
        command = [self.program, "serve", "--data", self.data, "--json", "--amqp", "127.0.0.1:0",
                   "--http", "127.0.0.1:0", *more]
        for hub in hubs:
            command += ["--hub", hub]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        ready = json.loads(self.process.stdout.readline())
        self.address, self.amqps, self.http = ready["amqp"], ready["amqps"], ready["http"]

    def resident_kib(self):
        with open(f"/proc/{self.process.pid}/status") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

    def is_sanitized(self):
        with open(self.program, "rb") as program:
            return b"__asan_init" in program.read()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            self.process.stdout.close()
            shutil.rmtree(self.data, ignore_errors=True)
        return code
