package interop;

import static interop.Check.check;
import static interop.Run.sendNumbers;

import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.core.amqp.exception.AmqpException;
import com.azure.messaging.eventhubs.EventHubConsumerAsyncClient;
import com.azure.messaging.eventhubs.EventHubProducerClient;
import com.azure.messaging.eventhubs.models.EventPosition;
import com.azure.messaging.eventhubs.models.ReceiveOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Readers beside one another. */
final class EpochCases {
    static final Map<String, Main.Case> ALL = Map.of("epoch-higher", EpochCases::higher, "epoch-lower", EpochCases::lower,
        "sixth-reader", EpochCases::sixth);

    private EpochCases() {
    }

    /** A reader of an epoch, or of none, by a client of its own. */
    private static Reader owner(Run run, Long epoch) {
        return run.reader(run.consumer(), "0", EventPosition.earliest(), new ReceiveOptions().setOwnerLevel(epoch));
    }

    /** Lets the stream's error out when it has this condition. */
    private static Object fails(Reader reader, AmqpErrorCondition condition) throws Exception {
        try {
            return reader.fails();
        } catch (AmqpException error) {
            check(error.getErrorCondition() == condition, "%s instead of %s: %s", error.getErrorCondition(), condition, error);
            throw error;
        }
    }

    private static void higher(Run run) throws Exception {
        EventHubProducerClient producer = run.producer();
        sendNumbers(producer, "0", 0, 0);
        Reader first = owner(run, 1L);
        first.take(1);
        Reader second = owner(run, 2L);
        run.told("the reader of epoch 1", "higher epoch of '2'", () -> fails(first, AmqpErrorCondition.LINK_STOLEN));
        second.take(1);
        sendNumbers(producer, "0", 1, 1);
        second.take(1);
    }

    private static void lower(Run run) throws Exception {
        EventHubProducerClient producer = run.producer();
        sendNumbers(producer, "0", 0, 0);
        Reader high = owner(run, 2L);
        high.take(1);
        run.told("epoch 1", "epoch", () -> owner(run, 1L).fails());
        run.told("no epoch", "epoch", () -> owner(run, null).fails());
        sendNumbers(producer, "0", 1, 1);
        high.take(1);
    }

    private static void sixth(Run run) throws Exception {
        EventHubProducerClient producer = run.producer();
        sendNumbers(producer, "0", 0, 0);
        EventHubConsumerAsyncClient one = run.consumer();
        List<Reader> five = new ArrayList<>();
        for (int n = 0; n < 5; n++) {
            five.add(run.reader(one, "0", EventPosition.earliest()));
            five.get(n).take(1);
        }
        run.told("the sixth reader", "quota|limit|maximum", () -> fails(run.reader(one, "0", EventPosition.earliest()),
            AmqpErrorCondition.RESOURCE_LIMIT_EXCEEDED));
        sendNumbers(producer, "0", 1, 1);
        for (Reader each : five) {
            each.take(1);
        }
    }
}
