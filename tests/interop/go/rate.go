package main

import (
	"context"
	"errors"
	"strconv"
	"time"
)

const silence = 15 * time.Second // without an event: no more will come

func setting(name string, usual int) int {
	if stand(name) == "" {
		return usual
	}
	return take(strconv.Atoi(stand(name)))
}

// rate tells how fast the events of one partition come, from the first ones that the client hands over
// to the last ones. They are counted, not kept.
func rate(r *run) error {
	wanted, limit := setting("EVENTS", 200000), time.Duration(setting("LIMIT", 200))*time.Second
	r.hub = "rate"
	_, c := r.clients()
	from := reader(c, "0", earliest)
	began, count, first := time.Now(), 0, 0
	var since, last time.Time
	for count < wanted && time.Since(began) < limit {
		left := limit - time.Since(began)
		ctx, cancel := context.WithTimeout(context.Background(), min(silence, left))
		events, err := from.ReceiveEvents(ctx, min(prefetch, wanted-count), nil)
		cancel()
		if len(events) > 0 {
			last = time.Now()
		}
		for _, event := range events {
			check(event.SequenceNumber == int64(count), "number %d came after %d events", event.SequenceNumber, count)
			count++
		}
		if first == 0 {
			first, since = count, last
		}
		late := left < silence && errors.Is(err, context.DeadlineExceeded)
		check(err == nil || late, "stopped after %d events: %v", count, err)
	}
	check(count > first, "stopped after %d events", count)
	r.seconds = last.Sub(since).Seconds()
	r.note("%d events in %.3f s, prefetch %d", count-first, r.seconds, prefetch)
	return nil
}
