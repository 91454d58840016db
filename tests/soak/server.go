// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Ports of the server.
const (
	tcpPort   = 7000
	udpPort   = 7001
	webPort   = 8080
	iperfPort = 5201
)

// What a client asks for is its first byte.
const (
	askReceive = 'B' // everything, then answer with its length and CRC-32
	askSend    = 'D' // data until the client closes
	askAnswer  = 'R' // an answer of as many bytes as each request says
	askReset   = 'X' // some data, then reset the connection
	askAfter   = 'H' // as much as comes, after the client has ended its side
)

// requestBytes is the length of a request of askAnswer, which starts with its answer's length.
const requestBytes = 200

// receipt is what askReceive answers.
type receipt struct {
	Bytes uint64
	CRC   uint32
}

const receiptBytes = 12

func (r receipt) bytes() []byte {
	b := binary.BigEndian.AppendUint64(nil, r.Bytes)
	return binary.BigEndian.AppendUint32(b, r.CRC)
}

// serveAll starts the servers, which run until the context ends.
func serveAll(ctx context.Context, h *netHost) error {
	return h.do(func() error {
		l, err := net.Listen("tcp", ":"+strconv.Itoa(tcpPort))
		if err != nil {
			return err
		}
		u, err := net.ListenPacket("udp", ":"+strconv.Itoa(udpPort))
		if err != nil {
			return err
		}
		w, err := net.Listen("tcp", ":"+strconv.Itoa(webPort))
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() {
			_ = errors.Join(l.Close(), u.Close(), w.Close())
		})
		go accept(l)
		go echoUDP(u)
		s := http.Server{ReadHeaderTimeout: time.Minute, Handler: pages()}
		go func() { _ = s.Serve(w) }()
		return nil
	})
}

// pages serves /N: a page of N bytes.
func pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{n}", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("n"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(n))
		_, _ = w.Write(make([]byte, n))
	})
	return mux
}

func accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			// A client whose host is gone never closes.
			_ = c.SetDeadline(time.Now().Add(serverPatience))
			_ = serveOne(c.(*net.TCPConn))
		}()
	}
}

const serverPatience = 3 * time.Minute

func serveOne(c *net.TCPConn) error {
	var ask [1]byte
	if _, err := io.ReadFull(c, ask[:]); err != nil {
		return err
	}
	switch ask[0] {
	case askReceive:
		sum := crc32.NewIEEE()
		n, err := io.Copy(sum, c)
		if err != nil {
			return err
		}
		_, err = c.Write(receipt{uint64(n), sum.Sum32()}.bytes())
		return err
	case askSend:
		data := make([]byte, 64<<10)
		for {
			if _, err := c.Write(data); err != nil {
				return err
			}
		}
	case askAnswer:
		request := make([]byte, requestBytes)
		for {
			if _, err := io.ReadFull(c, request); err != nil {
				return err
			}
			if _, err := c.Write(make([]byte, binary.BigEndian.Uint32(request))); err != nil {
				return err
			}
		}
	case askReset:
		_, err := io.ReadFull(c, make([]byte, 1000))
		return errors.Join(err, c.SetLinger(0))
	case askAfter:
		n, err := io.Copy(io.Discard, c)
		if err != nil {
			return err
		}
		_, err = c.Write(make([]byte, n))
		return err
	}
	return nil
}

func echoUDP(u net.PacketConn) {
	b := make([]byte, 2000)
	for {
		n, from, err := u.ReadFrom(b)
		if err != nil {
			return
		}
		_, _ = u.WriteTo(b[:n], from)
	}
}
