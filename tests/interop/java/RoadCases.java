package interop;

import static interop.Check.check;
import static interop.Check.same;
import static interop.Run.IDS;
import static interop.Run.bodies;
import static interop.Run.countOf;
import static interop.Run.sendNumbers;
import static interop.Run.stand;
import static interop.Run.texts;

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.amqp.AmqpTransportType;
import com.azure.messaging.eventhubs.EventHubClientBuilder;
import com.azure.messaging.eventhubs.EventHubConsumerAsyncClient;
import com.azure.messaging.eventhubs.EventHubProducerClient;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.StreamHandler;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** The roads to the server. */
final class RoadCases {
    static final Map<String, Main.Case> ALL = Map.of("tls", RoadCases::tls, "websocket", RoadCases::webSocket,
        "emulator", run -> walk(run, run.builder()));

    private RoadCases() {
    }

    /** Asks for properties, sends and reads. */
    private static void walk(Run run, EventHubClientBuilder builder) throws Exception {
        EventHubProducerClient producer = run.keep(builder.buildProducerClient());
        EventHubConsumerAsyncClient consumer = run.keep(builder.buildAsyncConsumerClient());
        same(producer.getEventHubProperties().getPartitionIds().stream().toList(), IDS, "partitions");
        int before = countOf(consumer, "0");
        sendNumbers(producer, "0", before, before + 9);
        same(bodies(run.read(consumer, "0", before + 10)), texts(0, before + 9), "events");
        same(bodies(Run.readSynchronously(run.keep(builder.buildConsumerClient()), "0", before + 10)), texts(0, before + 9),
            "events of the synchronous client");
    }

    /** The client takes the context that is the default of the whole program when it connects. */
    private static SSLContext trusting(String certificate) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream file = Files.newInputStream(Path.of(certificate))) {
            store.setCertificateEntry("authority", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    private static String errorOf(EventHubProducerClient producer) {
        try {
            producer.getEventHubProperties();
        } catch (RuntimeException error) {
            return Check.textOf(error);
        }
        throw new AssertionError("a certificate that nobody vouches for was taken");
    }

    /** As long as nobody vouches for the certificate. The client tells only its log why, and tries again and again. */
    private static void isRefused(EventHubClientBuilder stranger) {
        Queue<String> said = new ConcurrentLinkedQueue<>();
        Handler listener = new StreamHandler() {
            @Override
            public synchronized void publish(LogRecord line) {
                said.add(line.getMessage());
            }
        };
        Logger log = Logger.getLogger("org.apache.qpid.proton.engine.impl.ssl.SimpleSslTransportWrapper");
        log.setUseParentHandlers(false);
        log.addHandler(listener);
        stranger.retryOptions(new AmqpRetryOptions().setMaxRetries(0).setTryTimeout(Duration.ofSeconds(3)));
        long until = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        try (EventHubProducerClient producer = stranger.buildProducerClient()) {
            boolean told = false;
            while (!told) { // a busy machine may not come to look at the certificate within one try
                String error = errorOf(producer);
                told = said.stream().anyMatch(line -> line.contains("unable to find valid certification path"));
                check(told || System.nanoTime() < until, "%s; the log: %s", error, said);
            }
        } finally {
            log.removeHandler(listener);
        }
    }

    /** The program's default context is one for all its threads. */
    private static synchronized void walkSafely(Run run, EventHubClientBuilder stranger, EventHubClientBuilder known)
        throws Exception {
        SSLContext usual = SSLContext.getDefault();
        isRefused(stranger);
        try {
            SSLContext.setDefault(trusting(stand("CA")));
            walk(run, known);
        } finally {
            SSLContext.setDefault(usual);
        }
    }

    private static EventHubClientBuilder safe(Run run) {
        return run.builder(stand("TLS_STRING")).customEndpointAddress("sb://localhost:" + stand("AMQPS"));
    }

    private static EventHubClientBuilder wrapped(Run run) {
        return run.builder(stand("TLS_STRING")).customEndpointAddress("sb://localhost:" + stand("HTTPS"))
            .transportType(AmqpTransportType.AMQP_WEB_SOCKETS);
    }

    private static void tls(Run run) throws Exception {
        walkSafely(run, safe(run), safe(run));
        run.note("customEndpointAddress and the default SSLContext");
    }

    private static void webSocket(Run run) throws Exception {
        walkSafely(run, wrapped(run), wrapped(run));
    }
}
