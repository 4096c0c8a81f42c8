package interop;

import static interop.Check.check;
import static interop.Check.lacks;
import static interop.Check.same;
import static interop.Run.IDS;
import static interop.Run.bodies;
import static interop.Run.countOf;
import static interop.Run.numbers;
import static interop.Run.sendNumbers;
import static interop.Run.stand;
import static interop.Run.texts;
import static interop.Run.to;

import com.azure.messaging.eventhubs.EventData;
import com.azure.messaging.eventhubs.EventDataBatch;
import com.azure.messaging.eventhubs.EventHubBufferedProducerClient;
import com.azure.messaging.eventhubs.EventHubBufferedProducerClientBuilder;
import com.azure.messaging.eventhubs.EventHubClientBuilder;
import com.azure.messaging.eventhubs.EventHubConsumerAsyncClient;
import com.azure.messaging.eventhubs.EventHubProducerAsyncClient;
import com.azure.messaging.eventhubs.EventHubProducerClient;
import com.azure.messaging.eventhubs.EventHubProperties;
import com.azure.messaging.eventhubs.PartitionProperties;
import com.azure.messaging.eventhubs.models.CreateBatchOptions;
import com.azure.messaging.eventhubs.models.SendOptions;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Properties, and every way to send. */
final class SendCases {
    static final Map<String, Main.Case> ALL = Map.of("properties", SendCases::properties, "send-list", SendCases::list,
        "send-batch", SendCases::batch, "send-partition", SendCases::partition, "send-key", SendCases::key,
        "send-ids", SendCases::ids, "size-below", SendCases::sizeBelow, "size-above", SendCases::sizeAbove,
        "buffered", SendCases::buffered, "idempotent", SendCases::idempotent);

    private SendCases() {
    }

    private static void recent(Instant time, String what) {
        check(Duration.between(time, Instant.now()).abs().toHours() < 1, "%s %s", what, time);
    }

    private static void properties(Run run) throws Exception {
        EventHubProducerClient producer = run.producer();
        EventHubConsumerAsyncClient consumer = run.consumer();
        EventHubProperties hub = producer.getEventHubProperties();
        same(List.of(hub.getName(), hub.getPartitionIds().stream().toList()), List.of(run.hub, IDS), "hub");
        recent(hub.getCreatedAt(), "created");
        same(producer.getPartitionIds().stream().toList(), IDS, "partitions");
        same(consumer.getEventHubProperties().block().getCreatedAt(), hub.getCreatedAt(), "a consumer's view");
        PartitionProperties empty = consumer.getPartitionProperties("1").block();
        same(List.of(empty.isEmpty(), empty.getLastEnqueuedSequenceNumber()), List.of(true, -1L), "an empty partition");
        sendNumbers(producer, "1", 0, 2);
        PartitionProperties full = producer.getPartitionProperties("1");
        EventData last = run.read(consumer, "1", 3).get(2);
        same(List.of(full.getEventHubName(), full.getId(), full.isEmpty()), List.of(run.hub, "1", false), "names");
        same(List.of(full.getBeginningSequenceNumber(), full.getLastEnqueuedSequenceNumber()), List.of(0L, 2L), "numbers");
        same(full.getLastEnqueuedOffset(), last.getOffsetString(), "last offset");
        same(full.getLastEnqueuedTime(), last.getEnqueuedTime(), "last time");
    }

    private static List<EventData> marked(int first, int last) {
        List<EventData> events = numbers(first, last);
        events.forEach(event -> event.getProperties().put("n", event.getBodyAsString()));
        return events;
    }

    private static void list(Run run) throws Exception {
        EventHubConsumerAsyncClient consumer = run.consumer();
        EventHubProducerAsyncClient later = run.keep(run.builder().buildAsyncProducerClient());
        run.producer().send(marked(0, 9));
        later.send(marked(10, 19)).block();
        later.send(List.of(new EventData("20"))).block();
        List<String> got = new ArrayList<>();
        for (String id : IDS) {
            List<EventData> events = run.read(consumer, id, countOf(consumer, id));
            for (EventData event : events) {
                String body = event.getBodyAsString();
                same(event.getProperties(), body.equals("20") ? Map.of() : Map.of("n", body), "properties");
                got.add(body);
            }
        }
        for (int first : new int[] {0, 10}) { // a list is in one partition
            int at = got.indexOf("" + first);
            check(at >= 0 && at + 10 <= got.size(), "event %d is not there: %s", first, got);
            same(got.subList(at, at + 10), texts(first, first + 9), "a list");
        }
        same(got.size(), 21, "events");
    }

    /** A batch filled to the brim. */
    private static void batch(Run run) throws Exception {
        EventHubProducerClient producer = run.producer();
        EventHubConsumerAsyncClient consumer = run.consumer();
        EventDataBatch batch = producer.createBatch(new CreateBatchOptions().setPartitionId("2"));
        String rest = "x".repeat(9990);
        int count = 0;
        for (EventData next; ; count++) {
            next = new EventData(String.format("%010d%s", count, rest));
            next.getProperties().put("n", count);
            if (!batch.tryAdd(next)) {
                break;
            }
        }
        check(count >= 90 && batch.getCount() == count, "%d events fit, %d are there", count, batch.getCount());
        producer.send(batch);
        int n = 0;
        for (EventData event : run.read(consumer, "2", count)) {
            same(event.getSequenceNumber(), (long) n, "sequence number");
            same(event.getBodyAsString(), String.format("%010d%s", n, rest), "body");
            same(event.getProperties(), Map.of("n", n++), "properties");
        }
        same(countOf(consumer, "2"), count, "events");
        run.note("%d events", count);
    }

    private static void partition(Run run) throws Exception {
        EventHubProducerClient producer = run.producer();
        EventHubConsumerAsyncClient consumer = run.consumer();
        for (String id : List.of("3", "0", "2")) {
            producer.send(marked(0, 4), to(id));
            List<EventData> got = run.read(consumer, id, 5);
            same(bodies(got), texts(0, 4), "bodies");
            same(got.get(4).getProperties(), Map.of("n", "4"), "properties");
            same(got.get(0).getPartitionKey(), null, "key");
        }
        for (int n = 0; n < 8; n++) { // each somewhere
            producer.send(numbers(n, n));
        }
        int total = 0;
        for (String id : IDS) {
            total += countOf(consumer, id);
        }
        same(total, 23, "events in all");
    }

    private static void key(Run run) throws Exception {
        EventHubProducerClient producer = run.producer();
        EventHubConsumerAsyncClient consumer = run.consumer();
        for (int n = 0; n < 100; n++) {
            producer.send(numbers(n, n), new SendOptions().setPartitionKey("key-" + n % 10));
        }
        Map<String, String> where = new HashMap<>();
        Map<String, List<String>> events = new TreeMap<>();
        for (String id : IDS) {
            for (EventData event : run.read(consumer, id, countOf(consumer, id))) {
                String key = String.valueOf(event.getPartitionKey());
                String before = where.put(key, id);
                check(before == null || before.equals(id), "%s is in %s and %s", key, before, id);
                events.computeIfAbsent(key, none -> new ArrayList<>()).add(event.getBodyAsString());
            }
        }
        same(events.size(), 10, "keys");
        for (int k = 0; k < 10; k++) {
            int first = k;
            same(events.get("key-" + k), texts(0, 9).stream().map(n -> "" + (Integer.parseInt(n) * 10 + first)).toList(), "key");
        }
        run.note("10 keys on %d partitions", new TreeSet<>(where.values()).size());
    }

    private static void ids(Run run) throws Exception {
        EventData sent = new EventData("body").setMessageId("message").setCorrelationId("correlation");
        sent.setContentType("text/plain");
        Map<String, Object> properties = Map.of("text", "ä", "int", -5, "long", 1L << 60, "double", 1.5, "bool", true,
            "time", new Date(1700000000123L), "short", (short) 3, "float", 0.5f);
        sent.getProperties().putAll(properties);
        run.producer().send(List.of(sent, new EventData()), to("0"));
        List<EventData> both = run.read(run.consumer(), "0", 2);
        EventData got = both.get(0);
        same(List.of(got.getMessageId(), got.getCorrelationId(), got.getContentType()),
            List.of("message", "correlation", "text/plain"), "ids");
        same(got.getProperties(), properties, "properties");
        recent(got.getEnqueuedTime(), "enqueued");
        same(both.get(1).getBody().length, 0, "an empty event");
        run.note("no bytes: not among the types of EventData.getProperties");
    }

    private static void sizeBelow(Run run) throws Exception {
        String big = "0123456789".repeat(100_000);
        run.producer().send(List.of(new EventData(big)), to("0"));
        check(run.read(run.consumer(), "0", 1).get(0).getBodyAsString().equals(big), "it came back changed");
    }

    private static void sizeAbove(Run run) throws Exception {
        EventHubProducerClient producer = run.producer();
        EventData big = new EventData(new byte[1_100_000]);
        run.told("in a list", "exceeded maximum message size", () -> {
            producer.send(List.of(big), to("0"));
            return "sent";
        });
        run.told("in a batch", "exceeded maximum message size", () -> producer.createBatch().tryAdd(big));
        run.told("a batch of 2 MiB", "size", () -> producer.createBatch(new CreateBatchOptions().setMaximumSizeInBytes(2 << 20)));
        sendNumbers(producer, "0", 7, 7);
        same(bodies(run.read(run.consumer(), "0", 1)), List.of("7"), "afterwards");
        run.note("refused by the client");
    }

    private static void buffered(Run run) throws Exception {
        ConcurrentLinkedQueue<String> failed = new ConcurrentLinkedQueue<>();
        EventHubConsumerAsyncClient consumer = run.consumer();
        EventHubBufferedProducerClient producer = run.keep(new EventHubBufferedProducerClientBuilder()
            .connectionString(stand("STRING"), run.hub)
            .onSendBatchFailed(context -> failed.add(Check.textOf(context.getThrowable())))
            .onSendBatchSucceeded(context -> { })
            .buildClient());
        for (int n = 0; n < 500; n++) {
            producer.enqueueEvent(new EventData("" + n));
        }
        producer.enqueueEvents(numbers(500, 999));
        producer.flush();
        same(List.copyOf(failed), List.of(), "failed");
        same(producer.getBufferedEventCount(), 0, "left");
        List<String> got = new ArrayList<>();
        for (String id : IDS) {
            got.addAll(bodies(run.read(consumer, id, countOf(consumer, id))));
        }
        same(got.stream().map(Integer::parseInt).sorted().map(n -> "" + n).toList(), texts(0, 999), "events");
    }

    private static void idempotent(Run run) {
        throw lacks("idempot|producergroup|sequence", EventHubClientBuilder.class, EventHubProducerClient.class,
            EventHubBufferedProducerClientBuilder.class, SendOptions.class, CreateBatchOptions.class);
    }
}
