package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// A check that failed ends its case.
type failure string

func (f failure) Error() string { return string(f) }

func check(ok bool, format string, args ...any) {
	if !ok {
		panic(failure(fmt.Sprintf(format, args...)))
	}
}

func must(err error, what string) { check(err == nil, "%s: %v", what, err) }

func take[T any](value T, err error) T {
	check(err == nil, "%T: %v", value, err)
	return value
}

func same(got, want any, what string) {
	if !reflect.DeepEqual(got, want) {
		a, _ := json.Marshal(got) // looks behind pointers
		b, _ := json.Marshal(want)
		check(false, "%s: %.300s %s instead of %.300s %s", what, fmt.Sprint(got), a, fmt.Sprint(want), b)
	}
}

func ptr[T any](value T) *T { return &value }

// within gives a context that ends after so many seconds; nobody needs to end it earlier.
func within(seconds int) context.Context {
	limit := time.Duration(seconds) * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	time.AfterFunc(limit, cancel)
	return ctx
}

// until waits for something to become true.
func until(seconds int, what string, done func() bool) {
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	for !done() {
		check(time.Now().Before(end), "%s: not within %d s", what, seconds)
		time.Sleep(5 * time.Millisecond)
	}
}

// told waits for a call that must fail: within 10 s, and with an error that names the fault.
func (r *run) told(what, fault string, call func() error) {
	since := time.Now()
	err := call()
	passed := time.Since(since)
	check(err != nil, "%s: no error", what)
	check(regexp.MustCompile(fault).MatchString(err.Error()), "%s: the error is %v", what, err)
	check(passed < 10*time.Second, "%s: told after %.1f s: %v", what, passed.Seconds(), err)
	r.seconds = max(r.seconds, passed.Seconds())
}

// lacks proves that the client has no such thing, by the names of all that its types offer. It fails
// when one of them speaks of it.
func lacks(pattern string, of ...reflect.Type) error {
	var all []string
	for _, t := range of {
		var mine []string
		for i := range t.NumMethod() {
			mine = append(mine, t.Method(i).Name)
		}
		for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
			mine = append(mine, t.Field(i).Name)
		}
		name := strings.TrimPrefix(strings.TrimPrefix(t.String(), "*"), "azeventhubs.")
		all = append(all, name+" has only "+strings.Join(mine, " "))
	}
	text := strings.Join(all, "; ")
	check(!regexp.MustCompile("(?i)"+pattern).MatchString(text), "the client may have it now: %s", text)
	return absent(text)
}
