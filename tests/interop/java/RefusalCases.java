package interop;

import static interop.Run.numbers;
import static interop.Run.stand;
import static interop.Run.to;

import com.azure.messaging.eventhubs.EventHubClientBuilder;
import com.azure.messaging.eventhubs.models.EventPosition;
import java.util.Map;

/** What is refused, with everything at its default. */
final class RefusalCases {
    static final Map<String, Main.Case> ALL = Map.of("listen-only", RefusalCases::listenOnly, "send-only", RefusalCases::sendOnly,
        "wrong-key", RefusalCases::wrongKey, "missing-hub", RefusalCases::missingHub, "missing-group", RefusalCases::missingGroup,
        "missing-partition", RefusalCases::missingPartition);
    private static final String NOT_FOUND = "The messaging entity .* could not be found";
    private static final String NOT_ALLOWED = "unauthorized|InvalidSignature";

    private RefusalCases() {
    }

    private static Object send(Run run, EventHubClientBuilder builder, String id) {
        run.keep(builder.buildProducerClient()).send(numbers(0, 0), to(id));
        return "sent";
    }

    private static Object read(Run run, EventHubClientBuilder builder, String id) throws Exception {
        return run.reader(run.keep(builder.buildAsyncConsumerClient()), id, EventPosition.earliest()).fails();
    }

    private static Object pull(Run run, EventHubClientBuilder builder, String id) {
        return Run.readSynchronously(run.keep(builder.buildConsumerClient()), id, 1).size() + " events";
    }

    private static void mayNotRead(Run run, String fault, EventHubClientBuilder builder, String id) {
        run.told("reading", fault, () -> read(run, builder, id));
        run.told("reading synchronously", fault, () -> pull(run, builder, id));
    }

    private static void listenOnly(Run run) throws Exception {
        send(run, run.builder(), "0");
        run.read(run.keep(run.builder(stand("LISTEN")).buildAsyncConsumerClient()), "0", 1);
        run.told("sending", NOT_ALLOWED, () -> send(run, run.builder(stand("LISTEN")), "0"));
    }

    private static void sendOnly(Run run) throws Exception {
        send(run, run.builder(stand("SEND")), "0");
        run.read(run.consumer(), "0", 1);
        mayNotRead(run, NOT_ALLOWED, run.builder(stand("SEND")), "0");
    }

    private static void wrongKey(Run run) {
        EventHubClientBuilder wrong = run.builder(stand("STRING").replaceAll("SharedAccessKey=[^;]*", "SharedAccessKey=wrong"));
        run.told("sending", NOT_ALLOWED, () -> send(run, wrong, "0"));
        run.told("properties", NOT_ALLOWED, () -> run.keep(wrong.buildProducerClient()).getEventHubProperties());
        mayNotRead(run, NOT_ALLOWED, wrong, "0");
    }

    private static void missingHub(Run run) throws Exception {
        try (Run none = new Run("no-such-hub")) {
            run.told("sending", NOT_FOUND, () -> send(none, none.builder(), "0"));
            run.told("properties", NOT_FOUND, () -> none.producer().getEventHubProperties());
            mayNotRead(run, NOT_FOUND, none.builder(), "0");
        }
    }

    private static void missingGroup(Run run) {
        mayNotRead(run, NOT_FOUND, run.builder().consumerGroup("no-such-group"), "0");
    }

    private static void missingPartition(Run run) {
        String fault = "The specified partition is invalid";
        run.told("sending", fault, () -> send(run, run.builder(), "99"));
        mayNotRead(run, fault, run.builder(), "99");
    }
}
