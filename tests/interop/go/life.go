package main

import (
	"context"
	"os/exec"
	"sync"
	"time"

	eh "github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

var lifeCases = map[string]func(*run) error{"quiet": quiet, "crash": crash, "processor": processor}

func quiet(r *run) error {
	p, c := r.clients()
	open := reader(c, "0", earliest)
	sendNumbers(p, "0", 0, 0)
	same(bodies(receive(open, 1)), []string{"0"}, "the first event")
	second := make(chan error)
	var got []*eh.ReceivedEventData
	go func() {
		var err error
		got, err = open.ReceiveEvents(within(120), 1, nil)
		second <- err
	}()
	time.Sleep(90 * time.Second) // the case itself
	since := time.Now()
	sendNumbers(p, "0", 1, 1)
	passed := time.Since(since)
	check(passed < 5*time.Second, "the second send took %v", passed)
	must(<-second, "the reader")
	same(bodies(got), []string{"1"}, "the second event")
	same(bodies(read(c, "0", 2)), []string{"0", "1"}, "events")
	same(countOf(c, "0"), 2, "events")
	r.note("the send after it took %d ms", passed.Milliseconds())
	return nil
}

// A set of bodies that several goroutines fill and look at.
type seen struct {
	lock sync.Mutex
	all  map[string]bool
}

func (s *seen) add(events ...string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, body := range events {
		s.all[body] = true
	}
}

func (s *seen) missing(events []string) (missing []string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, body := range events {
		if !s.all[body] {
			missing = append(missing, body)
		}
	}
	return missing
}

// publish sends numbers until the time is over; the program repeats what the client has given up.
func publish(p *eh.ProducerClient, end time.Time) (acknowledged []string, repeats int) {
	for n := 0; time.Now().Before(end); n++ {
		for send(within(30), p, partition("0"), text(number(n))) != nil {
			repeats++
		}
		acknowledged = append(acknowledged, number(n))
	}
	return acknowledged, repeats
}

// follow reads on whatever happens, until the context ends.
func follow(ctx context.Context, c *eh.ConsumerClient, to *seen) {
	from := reader(c, "0", earliest)
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, time.Second)
		events, _ := from.ReceiveEvents(call, 100, nil)
		cancel()
		to.add(bodies(events)...)
	}
}

func crash(r *run) error {
	const kills = 3
	p, c := r.producerOf(stand("CRASH_STRING"), nil), r.consumerOf(stand("CRASH_STRING"), anyGroup, nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	along := &seen{all: map[string]bool{}}
	go follow(ctx, c, along)
	killed := make(chan error, kills)
	go func() {
		for range kills {
			time.Sleep(3500 * time.Millisecond)
			killed <- exec.Command("sh", "-c", stand("CRASH_RESTART")).Run()
		}
	}()
	acknowledged, repeats := publish(p, time.Now().Add(15*time.Second))
	for range kills {
		must(<-killed, "restart")
	}
	fresh := r.consumerOf(stand("CRASH_STRING"), anyGroup, nil)
	there := &seen{all: map[string]bool{}}
	there.add(bodies(read(fresh, "0", countOf(fresh, "0")))...)
	same(there.missing(acknowledged), []string(nil), "acknowledged and lost")
	until(60, "the reader that was there all the time", func() bool { return along.missing(acknowledged) == nil })
	r.note("%d kills, %d acknowledged, %d sends repeated by the program", kills, len(acknowledged), repeats)
	return nil
}
