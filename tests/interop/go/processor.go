package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	eh "github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2/checkpoints"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

const boxName = "go-checkpoints"

func box() *container.Client {
	return take(container.NewClientFromConnectionString(stand("BLOB"), boxName, nil))
}

// beProcessor is one process: it says each body that it has processed, and marks it.
func beProcessor() {
	r := &run{hub: "processor"}
	store := take(checkpoints.NewBlobStore(box(), nil))
	options := &eh.ProcessorOptions{UpdateInterval: time.Second, PartitionExpirationDuration: 10 * time.Second,
		StartPositions: eh.StartPositions{Default: earliest}}
	p := take(eh.NewProcessor(r.consumerOf(stand("STRING"), "cg1", nil), store, options))
	go func() {
		for {
			client := p.NextPartitionClient(context.Background())
			if client == nil {
				return
			}
			go processPartition(client)
		}
	}()
	must(p.Run(context.Background()), "the processor")
}

func processPartition(client *eh.ProcessorPartitionClient) {
	defer client.Close(context.Background())
	for {
		call, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		events, err := client.ReceiveEvents(call, 50, nil)
		failed := err != nil && call.Err() == nil // before cancel, which makes it an error, too
		cancel()
		if failed { // as when another process takes the partition
			fmt.Fprintf(os.Stderr, "partition %s: %v\n", client.PartitionID(), err)
			return
		}
		if len(events) == 0 {
			continue
		}
		for _, event := range events {
			fmt.Println(client.PartitionID(), string(event.Body))
		}
		if err := client.UpdateCheckpoint(context.Background(), events[len(events)-1], nil); err != nil {
			fmt.Fprintf(os.Stderr, "checkpoint %s: %v\n", client.PartitionID(), err)
		}
	}
}

// The processes, and what each has said.
type fleet struct {
	lock    sync.Mutex
	members []*exec.Cmd
	parts   []map[string]bool // partitions that each has processed events of
	bodies  map[string]int
}

func (f *fleet) add() {
	child := exec.Command("/proc/self/exe", "processor")
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	child.Stderr = os.Stderr
	out := take(child.StdoutPipe())
	must(child.Start(), "a process")
	f.members = append(f.members, child)
	f.parts = append(f.parts, map[string]bool{})
	go f.listen(out, f.parts[len(f.parts)-1])
}

func (f *fleet) listen(out io.Reader, parts map[string]bool) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		id, body, _ := strings.Cut(lines.Text(), " ")
		f.lock.Lock()
		parts[id] = true
		f.bodies[body]++
		f.lock.Unlock()
	}
}

func (f *fleet) kill(i int) {
	_ = f.members[i].Process.Kill()
	_ = f.members[i].Wait()
}

// look gives how many events were processed, how often in all, and how many processes had a partition.
func (f *fleet) look() (events, times, busy int) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, count := range f.bodies {
		times += count
	}
	for _, parts := range f.parts {
		if len(parts) > 0 {
			busy++
		}
	}
	return len(f.bodies), times, busy
}

func processor(r *run) error {
	if stand("BLOB") == "" {
		return skipped("there is no Azurite")
	}
	since := time.Now()
	take(box().Create(within(30), nil))
	p, _ := r.clients()
	all := &fleet{bodies: map[string]int{}}
	defer func() {
		for i := range all.members {
			all.kill(i)
		}
	}()
	for range 3 {
		all.add()
	}
	// A few events again and again, until every process has got some, so that all have a partition.
	sent := 0
	more := func(count int) {
		for end := sent + count; sent < end; sent += 10 {
			sendNumbers(p, ids[sent/10%4], sent, sent+9)
		}
	}
	until(60, "a partition for every process", func() bool {
		if sent < 2000 {
			more(40)
		}
		time.Sleep(200 * time.Millisecond)
		_, _, busy := all.look()
		return busy == 3
	})
	more(2000 - sent)
	until(60, "2,000 events", func() bool { events, _, _ := all.look(); return events == 2000 })
	all.kill(0)
	more(2000)
	until(120, "4,000 events", func() bool { events, _, _ := all.look(); return events == 4000 })
	_, times, _ := all.look()
	check(time.Since(since) < 2*time.Minute, "it took %v", time.Since(since))
	r.note("4,000 events, %d of them again", times-4000)
	return nil
}
