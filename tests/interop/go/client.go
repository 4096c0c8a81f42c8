package main

import (
	"context"
	"errors"
	"os"
	"regexp"
	"time"

	eh "github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

const anyGroup = "$Default"

func stand(name string) string { return os.Getenv("STAND_" + name) }

// credentials gives the rule and key of the stand's string.
func credentials() string {
	return regexp.MustCompile("SharedAccessKeyName=[^;]*;SharedAccessKey=[^;]*").FindString(stand("STRING"))
}

func (r *run) producerOf(connection string, options *eh.ProducerClientOptions) *eh.ProducerClient {
	return take(eh.NewProducerClientFromConnectionString(connection, r.hub, options))
}

func (r *run) consumerOf(connection, group string, options *eh.ConsumerClientOptions) *eh.ConsumerClient {
	return take(eh.NewConsumerClientFromConnectionString(connection, r.hub, group, options))
}

// clients gives a producer and a consumer with everything at its default.
func (r *run) clients() (*eh.ProducerClient, *eh.ConsumerClient) {
	return r.producerOf(stand("STRING"), nil), r.consumerOf(stand("STRING"), anyGroup, nil)
}

var earliest = eh.StartPosition{Earliest: ptr(true)}

func partition(id string) *eh.EventDataBatchOptions {
	return &eh.EventDataBatchOptions{PartitionID: &id}
}

func text(body string) *eh.EventData { return &eh.EventData{Body: []byte(body)} }

// send puts events into one batch and sends it.
func send(ctx context.Context, p *eh.ProducerClient, options *eh.EventDataBatchOptions, events ...*eh.EventData) error {
	batch, err := p.NewEventDataBatch(ctx, options)
	if err != nil {
		return err
	}
	for _, event := range events {
		if err := batch.AddEventData(event, nil); err != nil {
			return err
		}
	}
	return p.SendEventDataBatch(ctx, batch, nil)
}

// sendNumbers sends the numbers from first to last as texts to a partition.
func sendNumbers(p *eh.ProducerClient, id string, first, last int) {
	var events []*eh.EventData
	for n := first; n <= last; n++ {
		events = append(events, text(number(n)))
	}
	must(send(within(30), p, partition(id), events...), "sending numbers")
}

func reader(c *eh.ConsumerClient, id string, from eh.StartPosition) *eh.PartitionClient {
	return take(c.NewPartitionClient(id, &eh.PartitionClientOptions{StartPosition: from}))
}

// receive takes exactly count events.
func receive(r *eh.PartitionClient, count int) []*eh.ReceivedEventData {
	var got []*eh.ReceivedEventData
	for len(got) < count {
		more, err := r.ReceiveEvents(within(20), count-len(got), nil)
		check(err == nil, "%d of %d events came: %v", len(got), count, err)
		got = append(got, more...)
	}
	return got
}

// nothing says that no event comes for a while.
func nothing(r *eh.PartitionClient) {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	got, err := r.ReceiveEvents(ctx, 1, nil)
	check(len(got) == 0 && errors.Is(err, context.DeadlineExceeded), "%d events more, %v", len(got), err)
}

func read(c *eh.ConsumerClient, id string, count int) []*eh.ReceivedEventData {
	r := reader(c, id, earliest)
	defer r.Close(context.Background())
	return receive(r, count)
}

// countOf gives how many events a partition has ever got.
func countOf(c *eh.ConsumerClient, id string) int {
	return int(take(c.GetPartitionProperties(within(20), id, nil)).LastEnqueuedSequenceNumber + 1)
}

func bodies(events []*eh.ReceivedEventData) []string {
	var all []string
	for _, event := range events {
		all = append(all, string(event.Body))
	}
	return all
}
