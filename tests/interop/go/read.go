package main

import (
	"context"
	"fmt"
	"reflect"
	"time"

	eh "github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

var readCases = map[string]func(*run) error{
	"read-many": readMany, "start-earliest": startEarliest, "start-latest": startLatest, "start-offset": startOffset,
	"start-sequence": startSequence, "start-time": startTime, "metrics": metrics,
}

const prefetch = 300 // the client's default

func readMany(r *run) error {
	const count = 10*prefetch + 50
	p, c := r.clients()
	for first := 0; first < count; first += 610 {
		sendNumbers(p, "0", first, first+609)
	}
	from := reader(c, "0", earliest)
	since := time.Now()
	for i, event := range receive(from, count) {
		same([]string{number(int(event.SequenceNumber)), string(event.Body)}, []string{number(i), number(i)}, "event")
	}
	check(time.Since(since) < time.Minute, "it took %v", time.Since(since))
	// The same without prefetch, where the client asks for events by the call.
	without := take(c.NewPartitionClient("0", &eh.PartitionClientOptions{StartPosition: earliest, Prefetch: -1}))
	for i, event := range receive(without, count) {
		same(string(event.Body), number(i), "event without prefetch")
	}
	r.note("%d events", count)
	return nil
}

// twenty sends 20 events to partition 0, the last ten later than the others, and gives them as received.
func (r *run) twenty() (*eh.ConsumerClient, []*eh.ReceivedEventData) {
	p, c := r.clients()
	sendNumbers(p, "0", 0, 9)
	first := *read(c, "0", 10)[9].EnqueuedTime
	until(10, "a later time", func() bool { return time.Since(first) > 5*time.Millisecond })
	sendNumbers(p, "0", 10, 19)
	return c, read(c, "0", 20)
}

// begins says what comes first from a position, and that everything behind it follows.
func begins(c *eh.ConsumerClient, from eh.StartPosition, first int, what string) {
	r := reader(c, "0", from)
	defer r.Close(context.Background())
	for i, event := range receive(r, 20-first) {
		same(string(event.Body), number(first+i), what)
	}
	nothing(r)
}

func startEarliest(r *run) error {
	c, _ := r.twenty()
	begins(c, earliest, 0, "earliest")
	return nil
}

// The client attaches when it is first asked for events.
func startLatest(r *run) error {
	c, _ := r.twenty()
	for i, from := range []eh.StartPosition{{Latest: ptr(true)}, {}} {
		late := reader(c, "0", from)
		nothing(late)
		p, _ := r.clients()
		sendNumbers(p, "0", 20+i, 20+i)
		same(bodies(receive(late, 1)), []string{number(20 + i)}, "what came after the reader")
	}
	return nil
}

func startOffset(r *run) error {
	c, all := r.twenty()
	for _, at := range []int{0, 7, 18} {
		begins(c, eh.StartPosition{Offset: &all[at].Offset}, at+1, fmt.Sprint("behind offset of event ", at))
		begins(c, eh.StartPosition{Offset: &all[at].Offset, Inclusive: true}, at, fmt.Sprint("with offset of event ", at))
	}
	return nil
}

func startSequence(r *run) error {
	c, _ := r.twenty()
	for _, at := range []int{0, 7, 18} {
		begins(c, eh.StartPosition{SequenceNumber: ptr(int64(at))}, at+1, fmt.Sprint("behind number ", at))
		begins(c, eh.StartPosition{SequenceNumber: ptr(int64(at)), Inclusive: true}, at, fmt.Sprint("with number ", at))
	}
	return nil
}

func startTime(r *run) error {
	c, all := r.twenty()
	early, late := *all[9].EnqueuedTime, *all[10].EnqueuedTime
	begins(c, eh.StartPosition{EnqueuedTime: ptr(late.Add(-time.Millisecond))}, 10, "between two events")
	begins(c, eh.StartPosition{EnqueuedTime: &early}, 10, "behind the time of event 9")
	begins(c, eh.StartPosition{EnqueuedTime: &late, Inclusive: true}, 10, "with the time of event 10")
	begins(c, eh.StartPosition{EnqueuedTime: ptr(early.Add(-time.Hour))}, 0, "an hour before")
	return nil
}

func metrics(*run) error {
	return lacks("track|runtime|lastenqueued", reflect.TypeFor[eh.PartitionClientOptions](),
		reflect.TypeFor[*eh.PartitionClient](), reflect.TypeFor[eh.ReceivedEventData]())
}
