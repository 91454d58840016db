// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var mixFlag = flag.String("mix", "",
	"what TestMix measures: KEY=VALUE as for -bed; runs is the number of seeds")

// The mix: a client that sends a small request now and then and a large one after some, and five
// that each send an answer on a new connection, beside two downloads.
const (
	requestBytes = 200
	largeBytes   = 1 << 20
	answerBytes  = 100_000
	answers      = 5
	meanPause    = 100 * time.Millisecond
	smallOnes    = 5 // requests before a large one
)

// mix returns how long large requests after small ones, and answers, took.
func (b *Bed) mix(control string, seed uint64, large int) (requests, all []time.Duration) {
	t := b.t
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for i := range 2 {
		c := b.Connect(i%len(b.senders), control)
		var received atomic.Uint64
		running.Go(func() { fill(ctx, c) })
		running.Go(func() { drain(c, &received) })
		defer c.Receiver.Close()
		defer c.Sender.Close()
	}
	wait(ctx, time.Second)
	r := rand.New(rand.NewPCG(seed, 3))
	client := b.Connect(0, control)
	for range large {
		for range smallOnes {
			b.send(client, requestBytes)
			wait(ctx, time.Duration(r.ExpFloat64()*float64(meanPause)))
		}
		requests = append(requests, b.send(client, largeBytes))
		began := time.Now()
		var answered sync.WaitGroup
		var conns []Connection
		for i := range answers {
			conns = append(conns, b.Connect(i%len(b.senders), control))
		}
		for _, c := range conns {
			answered.Go(func() { b.send(c, answerBytes) })
		}
		answered.Wait()
		all = append(all, time.Since(began))
		for _, c := range conns {
			c.Sender.Close()
			c.Receiver.Close()
		}
	}
	return requests, all
}

// send sends so many bytes and returns how long it took until the last one was there.
func (b *Bed) send(c Connection, bytes int) time.Duration {
	began := time.Now()
	go c.Sender.Write(make([]byte, bytes))
	if _, err := io.CopyN(io.Discard, c.Receiver, int64(bytes)); err != nil {
		b.t.Error("receive a request: ", err)
	}
	return time.Since(began)
}

func quantile(times []time.Duration, share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

func TestMix(t *testing.T) {
	if *mixFlag == "" {
		t.Skip("nothing to measure: give -mix")
	}
	m, err := parseMeasurement(*mixFlag)
	if err != nil {
		t.Fatal(err)
	}
	if m.Senders == 0 {
		m.Senders = 2
	}
	type times struct{ requests, answers []time.Duration }
	all := map[string]*times{}
	for seed := range m.runs {
		for _, control := range m.controls {
			if all[control] == nil {
				all[control] = &times{}
			}
			t.Run(fmt.Sprint(control, seed), func(t *testing.T) {
				b := New(t, m.Options)
				b.Control(control, m.network(), m.parameters())
				requests, answers := b.mix(control, uint64(seed), 8)
				all[control].requests = append(all[control].requests, requests...)
				all[control].answers = append(all[control].answers, answers...)
			})
		}
	}
	for _, control := range m.controls {
		a := all[control]
		fmt.Printf("%-6s 1 MB after pauses: p50 %v p99 %v; 5 x 100 KB: p50 %v p99 %v\n", control,
			quantile(a.requests, 0.5).Round(time.Millisecond),
			quantile(a.requests, 0.99).Round(time.Millisecond),
			quantile(a.answers, 0.5).Round(time.Millisecond),
			quantile(a.answers, 0.99).Round(time.Millisecond))
	}
}
