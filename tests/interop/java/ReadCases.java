package interop;

import static interop.Check.check;
import static interop.Check.same;
import static interop.Check.since;
import static interop.Check.until;
import static interop.Run.bodies;
import static interop.Run.sendNumbers;
import static interop.Run.texts;

import com.azure.messaging.eventhubs.EventData;
import com.azure.messaging.eventhubs.EventHubConsumerAsyncClient;
import com.azure.messaging.eventhubs.EventHubProducerClient;
import com.azure.messaging.eventhubs.models.EventPosition;
import com.azure.messaging.eventhubs.models.LastEnqueuedEventProperties;
import com.azure.messaging.eventhubs.models.PartitionEvent;
import com.azure.messaging.eventhubs.models.ReceiveOptions;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;

/** Reading: much, and from every position. */
final class ReadCases {
    static final Map<String, Main.Case> ALL = Map.of("read-many", ReadCases::many, "start-earliest", ReadCases::earliest,
        "start-latest", ReadCases::latest, "start-offset", ReadCases::offset, "start-sequence", ReadCases::sequence,
        "start-time", ReadCases::time, "metrics", ReadCases::metrics, "rate", ReadCases::rate);
    private static final int PREFETCH = 500; // the asynchronous client's default

    private ReadCases() {
    }

    private static void many(Run run) throws Exception {
        int count = 10 * PREFETCH + 50;
        EventHubProducerClient producer = run.producer();
        for (int first = 0; first < count; first += 1010) {
            sendNumbers(producer, "0", first, first + 1009);
        }
        long start = System.nanoTime();
        List<EventData> got = run.reader(run.consumer(), "0", EventPosition.earliest()).take(count);
        same(bodies(got), texts(0, count - 1), "events");
        same(got.get(count - 1).getSequenceNumber(), count - 1L, "last number");
        check(since(start) < 60, "it took %.1f s", since(start));
        // The same with the synchronous client, where the call asks for so many.
        List<EventData> pulled = Run.readSynchronously(run.keep(run.builder().buildConsumerClient()), "0", count);
        same(bodies(pulled), texts(0, count - 1), "events of the synchronous client");
        run.note("%d events", count);
    }

    /** Sends 20 events to partition 0, the last ten later than the others, and gives them as received. */
    private static List<EventData> twenty(Run run, EventHubConsumerAsyncClient consumer) throws InterruptedException {
        EventHubProducerClient producer = run.producer();
        sendNumbers(producer, "0", 0, 9);
        Instant first = run.read(consumer, "0", 10).get(9).getEnqueuedTime();
        until(10, "a later time", () -> Instant.now().isAfter(first.plusMillis(5)));
        sendNumbers(producer, "0", 10, 19);
        return run.read(consumer, "0", 20);
    }

    /** What comes from a position: all from the first on, and no more. */
    private static void begins(EventHubConsumerAsyncClient consumer, EventPosition from, int first) throws InterruptedException {
        try (Reader reader = new Reader(consumer.receiveFromPartition("0", from))) {
            same(bodies(reader.take(20 - first)), texts(first, 19), "from " + from);
            reader.nothing();
        }
    }

    private static void earliest(Run run) throws Exception {
        EventHubConsumerAsyncClient consumer = run.consumer();
        twenty(run, consumer);
        begins(consumer, EventPosition.earliest(), 0);
    }

    /** The client does not say when it has attached, so events are sent until one comes. */
    private static void latest(Run run) throws Exception {
        EventHubConsumerAsyncClient consumer = run.consumer();
        twenty(run, consumer);
        EventHubProducerClient producer = run.producer();
        Reader late = run.reader(consumer, "0", EventPosition.latest());
        int next = 20;
        for (long start = System.nanoTime(); !late.hasSome(); next++) {
            check(since(start) < 20, "no event came");
            sendNumbers(producer, "0", next, next);
            Thread.sleep(50);
        }
        sendNumbers(producer, "0", next, next);
        int first = Integer.parseInt(late.take(1).get(0).getBodyAsString());
        check(first >= 20, "the first event is %d", first);
        same(bodies(late.take(next - first)), texts(first + 1, next), "what came after the reader");
        run.note("the first was number %d", first);
    }

    private static void offset(Run run) throws Exception {
        EventHubConsumerAsyncClient consumer = run.consumer();
        List<EventData> all = twenty(run, consumer);
        for (int at : new int[] {0, 7, 18}) {
            begins(consumer, EventPosition.fromOffsetString(all.get(at).getOffsetString()), at + 1);
        }
        run.note("behind it only: the client has no inclusive offset");
    }

    private static void sequence(Run run) throws Exception {
        EventHubConsumerAsyncClient consumer = run.consumer();
        twenty(run, consumer);
        for (int at : new int[] {0, 7, 18}) {
            begins(consumer, EventPosition.fromSequenceNumber(at), at + 1);
            begins(consumer, EventPosition.fromSequenceNumber(at, true), at);
        }
    }

    private static void time(Run run) throws Exception {
        EventHubConsumerAsyncClient consumer = run.consumer();
        List<EventData> all = twenty(run, consumer);
        Instant early = all.get(9).getEnqueuedTime();
        Instant late = all.get(10).getEnqueuedTime();
        begins(consumer, EventPosition.fromEnqueuedTime(late.minusMillis(1)), 10);
        begins(consumer, EventPosition.fromEnqueuedTime(early), 10);
        begins(consumer, EventPosition.fromEnqueuedTime(early.minus(Duration.ofHours(1))), 0);
    }

    private static void metrics(Run run) throws Exception {
        sendNumbers(run.producer(), "0", 0, 9);
        EventHubConsumerAsyncClient consumer = run.consumer();
        EventData last = run.read(consumer, "0", 10).get(9);
        ReceiveOptions track = new ReceiveOptions().setTrackLastEnqueuedEventProperties(true);
        for (PartitionEvent event : run.reader(consumer, "0", EventPosition.earliest(), track).takeWhole(10)) {
            LastEnqueuedEventProperties told = event.getLastEnqueuedEventProperties();
            same(told.getSequenceNumber(), last.getSequenceNumber(), "last number");
            same(told.getOffsetString(), last.getOffsetString(), "last offset");
            same(told.getEnqueuedTime(), last.getEnqueuedTime(), "last time");
            Instant when = told.getRetrievalTime();
            check(Duration.between(when, Instant.now()).abs().toHours() < 1, "retrieved %s", when);
        }
        PartitionEvent without = run.reader(consumer, "0", EventPosition.earliest()).takeWhole(1).get(0);
        same(without.getLastEnqueuedEventProperties(), null, "without the option");
    }

    /** Reads 200,000 events that were written before. */
    private static void rate(Run run) {
        long start = System.nanoTime();
        long got = run.consumer().receiveFromPartition("0", EventPosition.earliest()).take(200_000).count()
            .block(Duration.ofMinutes(5));
        run.seconds = since(start);
        same(got, 200_000L, "events");
        run.note("%.0f events/s", got / run.seconds);
    }
}
