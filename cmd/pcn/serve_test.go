// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-quicktest/qt"
)

// pipeListener accepts connections that have no buffer: what one end writes, the other must read.
type pipeListener struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{make(chan net.Conn), make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func (l *pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l.accepted <- server
	return client
}

// A client that stalls is cut off, wherever it does.
func TestServeStalledClient(t *testing.T) {
	const request = "GET / HTTP/1.1\r\nHost: h\r\n"
	for _, c := range []struct {
		name, sent string
		read       bool // the client reads one answer
		within     time.Duration
	}{
		{"says nothing", "", false, 10 * time.Second},
		{"ends within the header", request, false, 10 * time.Second},
		{"sends no body", request + "Content-Length: 5\r\n\r\n", true, 10 * time.Second},
		{"does not read", request + "\r\n", false, 2 * time.Minute},
		{"asks no more", request + "\r\n", true, 5 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipeListener()
				ctx, cancel := context.WithCancel(t.Context())
				served := make(chan error, 1)
				go func() { served <- serve(ctx, l, http.HandlerFunc(longAnswer)) }()
				client := l.dial()
				defer client.Close()
				deadline := time.Now().Add(c.within + time.Second)
				qt.Assert(t, qt.IsNil(client.SetReadDeadline(deadline)))
				_, err := io.WriteString(client, c.sent)
				qt.Check(t, qt.IsNil(err))
				from := bufio.NewReader(client)
				if c.read {
					readAnswer(t, from)
				}
				time.Sleep(c.within) // and reads nothing
				_, err = io.Copy(io.Discard, from)
				qt.Check(t, qt.IsNil(err), qt.Commentf("the connection is still open"))
				cancel()
				qt.Check(t, qt.IsNil(<-served))
			})
		})
	}
}

func readAnswer(t *testing.T, from *bufio.Reader) {
	t.Helper()
	answer, err := http.ReadResponse(from, nil)
	if qt.Check(t, qt.IsNil(err)) {
		_, err = io.Copy(io.Discard, answer.Body)
		qt.Check(t, qt.IsNil(err))
	}
}

// An answer that is on its way when the server is to end arrives, if that does not take long.
func TestServeEndsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener()
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() {
			served <- serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(stopTimeout / 2)
				longAnswer(w, r)
			}))
		}()
		client := l.dial()
		defer client.Close()
		_, err := io.WriteString(client, "GET / HTTP/1.0\r\n\r\n")
		qt.Assert(t, qt.IsNil(err))
		synctest.Wait() // until the handler sleeps: Shutdown drops a request that no handler has
		cancel()
		synctest.Wait()
		select {
		case err := <-served:
			served <- err
			t.Errorf("the server ended before its answer: %v", err)
		default:
		}
		answer, err := io.ReadAll(client)
		qt.Check(t, qt.IsNil(err))
		qt.Check(t, qt.IsTrue(strings.HasSuffix(string(answer), "\r\n\r\n"+longText)))
		qt.Check(t, qt.IsNil(<-served))
	})
}

// longText is more than the server buffers.
var longText = strings.Repeat("a metric\n", 2000)

func longAnswer(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, longText)
}
