package interop;

import static interop.Check.check;
import static interop.Check.same;
import static interop.Check.since;
import static interop.Check.until;
import static interop.Run.bodies;
import static interop.Run.countOf;
import static interop.Run.sendNumbers;
import static interop.Run.stand;
import static interop.Run.texts;

import com.azure.messaging.eventhubs.EventHubConsumerAsyncClient;
import com.azure.messaging.eventhubs.EventHubProducerClient;
import com.azure.messaging.eventhubs.models.EventPosition;
import com.azure.messaging.eventhubs.models.PartitionEvent;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.util.retry.Retry;

/** What takes long. */
final class LifeCases {
    static final Map<String, Main.Case> ALL = Map.of("quiet", LifeCases::quiet, "crash", LifeCases::crash,
        "processor", Processor::run);
    private static final int KILLS = 3;

    private LifeCases() {
    }

    private static void quiet(Run run) throws Exception {
        EventHubProducerClient producer = run.producer();
        EventHubConsumerAsyncClient consumer = run.consumer();
        Reader open = run.reader(consumer, "0", EventPosition.earliest());
        sendNumbers(producer, "0", 0, 0);
        same(bodies(open.take(1)), List.of("0"), "the first event");
        Thread.sleep(90_000); // the case itself
        long start = System.nanoTime();
        sendNumbers(producer, "0", 1, 1);
        double passed = since(start);
        check(passed < 5, "the second send took %.1f s", passed);
        same(bodies(open.take(1)), List.of("1"), "the second event");
        open.nothing();
        same(bodies(run.read(consumer, "0", 2)), List.of("0", "1"), "events");
        same(countOf(consumer, "0"), 2, "events");
        run.note("the send after it took %.0f ms", passed * 1000);
    }

    private static Void restart() throws Exception {
        for (int n = 0; n < KILLS; n++) {
            Thread.sleep(3500);
            int code = new ProcessBuilder("sh", "-c", stand("CRASH_RESTART")).inheritIO().start().waitFor();
            check(code == 0, "the restart gave %d", code);
        }
        return null;
    }

    /** Sends numbers for a while; the program repeats what the client has given up. */
    private static int publish(EventHubProducerClient producer, double seconds, AtomicInteger repeats) {
        int n = 0;
        for (long start = System.nanoTime(); since(start) < seconds; n++) {
            for (boolean sent = false; !sent; ) {
                try {
                    sendNumbers(producer, "0", n, n);
                    sent = true;
                } catch (RuntimeException error) {
                    repeats.incrementAndGet();
                    System.err.println("crash: given up: " + Check.textOf(error));
                }
            }
        }
        return n;
    }

    /** Reads on whatever happens: the client ends a stream whose link is lost, the program asks for the next. */
    private static Disposable follow(EventHubConsumerAsyncClient consumer, Set<String> seen, AtomicInteger streams) {
        AtomicReference<EventPosition> at = new AtomicReference<>(EventPosition.earliest());
        Duration pause = Duration.ofMillis(200);
        Flux<PartitionEvent> stream = Flux.defer(() -> {
            streams.incrementAndGet();
            return consumer.receiveFromPartition("0", at.get());
        });
        return stream.doOnNext(event -> at.set(EventPosition.fromOffsetString(event.getData().getOffsetString())))
            .repeatWhen(ends -> ends.delayElements(pause)).retryWhen(Retry.fixedDelay(Long.MAX_VALUE, pause))
            .subscribe(event -> seen.add(event.getData().getBodyAsString()));
    }

    private static Set<String> missing(Set<String> seen, List<String> acknowledged) {
        Set<String> left = new HashSet<>(acknowledged);
        left.removeAll(seen);
        return left;
    }

    private static void crash(Run run) throws Exception {
        EventHubConsumerAsyncClient consumer = run.keep(run.builder(stand("CRASH_STRING")).buildAsyncConsumerClient());
        Set<String> along = ConcurrentHashMap.newKeySet();
        AtomicInteger streams = new AtomicInteger();
        AtomicInteger repeats = new AtomicInteger();
        Disposable following = follow(consumer, along, streams);
        run.keep(following::dispose);
        FutureTask<Void> kills = new FutureTask<>(LifeCases::restart);
        new Thread(kills).start();
        EventHubProducerClient producer = run.keep(run.builder(stand("CRASH_STRING")).buildProducerClient());
        List<String> acknowledged = texts(0, publish(producer, 15, repeats) - 1);
        kills.get();
        EventHubConsumerAsyncClient fresh = run.keep(run.builder(stand("CRASH_STRING")).buildAsyncConsumerClient());
        Set<String> there = new HashSet<>(bodies(run.read(fresh, "0", countOf(fresh, "0"))));
        same(missing(there, acknowledged), Set.of(), "acknowledged and lost");
        until(60, "the reader that was there all the time", () -> missing(along, acknowledged).isEmpty());
        run.note("%d kills, %d acknowledged, %d sends repeated by the program, %d streams", KILLS, acknowledged.size(),
            repeats.get(), streams.get());
    }
}
