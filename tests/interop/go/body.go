package main

import (
	"time"

	eh "github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

var bodyCases = map[string]func(*run) error{
	"annotated": annotated, "body-value": bodyValue, "body-sequence": bodySequence,
}

// exchange sends messages, each alone and then all in one batch, and gives what comes back of them.
func (r *run) exchange(messages ...*eh.AMQPAnnotatedMessage) []*eh.AMQPAnnotatedMessage {
	p, c := r.clients()
	all := take(p.NewEventDataBatch(within(10), partition("0")))
	for _, message := range messages {
		alone := take(p.NewEventDataBatch(within(10), partition("0")))
		must(alone.AddAMQPAnnotatedMessage(message, nil), "adding a message")
		must(p.SendEventDataBatch(within(10), alone, nil), "sending a message")
		must(all.AddAMQPAnnotatedMessage(message, nil), "adding a message")
	}
	must(p.SendEventDataBatch(within(10), all, nil), "sending messages")
	var got []*eh.AMQPAnnotatedMessage
	for _, event := range read(c, "0", 2*len(messages)) {
		got = append(got, event.RawAMQPMessage)
	}
	return got
}

func annotated(r *run) error {
	when := time.UnixMilli(1700000000000)
	sent := &eh.AMQPAnnotatedMessage{
		Header:                &eh.AMQPAnnotatedMessageHeader{Durable: true, Priority: 7, TTL: time.Hour},
		DeliveryAnnotations:   map[any]any{"x-opt-delivery": "d"},
		MessageAnnotations:    map[any]any{"x-opt-mine": "m", "x-opt-number": int64(3)},
		ApplicationProperties: map[string]any{"a": "b"},
		Footer:                map[any]any{"x-opt-foot": "f"},
		Body:                  eh.AMQPAnnotatedMessageBody{Data: [][]byte{[]byte("one"), []byte("two")}},
		Properties: &eh.AMQPAnnotatedMessageProperties{
			AbsoluteExpiryTime: &when, ContentEncoding: ptr("gzip"), ContentType: ptr("text/plain"),
			CorrelationID: uint64(7), CreationTime: &when, GroupID: ptr("g"), GroupSequence: ptr(uint32(3)),
			MessageID: uint64(8), ReplyTo: ptr("r"), ReplyToGroupID: ptr("rg"), Subject: ptr("s"), To: ptr("t"),
			UserID: []byte("u")},
	}
	for _, got := range r.exchange(sent) {
		same(got.Body, sent.Body, "body")
		same(got.Properties, sent.Properties, "properties")
		same(got.ApplicationProperties, sent.ApplicationProperties, "application properties")
		same(got.Footer, sent.Footer, "footer")
		same(got.DeliveryAnnotations, sent.DeliveryAnnotations, "delivery annotations")
		same(got.MessageAnnotations["x-opt-mine"], "m", "message annotation")
		same(got.MessageAnnotations["x-opt-number"], int64(3), "message annotation")
		check(got.Header == nil || *got.Header == *sent.Header, "header: %+v", got.Header)
	}
	return nil
}

// bodiesComeBack sends messages that have nothing but these bodies.
func (r *run) bodiesComeBack(shapes ...eh.AMQPAnnotatedMessageBody) error {
	var messages []*eh.AMQPAnnotatedMessage
	for _, shape := range shapes {
		messages = append(messages, &eh.AMQPAnnotatedMessage{Body: shape})
	}
	for i, got := range r.exchange(messages...) {
		same(got.Body, shapes[i%len(shapes)], "body")
	}
	return nil
}

func bodyValue(r *run) error {
	return r.bodiesComeBack(eh.AMQPAnnotatedMessageBody{Value: "text"}, eh.AMQPAnnotatedMessageBody{Value: int64(-7)},
		eh.AMQPAnnotatedMessageBody{Value: map[string]any{"k": int64(1)}}, eh.AMQPAnnotatedMessageBody{Value: true})
}

func bodySequence(r *run) error {
	return r.bodiesComeBack(eh.AMQPAnnotatedMessageBody{Sequence: [][]any{{int64(1), "a", true}}},
		eh.AMQPAnnotatedMessageBody{Sequence: [][]any{{int64(1)}, {"b", "c"}}})
}
