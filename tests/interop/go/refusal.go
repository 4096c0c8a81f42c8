package main

import (
	"regexp"

	eh "github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

var refusalCases = map[string]func(*run) error{
	"listen-only": listenOnly, "send-only": sendOnly, "wrong-key": wrongKey, "missing-hub": missingHub,
	"missing-group": missingGroup, "missing-partition": missingPartition,
}

// trySend and tryRead give what becomes of a client with everything at its default.
func (r *run) trySend(connection, id string) error {
	return send(within(60), r.producerOf(connection, nil), partition(id), text("tried"))
}

func (r *run) tryRead(connection, group, id string) error {
	from := eh.PartitionClientOptions{StartPosition: earliest}
	return one(take(r.consumerOf(connection, group, nil).NewPartitionClient(id, &from)))
}

func listenOnly(r *run) error {
	must(r.trySend(stand("STRING"), "0"), "sending with the full key")
	must(r.tryRead(stand("LISTEN"), anyGroup, "0"), "reading")
	r.told("sending", "(?i)unauthorized", func() error { return r.trySend(stand("LISTEN"), "0") })
	return nil
}

func sendOnly(r *run) error {
	must(r.trySend(stand("SEND"), "0"), "sending")
	r.told("reading", "(?i)unauthorized", func() error { return r.tryRead(stand("SEND"), anyGroup, "0") })
	return nil
}

func wrongKey(r *run) error {
	wrong := regexp.MustCompile("SharedAccessKey=[^;]*").ReplaceAllString(stand("STRING"), "SharedAccessKey=wrong")
	r.told("sending", "(?i)unauthorized|InvalidSignature", func() error { return r.trySend(wrong, "0") })
	r.told("reading", "(?i)unauthorized|InvalidSignature", func() error { return r.tryRead(wrong, anyGroup, "0") })
	r.told("properties", "(?i)unauthorized|InvalidSignature", func() error {
		_, err := r.producerOf(wrong, nil).GetEventHubProperties(within(60), nil)
		return err
	})
	return nil
}

func missingHub(r *run) error {
	none := &run{hub: "no-such-hub"}
	r.told("sending", "not-found|could not be found", func() error { return none.trySend(stand("STRING"), "0") })
	r.told("reading", "not-found|could not be found", func() error { return none.tryRead(stand("STRING"), anyGroup, "0") })
	r.told("properties", "not-found|could not be found", func() error {
		_, err := none.producerOf(stand("STRING"), nil).GetEventHubProperties(within(60), nil)
		return err
	})
	return nil
}

func missingGroup(r *run) error {
	r.told("reading", "not-found|could not be found", func() error {
		return r.tryRead(stand("STRING"), "no-such-group", "0")
	})
	return nil
}

func missingPartition(r *run) error {
	r.told("sending", "out-of-range|out of range", func() error { return r.trySend(stand("STRING"), "99") })
	r.told("reading", "out-of-range|out of range", func() error { return r.tryRead(stand("STRING"), anyGroup, "99") })
	return nil
}
