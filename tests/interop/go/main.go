// Azure's own Go client in the common cases, see ../CASES.md; ./run builds and starts it.
//
//	interop CASE...     runs cases, several at once
//	interop rate        measures receiving
//	interop processor   is one of the processes that the case "processor" starts
package main

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"time"
)

// What a case comes to, besides passing (nil) and failing (any other error).
type absent string // the client has no such thing; the text is the proof
type skipped string

func (a absent) Error() string  { return string(a) }
func (s skipped) Error() string { return string(s) }

// One run of a case. Its hub has its name.
type run struct {
	hub     string
	seconds float64  // how long it took until the program was told, where that is asked
	notes   []string // what its line says when it passes
}

func (r *run) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

var cases = gather(sendCases, bodyCases, readCases, epochCases, roadCases, refusalCases, lifeCases)

func gather(rooms ...map[string]func(*run) error) map[string]func(*run) error {
	all := map[string]func(*run) error{"rate": rate}
	for _, room := range rooms {
		maps.Copy(all, room)
	}
	return all
}

const atOnce = 4 // cases that run at the same time, besides those that mostly wait:
var long = map[string]bool{"quiet": true, "crash": true, "processor": true}

// attempt gives the case's failure; a failed check ends it by a panic.
func (r *run) attempt() (err error) {
	defer func() {
		if p := recover(); p != nil {
			failed, ok := p.(failure)
			if !ok {
				panic(p)
			}
			err = failed
		}
	}()
	work := cases[r.hub]
	check(work != nil, "there is no such case here")
	return work(r)
}

// line runs the case and says what became of it.
func (r *run) line() string {
	since := time.Now()
	err := r.attempt()
	if r.seconds == 0 {
		r.seconds = time.Since(since).Seconds()
	}
	status, text := "pass", strings.Join(r.notes, ", ")
	if err != nil {
		status, text = "fail", strings.Join(append(r.notes, err.Error()), ": ")
	}
	switch err.(type) {
	case absent:
		status = "absent"
	case skipped:
		status = "skipped"
	}
	return fmt.Sprintf("%s %s %.2f %s", r.hub, status, r.seconds, strings.Join(strings.Fields(text), " "))
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "processor" {
		beProcessor()
		return
	}
	var all sync.WaitGroup
	places := make(chan bool, atOnce)
	for _, name := range os.Args[1:] {
		all.Add(1)
		go func() {
			defer all.Done()
			if !long[name] {
				places <- true
				defer func() { <-places }()
			}
			fmt.Println((&run{hub: name}).line())
		}()
	}
	all.Wait()
}
