package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"

	eh "github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
	"github.com/coder/websocket"
)

var roadCases = map[string]func(*run) error{"tls": withTLS, "websocket": inWebSocket, "emulator": emulator}

// walk asks for properties, sends and reads; each road begins behind the events of the one before.
func (r *run) walk(p *eh.ProducerClient, c *eh.ConsumerClient) {
	hub := take(p.GetEventHubProperties(within(10), nil))
	same(hub.PartitionIDs, ids, "partitions")
	before := countOf(c, "0")
	sendNumbers(p, "0", before, before+9)
	for i, body := range bodies(read(c, "0", before+10)) {
		same(body, number(i), "body")
	}
	_ = p.Close(context.Background())
	_ = c.Close(context.Background())
}

func emulator(r *run) error {
	r.walk(r.clients())
	return nil
}

func trustOf(file string) *x509.CertPool {
	pool := x509.NewCertPool()
	check(pool.AppendCertsFromPEM(take(os.ReadFile(file))), "no certificate in %s", file)
	return pool
}

// By the option TLSConfig; and without it, by the variable SSL_CERT_FILE. A stranger's certificate is refused.
func withTLS(r *run) error {
	place := "localhost:" + stand("AMQPS")
	trust := &tls.Config{RootCAs: trustOf(stand("CA"))}
	r.walk(r.producerOf(stand("TLS_STRING"), &eh.ProducerClientOptions{CustomEndpoint: place, TLSConfig: trust}),
		r.consumerOf(stand("TLS_STRING"), anyGroup, &eh.ConsumerClientOptions{CustomEndpoint: place, TLSConfig: trust}))
	_ = os.Setenv("SSL_CERT_FILE", stand("CA"))
	r.walk(r.producerOf(stand("TLS_STRING"), &eh.ProducerClientOptions{CustomEndpoint: place}),
		r.consumerOf(stand("TLS_STRING"), anyGroup, &eh.ConsumerClientOptions{CustomEndpoint: place}))
	nobody := &eh.ProducerClientOptions{CustomEndpoint: place, TLSConfig: &tls.Config{RootCAs: x509.NewCertPool()},
		RetryOptions: eh.RetryOptions{MaxRetries: -1}}
	_, err := r.producerOf(stand("TLS_STRING"), nobody).GetEventHubProperties(within(10), nil)
	check(err != nil, "a certificate that nobody vouched for was taken")
	r.note("CustomEndpoint, and TLSConfig or SSL_CERT_FILE")
	return nil
}

func inWebSocket(r *run) error {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trustOf(stand("CA"))}}
	options := &websocket.DialOptions{Subprotocols: []string{"amqp"}, HTTPClient: &http.Client{Transport: transport}}
	dial := func(ctx context.Context, params eh.WebSocketConnParams) (net.Conn, error) {
		socket, _, err := websocket.Dial(ctx, params.Host, options)
		if err != nil {
			return nil, err
		}
		return websocket.NetConn(context.Background(), socket, websocket.MessageBinary), nil
	}
	connection := "Endpoint=sb://localhost:" + stand("HTTPS") + "/;" + credentials()
	r.walk(r.producerOf(connection, &eh.ProducerClientOptions{NewWebSocketConn: dial}),
		r.consumerOf(connection, anyGroup, &eh.ConsumerClientOptions{NewWebSocketConn: dial}))
	return nil
}
