package interop;

import static interop.Check.check;
import static interop.Check.since;
import static interop.Check.until;
import static interop.Run.IDS;
import static interop.Run.sendNumbers;
import static interop.Run.stand;

import com.azure.messaging.eventhubs.EventHubProducerClient;
import com.azure.messaging.eventhubs.EventProcessorClientBuilder;
import com.azure.messaging.eventhubs.checkpointstore.blob.BlobCheckpointStore;
import com.azure.messaging.eventhubs.models.EventBatchContext;
import com.azure.messaging.eventhubs.models.EventPosition;
import com.azure.storage.blob.BlobContainerClientBuilder;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The case "processor": processes of the client's own processor, one of which is killed. */
final class Processor {
    /** One process: the partitions that it has processed events of. */
    private record Member(Process process, Set<String> parts) {
    }

    private final List<Member> members = new ArrayList<>();
    private final Map<String, Integer> bodies = new ConcurrentHashMap<>(); // how often each was processed
    private final EventHubProducerClient producer;
    private int sent;

    private Processor(EventHubProducerClient producer) {
        this.producer = producer;
    }

    private static BlobContainerClientBuilder box() {
        return new BlobContainerClientBuilder().connectionString(stand("BLOB")).containerName("java-checkpoints");
    }

    /** Is one of the processes: says each body that it has processed, and marks it. Ends with its parent. */
    static void member() throws IOException {
        Map<String, EventPosition> earliest = new HashMap<>();
        IDS.forEach(id -> earliest.put(id, EventPosition.earliest()));
        new EventProcessorClientBuilder().connectionString(stand("STRING"), "processor").consumerGroup("cg1")
            .checkpointStore(new BlobCheckpointStore(box().buildAsyncClient()))
            .loadBalancingUpdateInterval(Duration.ofSeconds(1)).partitionOwnershipExpirationInterval(Duration.ofSeconds(10))
            .initialPartitionEventPosition(earliest)
            .processEventBatch(Processor::process, 50, Duration.ofMillis(200))
            .processError(context -> System.err.println("partition " + context.getPartitionContext().getPartitionId() + ": "
                + Check.textOf(context.getThrowable())))
            .buildEventProcessorClient().start();
        while (System.in.read() != -1) {
            // Nothing is ever sent; the end is all.
        }
        Runtime.getRuntime().halt(0);
    }

    private static void process(EventBatchContext batch) {
        String id = batch.getPartitionContext().getPartitionId();
        batch.getEvents().forEach(event -> System.out.println(id + " " + event.getBodyAsString()));
        if (!batch.getEvents().isEmpty()) {
            batch.updateCheckpoint();
        }
    }

    private void add() throws IOException {
        Process process = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx128m",
            "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path"), "interop.Main",
            "processor", "member").redirectError(ProcessBuilder.Redirect.INHERIT).start();
        Member member = new Member(process, ConcurrentHashMap.newKeySet());
        members.add(member);
        Thread listener = new Thread(() -> listen(process.inputReader(), member.parts));
        listener.setDaemon(true);
        listener.start();
    }

    private void listen(BufferedReader lines, Set<String> parts) {
        lines.lines().map(line -> line.split(" ", 2)).forEach(words -> {
            parts.add(words[0]);
            bodies.merge(words[1], 1, Integer::sum);
        });
    }

    private void more(int count) {
        for (int end = sent + count; sent < end; sent += 10) {
            sendNumbers(producer, IDS.get(sent / 10 % 4), sent, sent + 9);
        }
    }

    private void killAll() {
        members.forEach(member -> member.process.destroyForcibly());
    }

    /** A few events again and again, until every process has got some, so that all have a partition. */
    private boolean allBusy() {
        more(sent < 2000 ? 40 : 0);
        try {
            Thread.sleep(200);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
        return members.stream().noneMatch(member -> member.parts.isEmpty());
    }

    private void work() throws Exception {
        for (int n = 0; n < 3; n++) {
            add();
        }
        until(60, "a partition for every process", this::allBusy);
        more(2000 - sent);
        until(60, "2,000 events", () -> bodies.size() == 2000);
        members.get(0).process.destroyForcibly().waitFor();
        more(2000);
        until(120, "4,000 events", () -> bodies.size() == 4000);
    }

    static void run(Run run) throws Exception {
        if (stand("BLOB") == null) {
            throw new Check.Skipped("there is no Azurite");
        }
        long start = System.nanoTime();
        box().buildClient().create();
        Processor all = new Processor(run.producer());
        run.keep(all::killAll);
        all.work();
        check(since(start) < 120, "it took %.0f s", since(start));
        int times = all.bodies.values().stream().mapToInt(Integer::intValue).sum();
        run.note("4,000 events, %d of them again", times - 4000);
    }
}
