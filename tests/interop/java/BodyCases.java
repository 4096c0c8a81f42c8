package interop;

import static interop.Check.check;
import static interop.Check.same;
import static interop.Run.to;

import com.azure.core.amqp.models.AmqpAddress;
import com.azure.core.amqp.models.AmqpAnnotatedMessage;
import com.azure.core.amqp.models.AmqpMessageBody;
import com.azure.core.amqp.models.AmqpMessageHeader;
import com.azure.core.amqp.models.AmqpMessageId;
import com.azure.core.amqp.models.AmqpMessageProperties;
import com.azure.core.util.BinaryData;
import com.azure.messaging.eventhubs.EventData;
import com.azure.messaging.eventhubs.EventHubProducerClient;
import com.azure.messaging.eventhubs.implementation.MessageUtils;
import java.lang.reflect.Constructor;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.qpid.proton.Proton;
import org.apache.qpid.proton.message.Message;

/** Every section of a message, and bodies of other kinds. */
final class BodyCases {
    static final Map<String, Main.Case> ALL = Map.of("annotated", BodyCases::annotated,
        "body-value", run -> noSuchBody(AmqpMessageBody.fromValue("text")),
        "body-sequence", run -> noSuchBody(AmqpMessageBody.fromSequence(List.of(1, "two"))));
    private static final OffsetDateTime WHEN = OffsetDateTime.parse("2024-01-02T03:04:05.678Z");

    private BodyCases() {
    }

    private static EventData message() {
        EventData event = new EventData("one");
        AmqpAnnotatedMessage raw = event.getRawAmqpMessage();
        raw.getHeader().setDurable(true).setPriority((short) 7).setTimeToLive(Duration.ofHours(1));
        raw.getDeliveryAnnotations().put("x-opt-delivery", "d");
        raw.getMessageAnnotations().put("x-opt-mine", "m");
        raw.getMessageAnnotations().put("x-opt-number", 3L);
        raw.getApplicationProperties().put("a", "b");
        raw.getProperties().setAbsoluteExpiryTime(WHEN).setContentEncoding("gzip").setContentType("text/plain")
            .setCorrelationId(new AmqpMessageId("c")).setCreationTime(WHEN).setGroupId("g").setGroupSequence(3L)
            .setMessageId(new AmqpMessageId("i")).setReplyTo(new AmqpAddress("r")).setReplyToGroupId("rg")
            .setSubject("s").setTo(new AmqpAddress("t")).setUserId(new byte[] {'u'});
        return event;
    }

    private static List<Object> plain(AmqpMessageProperties p) {
        return Arrays.asList(p.getAbsoluteExpiryTime(), p.getContentEncoding(), p.getContentType(), p.getCorrelationId(),
            p.getCreationTime(), p.getGroupId(), p.getGroupSequence(), p.getMessageId(), p.getReplyTo(), p.getReplyToGroupId(),
            p.getSubject(), p.getTo(), new String(p.getUserId()));
    }

    private static void compare(AmqpAnnotatedMessage got, AmqpAnnotatedMessage sent) {
        same(new String(got.getBody().getFirstData()), "one", "body");
        same(plain(got.getProperties()), plain(sent.getProperties()), "properties");
        same(got.getApplicationProperties(), sent.getApplicationProperties(), "application properties");
        same(got.getDeliveryAnnotations(), sent.getDeliveryAnnotations(), "delivery annotations");
        Map<String, Object> own = got.getMessageAnnotations().entrySet().stream()
            .filter(entry -> Set.of("x-opt-mine", "x-opt-number").contains(entry.getKey()))
            .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue));
        same(own, sent.getMessageAnnotations(), "message annotations");
        AmqpMessageHeader header = got.getHeader();
        check(header.isDurable() == null || header.isDurable() && header.getPriority() == 7
            && header.getTimeToLive().equals(Duration.ofHours(1)), "header: %s %s", header.isDurable(), header.getPriority());
    }

    /** First all but the footer, alone and in a batch of two; then the footer. */
    private static void annotated(Run run) throws Exception {
        EventHubProducerClient producer = run.producer();
        AmqpAnnotatedMessage sent = message().getRawAmqpMessage();
        producer.send(List.of(message()), to("0"));
        producer.send(List.of(message(), message()), to("0"));
        for (EventData got : run.read(run.consumer(), "0", 3)) {
            compare(got.getRawAmqpMessage(), sent);
        }
        run.note("a body of one part, EventData takes no more");
        EventData last = message();
        last.getRawAmqpMessage().getFooter().put("x-opt-foot", "f");
        producer.send(List.of(last), to("1"));
        try {
            AmqpAnnotatedMessage got = run.read(run.consumer(), "1", 1).get(0).getRawAmqpMessage();
            compare(got, sent);
            same(got.getFooter(), Map.of("x-opt-foot", "f"), "footer");
        } catch (AssertionError error) {
            throw new Check.OwnFault("all but the footer came back; " + footerWithoutServer(last, error));
        }
    }

    /** The client's own way out and in again, from memory to memory: there the footer fails in the same way. */
    private static String footerWithoutServer(EventData event, AssertionError seen) {
        byte[] bytes = new byte[1000];
        int size = MessageUtils.toProtonJMessage(event.getRawAmqpMessage()).encode(bytes, 0, bytes.length);
        Message again = Proton.message();
        again.decode(bytes, 0, size);
        try {
            MessageUtils.toAmqpAnnotatedMessage(again);
        } catch (ClassCastException why) {
            check(seen.getMessage().contains(why.getMessage()), "it is not that: %s", seen.getMessage());
            return "MessageUtils writes the footer's names as strings and reads symbols, as it does without a server: " + why;
        }
        throw seen;
    }

    /** EventData is made of bytes, and what makes messages of events knows no other body. */
    private static void noSuchBody(AmqpMessageBody body) {
        Set<List<?>> known = Set.of(List.of(), List.of(byte[].class), List.of(String.class), List.of(ByteBuffer.class),
            List.of(BinaryData.class));
        for (Constructor<?> each : EventData.class.getConstructors()) {
            check(known.contains(List.of(each.getParameterTypes())), "the client may have it now: %s", each);
        }
        try {
            MessageUtils.toProtonJMessage(new AmqpAnnotatedMessage(body));
        } catch (UnsupportedOperationException why) {
            throw new Check.Absent("EventData is made of bytes only, and MessageUtils.toProtonJMessage says: "
                + why.getMessage());
        }
        check(false, "the client may have it now");
    }
}
