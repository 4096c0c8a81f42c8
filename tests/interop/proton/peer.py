"""Qpid Proton on a socket of our own: its engine, and nothing that hides the wire from a test."""
import os
import select
import socket
import ssl
import struct
import time

from proton import Collector, Connection, Delivery, Event, Message, Transport, symbol

BATCH = 0x80013700
WAIT_S = 20
TURN_S = 0.05


def batch_of(events):
    """Event Hubs' batch: each event, encoded, is a data section of one message."""
    sections = b""
    for event in events:
        raw = event.encode()
        sections += b"\x00\x53\x75\xb0" + struct.pack(">I", len(raw)) + raw
    return sections


def with_format(frame, message_format):
    """A transfer frame with another message-format: Proton always says 0. Its first four fields are
    handle, delivery-id, delivery-tag and this one."""
    if frame[8:11] != b"\x00\x53\x14" or frame[11] not in (0xC0, 0xD0):
        return frame
    wide = frame[11] == 0xD0
    at = 20 if wide else 14
    for _ in range(3):
        code = frame[at]
        at += {0x40: 1, 0x43: 1, 0x52: 2, 0x70: 5}.get(code) or 2 + frame[at + 1]  # else binary
    if frame[at] == 0x40:
        return frame  # a frame that is not the first of its message
    assert frame[at] == 0x43, hex(frame[at])
    body = frame[8:at] + b"\x70" + struct.pack(">I", message_format) + frame[at + 1:]
    head = bytearray(body)
    if wide:
        struct.pack_into(">I", head, 4, struct.unpack_from(">I", head, 4)[0] + 4)
    else:
        head[4] += 4
    return struct.pack(">I", len(head) + 8) + frame[4:8] + bytes(head)


class Peer:
    """A connection of Proton's, stepped by hand. What the engine reports is in `events`."""

    def __init__(self, address, tls=False, user=None, password=None, mechanisms="ANONYMOUS",
                 frame_size=None, idle_s=None):
        self.events = []
        self.format = None  # of the messages that are sent from now on
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)))
        if tls:
            context = ssl.create_default_context(cafile=os.environ["WEIR_TEST_CERTIFICATE"])
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.socket.setblocking(False)
        self.transport = Transport()
        if frame_size:
            self.transport.max_frame_size = frame_size
        if idle_s:
            self.transport.idle_timeout = idle_s
        self.connection = Connection()
        self.connection.container, self.connection.hostname = "proton", "localhost"
        if user:
            self.connection.user, self.connection.password = user, password
        if mechanisms:
            sasl = self.transport.sasl()
            sasl.allowed_mechs(mechanisms)
            sasl.allow_insecure_mechs = True
        self.collector = Collector()
        self.connection.collect(self.collector)
        self.transport.bind(self.connection)
        self.connection.open()
        self.held = b""  # output that is not a whole frame yet
        self.gone = False
        self.mute = False  # nothing is sent any more

    # -- the road --

    def _send(self):
        while self.transport.pending() > 0:
            out = self.transport.peek(self.transport.pending())
            self.transport.pop(len(out))
            self._write(self._change(out) if self.format is not None else out)

    def _change(self, out):
        self.held += out
        changed = b""
        while len(self.held) >= 4:
            size = struct.unpack_from(">I", self.held)[0]
            if len(self.held) < size:
                break
            changed += with_format(self.held[:size], self.format)
            self.held = self.held[size:]
        return changed

    def _write(self, out):
        while out and not self.gone and not self.mute:
            try:
                out = out[self.socket.send(out):]
            except (BlockingIOError, ssl.SSLWantWriteError):
                self._receive()  # or both sides would wait for each other
                select.select([], [self.socket], [], TURN_S)
            except OSError:
                self.gone = True

    def _receive(self):
        capacity = self.transport.capacity()
        while capacity > 0 and not self.gone:
            try:
                data = self.socket.recv(capacity)
            except (BlockingIOError, ssl.SSLWantReadError):
                return
            except OSError:
                data = b""
            if data:
                self.transport.push(data)
            else:
                self.gone = True
                self.transport.close_tail()
            capacity = self.transport.capacity()

    def step(self, seconds=TURN_S):
        """One turn: writes, waits for a while, reads, and notes what happened."""
        self.transport.tick(time.monotonic())
        self._send()
        if not self.gone:
            pending = isinstance(self.socket, ssl.SSLSocket) and self.socket.pending()
            if pending or select.select([self.socket], [], [], seconds)[0]:
                self._receive()
        event = self.collector.peek()
        while event:
            self.events.append(event.type)
            self.collector.pop()
            event = self.collector.peek()
        self._send()

    def until(self, what, seconds=WAIT_S):
        """Steps until something is true; false when it does not become so."""
        deadline = time.monotonic() + seconds
        while not what():
            if time.monotonic() > deadline or (self.gone and not what()):
                return bool(what())
            self.step()
        return True

    def close(self):
        self.connection.close()
        self.until(lambda: self.gone or self.saw(Event.CONNECTION_REMOTE_CLOSE), 5)
        self.socket.close()

    # -- what a test asks --

    def saw(self, kind):
        return kind in self.events

    def open(self):
        """Waits for the other side's open, or for the end."""
        opened, failed = Event.CONNECTION_REMOTE_OPEN, Event.TRANSPORT_ERROR
        self.until(lambda: self.saw(opened) or self.saw(failed))
        return self.saw(opened) and not self.saw(failed)

    def session(self):
        session = self.connection.session()
        session.open()
        return session

    def sender(self, address, session=None, settle=None, properties=None):
        link = (session or self.session()).sender(f"s-{address}-{len(self.events)}")
        link.target.address = address
        if settle is not None:
            link.snd_settle_mode = settle
        if properties:
            link.properties = properties
        link.open()
        return self._attached(link)

    def receiver(self, address, session=None, selector=None, descriptor=None, settle=None,
                 properties=None, rcv_settle=None):
        link = (session or self.session()).receiver(f"r-{address}-{len(self.events)}")
        link.source.address = address
        if selector:
            put_filter(link.source.filter, selector, descriptor)
        if settle is not None:
            link.snd_settle_mode = settle
        if rcv_settle is not None:
            link.rcv_settle_mode = rcv_settle
        if properties:
            link.properties = properties
        link.open()
        return self._attached(link)

    def _attached(self, link):
        """Waits for the answer. A refusal is an attach without a place, and a detach behind it."""
        def answered():
            here = link.remote_target if link.is_sender else link.remote_source
            placed = link.state & link.REMOTE_ACTIVE and here.address
            return placed or link.state & link.REMOTE_CLOSED
        self.until(answered)
        return link

    def send(self, link, message, settled=False):
        """Sends and waits for the outcome: its name, and the condition when it was rejected."""
        assert self.until(lambda: link.credit > 0), "no credit"
        delivery = link.delivery(str(len(self.events) + link.queued))
        link.stream(message if isinstance(message, bytes) else message.encode())
        link.advance()
        if settled:
            delivery.settle()
            self.step()
            return None
        assert self.until(lambda: delivery.updated or delivery.settled), "no outcome"
        state, condition = delivery.remote_state, delivery.remote.condition
        delivery.settle()
        return str(state), condition.name if condition else None

    def take(self, link, count, credit=None, seconds=WAIT_S, outcome=Delivery.ACCEPTED):
        """Takes messages: their bytes, decoded, with whether they came settled."""
        got = []
        if credit != 0:
            link.flow(credit or count)
        deadline = time.monotonic() + seconds
        while len(got) < count and time.monotonic() < deadline and not self.gone:
            self.step()
            while link.current and not link.current.partial and link.current.readable:
                delivery, message = link.current, Message()
                message.decode(link.recv(delivery.pending))
                message.settled_by_sender = delivery.settled
                got.append(message)
                link.advance()
                delivery.update(outcome)
                delivery.settle()
        self.step()
        return got

    def ask(self, node, properties, body=None, message_id="m1"):
        """One request and its reply."""
        session = self.session()
        sender, receiver = self.sender(node, session), self.receiver(node, session)
        if sender.state & sender.REMOTE_CLOSED:
            return sender
        receiver.flow(1)
        request = Message(id=message_id, properties=properties, body=body)
        self.send(sender, request)
        reply, = self.take(receiver, 1, credit=0)
        session.close()  # and with it its links: a connection has one sender to $cbs at a time
        assert self.until(lambda: session.state & session.REMOTE_CLOSED), "the session does not end"
        return reply

    def trust(self, text, audience="sb://localhost/eh1"):
        """put-token: its status."""
        reply = self.ask("$cbs", {"operation": "put-token", "name": audience,
                                  "type": "servicebus.windows.net:sastoken"}, text)
        return reply.properties["status-code"]


def put_filter(data, selector, descriptor):
    """{apache.org:selector-filter:string: described string}."""
    data.put_map()
    data.enter()
    data.put_symbol(symbol("apache.org:selector-filter:string"))
    data.put_described()
    data.enter()
    if isinstance(descriptor, int):
        data.put_ulong(descriptor)
    else:
        data.put_symbol(symbol(descriptor or "apache.org:selector-filter:string"))
    data.put_string(selector)
    data.exit()
    data.exit()

