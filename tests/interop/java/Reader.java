package interop;

import static interop.Check.check;
import static interop.Check.textOf;

import com.azure.messaging.eventhubs.EventData;
import com.azure.messaging.eventhubs.models.PartitionEvent;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;

/** A stream of the asynchronous client, to take events from. */
final class Reader implements AutoCloseable {
    private static final int LIMIT_S = 20;

    private final Deque<PartitionEvent> waiting = new ArrayDeque<>();
    private final Disposable subscription;
    private Throwable end;

    Reader(Flux<PartitionEvent> stream) {
        subscription = stream.subscribe(this::add, this::fail, () -> fail(new IllegalStateException("the stream is complete")));
    }

    private synchronized void add(PartitionEvent event) {
        waiting.add(event);
        notifyAll();
    }

    private synchronized void fail(Throwable error) {
        end = error;
        notifyAll();
    }

    /** Exactly so many events, with what the client says about each. */
    synchronized List<PartitionEvent> takeWhole(int count) throws InterruptedException {
        long limit = System.nanoTime() + LIMIT_S * 1_000_000_000L;
        List<PartitionEvent> got = new ArrayList<>();
        while (got.size() < count) {
            long left = (limit - System.nanoTime()) / 1_000_000;
            if (!waiting.isEmpty()) {
                got.add(waiting.remove());
                continue;
            }
            check(end == null, "%d of %d events came, then %s", got.size(), count, end == null ? "" : textOf(end));
            check(left > 0, "%d of %d events came within %d s", got.size(), count, LIMIT_S);
            wait(left);
        }
        return got;
    }

    List<EventData> take(int count) throws InterruptedException {
        return takeWhole(count).stream().map(PartitionEvent::getData).toList();
    }

    /** Every event that is there now. */
    synchronized List<PartitionEvent> rest() {
        List<PartitionEvent> all = List.copyOf(waiting);
        waiting.clear();
        return all;
    }

    synchronized boolean hasSome() {
        return !waiting.isEmpty();
    }

    /** No event comes for a while. */
    synchronized void nothing() throws InterruptedException {
        long limit = System.nanoTime() + 300_000_000L;
        for (long left = 300; left > 0 && waiting.isEmpty() && end == null; left = (limit - System.nanoTime()) / 1_000_000) {
            wait(left);
        }
        check(waiting.isEmpty() && end == null, "%d events more, end %s", waiting.size(), end);
    }

    /** Throws the error that the stream ends with; returns when there is none for a long time, or when events came. */
    synchronized Object fails() throws Exception {
        long limit = System.nanoTime() + 2 * LIMIT_S * 1_000_000_000L;
        for (long left = 1; left > 0 && end == null && waiting.isEmpty(); left = (limit - System.nanoTime()) / 1_000_000) {
            wait(left);
        }
        if (end instanceof Exception error) {
            throw error;
        }
        return waiting.size() + " events";
    }

    @Override
    public void close() {
        subscription.dispose();
    }
}
