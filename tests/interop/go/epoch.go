package main

import (
	"errors"

	eh "github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

var epochCases = map[string]func(*run) error{
	"epoch-higher": epochHigher, "epoch-lower": epochLower, "sixth-reader": sixthReader,
}

// owner gives a reader of an epoch, or of none.
func owner(c *eh.ConsumerClient, epoch *int64) *eh.PartitionClient {
	return take(c.NewPartitionClient("0", &eh.PartitionClientOptions{StartPosition: earliest, OwnerLevel: epoch}))
}

// one takes a single event.
func one(r *eh.PartitionClient) error {
	_, err := r.ReceiveEvents(within(20), 1, nil)
	return err
}

func lost(err error) bool {
	var known *eh.Error
	return errors.As(err, &known) && known.Code == eh.ErrorCodeOwnershipLost
}

func epochHigher(r *run) error {
	p, c := r.clients()
	sendNumbers(p, "0", 0, 0)
	first, second := owner(c, ptr(int64(1))), owner(c, ptr(int64(2)))
	must(one(first), "epoch 1")
	ended := make(chan error)
	go func() { ended <- one(first) }()
	must(one(second), "epoch 2")
	r.told("the reader of epoch 1", "stolen", func() error {
		err := <-ended
		if !lost(err) {
			return errors.New("not lost by its code")
		}
		return err
	})
	sendNumbers(p, "0", 1, 1)
	must(one(second), "epoch 2 reads on")
	return nil
}

func epochLower(r *run) error {
	p, c := r.clients()
	sendNumbers(p, "0", 0, 1)
	high := owner(c, ptr(int64(2)))
	must(one(high), "epoch 2")
	r.told("epoch 1", "epoch", func() error { return one(owner(c, ptr(int64(1)))) })
	r.told("no epoch", "epoch", func() error { return one(owner(c, nil)) })
	must(one(high), "epoch 2 reads on")
	return nil
}

func sixthReader(r *run) error {
	p, c := r.clients()
	sendNumbers(p, "0", 0, 1)
	var five []*eh.PartitionClient
	for range 5 {
		five = append(five, reader(c, "0", earliest))
		must(one(five[len(five)-1]), "one of five readers")
	}
	r.told("the sixth reader", "limit|quota|5", func() error { return one(reader(c, "0", earliest)) })
	for _, each := range five {
		must(one(each), "one of five readers, later")
	}
	return nil
}
