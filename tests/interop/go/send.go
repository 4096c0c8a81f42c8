package main

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	eh "github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

var sendCases = map[string]func(*run) error{
	"properties": properties, "send-list": sendList, "send-batch": sendBatch, "send-partition": sendPartition,
	"send-key": sendKey, "send-ids": sendIDs, "size-below": sizeBelow, "size-above": sizeAbove,
	"buffered": buffered, "idempotent": idempotent,
}

var ids = []string{"0", "1", "2", "3"}

func number(n int) string { return fmt.Sprint(n) }

func properties(r *run) error {
	p, c := r.clients()
	hub := take(p.GetEventHubProperties(within(10), nil))
	same([]any{hub.Name, hub.PartitionIDs}, []any{"properties", ids}, "hub")
	check(time.Since(hub.CreatedOn).Abs() < time.Hour, "created %v", hub.CreatedOn)
	same(take(c.GetEventHubProperties(within(10), nil)), hub, "a consumer's view")
	empty := take(c.GetPartitionProperties(within(10), "1", nil))
	check(empty.IsEmpty && empty.LastEnqueuedSequenceNumber == -1, "an empty partition: %+v", empty)
	sendNumbers(p, "1", 0, 2)
	full := take(p.GetPartitionProperties(within(10), "1", nil))
	same([]int64{full.BeginningSequenceNumber, full.LastEnqueuedSequenceNumber}, []int64{0, 2}, "numbers")
	last := read(c, "1", 3)[2]
	same(full.LastEnqueuedOffset, last.Offset, "last offset")
	check(full.LastEnqueuedOn.Equal(*last.EnqueuedTime), "%v and %v", full.LastEnqueuedOn, last.EnqueuedTime)
	same([]any{full.PartitionID, full.EventHubName, full.IsEmpty}, []any{"1", r.hub, false}, "names")
	return nil
}

var producerTypes = []reflect.Type{reflect.TypeFor[*eh.ProducerClient](), reflect.TypeFor[eh.ProducerClientOptions]()}

func sendList(*run) error { return lacks("sendevents|sendlist|sendevent ", producerTypes[0]) }

func buffered(*run) error { return lacks("buffer|enqueue|flush", producerTypes...) }

func idempotent(*run) error { return lacks("idempot|group|epoch|ownerlevel", producerTypes...) }

// A batch filled to the brim.
func sendBatch(r *run) error {
	p, c := r.clients()
	batch := take(p.NewEventDataBatch(within(10), partition("2")))
	body := strings.Repeat("x", 9990)
	for n := 0; ; n++ {
		event := &eh.EventData{Body: fmt.Appendf(nil, "%010d%s", n, body), Properties: map[string]any{"n": int64(n)}}
		if err := batch.AddEventData(event, nil); err != nil {
			check(errors.Is(err, eh.ErrEventDataTooLarge), "%v", err)
			break
		}
	}
	count := int(batch.NumEvents())
	check(count >= 90, "%d events fit", count)
	must(p.SendEventDataBatch(within(30), batch, nil), "sending")
	for i, event := range read(c, "2", count) {
		same(event.SequenceNumber, int64(i), "sequence number")
		same(string(event.Body), fmt.Sprintf("%010d%s", i, body), "body")
		same(event.Properties, map[string]any{"n": int64(i)}, "properties")
	}
	same(countOf(c, "2"), count, "events")
	check(send(within(10), p, nil) != nil, "a batch of nothing was sent")
	r.note("%d events", count)
	return nil
}

func sendPartition(r *run) error {
	p, c := r.clients()
	for _, id := range []string{"3", "0", "2"} {
		sendNumbers(p, id, 0, 4)
		got := read(c, id, 5)
		same(bodies(got), []string{"0", "1", "2", "3", "4"}, "bodies")
		check(got[0].PartitionKey == nil, "a key where none was given")
	}
	for n := range 8 { // each somewhere
		must(send(within(10), p, nil, text(number(n))), "to any partition")
	}
	total := 0
	for _, id := range ids {
		total += countOf(c, id)
	}
	same(total, 23, "events in all")
	return nil
}

func sendKey(r *run) error {
	p, c := r.clients()
	for n := range 100 {
		key := "key-" + number(n%10)
		must(send(within(10), p, &eh.EventDataBatchOptions{PartitionKey: &key}, text(number(n))), key)
	}
	where, next, used := map[string]string{}, map[string]int{}, map[string]bool{}
	for _, id := range ids {
		for _, event := range read(c, id, countOf(c, id)) {
			check(event.PartitionKey != nil, "an event came without its key")
			key := *event.PartitionKey
			before, known := where[key]
			check(!known || before == id, "%s is in %s and %s", key, before, id)
			where[key], used[id] = id, true
			same(string(event.Body), number(next[key]*10+int(key[4]-'0')), "order of "+key)
			next[key]++
		}
	}
	same(len(where), 10, "keys")
	for key, count := range next {
		same(count, 10, key)
	}
	r.note("10 keys on %d partitions", len(used))
	return nil
}

func sendIDs(r *run) error {
	p, c := r.clients()
	sent := &eh.EventData{
		Body: []byte("body"), ContentType: ptr("text/plain"), CorrelationID: "correlation", MessageID: ptr("message"),
		Properties: map[string]any{"text": "a", "int": int32(-5), "long": int64(1) << 60, "ulong": uint64(1) << 63,
			"double": 1.5, "bool": true, "time": time.UnixMilli(1700000000123), "bytes": []byte{0, 255}},
	}
	must(send(within(10), p, partition("0"), sent, &eh.EventData{}), "sending")
	got := read(c, "0", 2)
	same(got[0].EventData, *sent, "the event")
	check(time.Since(*got[0].EnqueuedTime).Abs() < time.Hour, "enqueued %v", got[0].EnqueuedTime)
	same(len(got[1].Body), 0, "an empty event")
	return nil
}

func sizeBelow(r *run) error {
	p, c := r.clients()
	big := strings.Repeat("0123456789", 100000)
	must(send(within(30), p, partition("0"), text(big)), "sending")
	check(string(read(c, "0", 1)[0].Body) == big, "it came back changed")
	return nil
}

func sizeAbove(r *run) error {
	p, c := r.clients()
	r.told("1,100,000 bytes", "too large", func() error {
		return send(within(30), p, partition("0"), text(strings.Repeat("x", 1100000)))
	})
	r.told("a batch of 2 MiB", "", func() error {
		_, err := p.NewEventDataBatch(within(30), &eh.EventDataBatchOptions{MaxBytes: 2 << 20})
		return err
	})
	sendNumbers(p, "0", 7, 7)
	same(bodies(read(c, "0", 1)), []string{"7"}, "bodies")
	r.note("refused by the client")
	return nil
}
