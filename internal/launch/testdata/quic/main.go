// SPDX-License-Identifier: Apache-2.0

// Command quic is a server of QUIC, or a client that makes some connections, one after the other,
// and prints what each took. A test runs both on hosts of a network.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"os"
	"strconv"
	"time"

	"github.com/quic-go/quic-go"
)

const protocol = "pcn-test"

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	run := func() error { return clients(ctx, os.Args[1], os.Args[2]) }
	if os.Args[1] == "server" {
		run = func() error { return server(ctx) }
	}
	if err := run(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func server(ctx context.Context) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	listener, err := quic.ListenAddr(":443", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		NextProtos:   []string{protocol},
	}, nil)
	if err != nil {
		return err
	}
	fmt.Println("listening")
	for {
		connection, err := listener.Accept(ctx)
		if err != nil {
			return err
		}
		go func() {
			stream, err := connection.AcceptStream(ctx)
			if err == nil {
				_, _ = io.Copy(stream, stream)
				_ = stream.Close()
			}
		}()
	}
}

// clients makes so many connections, and prints how many ms the handshake of each took.
func clients(ctx context.Context, host, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	var tookMs []float64
	for range n {
		took, err := client(ctx, host)
		if err != nil {
			return err
		}
		tookMs = append(tookMs, float64(took)/float64(time.Millisecond))
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"handshake_ms": tookMs})
}

// client shakes hands, and has a byte sent back.
func client(ctx context.Context, host string) (shook time.Duration, err error) {
	began := time.Now()
	connection, err := quic.DialAddr(ctx, host+":443", &tls.Config{
		InsecureSkipVerify: true, NextProtos: []string{protocol}, //nolint:gosec // of the test
	}, nil)
	if err != nil {
		return 0, err
	}
	shook = time.Since(began)
	stream, err := connection.OpenStreamSync(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := stream.Write([]byte{1}); err != nil {
		return 0, err
	}
	if err := stream.Close(); err != nil {
		return 0, err
	}
	if _, err := io.ReadAll(stream); err != nil {
		return 0, err
	}
	return shook, connection.CloseWithError(0, "")
}
