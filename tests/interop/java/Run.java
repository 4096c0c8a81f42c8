package interop;

import static interop.Check.check;
import static interop.Check.since;
import static interop.Check.textOf;

import com.azure.messaging.eventhubs.EventData;
import com.azure.messaging.eventhubs.EventHubClientBuilder;
import com.azure.messaging.eventhubs.EventHubConsumerAsyncClient;
import com.azure.messaging.eventhubs.EventHubConsumerClient;
import com.azure.messaging.eventhubs.EventHubProducerClient;
import com.azure.messaging.eventhubs.models.EventPosition;
import com.azure.messaging.eventhubs.models.ReceiveOptions;
import com.azure.messaging.eventhubs.models.SendOptions;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.regex.Pattern;
import java.util.stream.IntStream;

/** One run of a case. Its hub has its name, its clients are closed at its end. */
final class Run implements AutoCloseable {
    static final List<String> IDS = List.of("0", "1", "2", "3");

    final String hub;
    double seconds; // how long it took until the program was told, where that is asked
    final List<String> notes = new ArrayList<>(); // what its line says
    private final Deque<AutoCloseable> open = new ArrayDeque<>();

    Run(String hub) {
        this.hub = hub;
    }

    static String stand(String name) {
        return System.getenv("STAND_" + name);
    }

    void note(String format, Object... args) {
        notes.add(String.format(format, args));
    }

    <T extends AutoCloseable> T keep(T thing) {
        open.push(thing);
        return thing;
    }

    @Override
    public void close() throws Exception {
        while (!open.isEmpty()) {
            open.pop().close();
        }
    }

    EventHubClientBuilder builder(String connection) {
        return new EventHubClientBuilder().connectionString(connection, hub)
            .consumerGroup(EventHubClientBuilder.DEFAULT_CONSUMER_GROUP_NAME);
    }

    EventHubClientBuilder builder() {
        return builder(stand("STRING"));
    }

    EventHubProducerClient producer() {
        return keep(builder().buildProducerClient());
    }

    EventHubConsumerAsyncClient consumer() {
        return keep(builder().buildAsyncConsumerClient());
    }

    Reader reader(EventHubConsumerAsyncClient consumer, String id, EventPosition from, ReceiveOptions options) {
        return keep(new Reader(consumer.receiveFromPartition(id, from, options)));
    }

    Reader reader(EventHubConsumerAsyncClient consumer, String id, EventPosition from) {
        return reader(consumer, id, from, new ReceiveOptions());
    }

    /** The first events of a partition. */
    List<EventData> read(EventHubConsumerAsyncClient consumer, String id, int count) throws InterruptedException {
        try (Reader reader = new Reader(consumer.receiveFromPartition(id, EventPosition.earliest()))) {
            return reader.take(count);
        }
    }

    /** How many events a partition has ever got. */
    static int countOf(EventHubConsumerAsyncClient consumer, String id) {
        return (int) (consumer.getPartitionProperties(id).block().getLastEnqueuedSequenceNumber() + 1);
    }

    static List<EventData> numbers(int first, int last) {
        return IntStream.rangeClosed(first, last).mapToObj(n -> new EventData("" + n)).toList();
    }

    static List<String> texts(int first, int last) {
        return IntStream.rangeClosed(first, last).mapToObj(n -> "" + n).toList();
    }

    static List<String> bodies(List<EventData> events) {
        return events.stream().map(EventData::getBodyAsString).toList();
    }

    static SendOptions to(String id) {
        return new SendOptions().setPartitionId(id);
    }

    static void sendNumbers(EventHubProducerClient producer, String id, int first, int last) {
        producer.send(numbers(first, last), to(id));
    }

    /** Events of the synchronous client, as long as there are some within a minute. */
    static List<EventData> readSynchronously(EventHubConsumerClient consumer, String id, int count) {
        List<EventData> got = new ArrayList<>();
        consumer.receiveFromPartition(id, count, EventPosition.earliest(), java.time.Duration.ofSeconds(60))
            .forEach(event -> got.add(event.getData()));
        return got;
    }

    /** Waits for a call that must fail: within 10 s, and with an error that names the fault. */
    void told(String what, String fault, Callable<?> call) {
        long start = System.nanoTime();
        try {
            Object got = call.call();
            check(false, "%s: no error, but %.100s", what, got);
        } catch (Exception error) {
            double passed = since(start);
            String text = textOf(error);
            check(Pattern.compile("(?i)" + fault).matcher(text).find(), "%s: the error after %.1f s is %s", what, passed, text);
            check(passed < 10, "%s: told after %.1f s: %s", what, passed, text);
            seconds = Math.max(seconds, passed);
        }
    }
}
