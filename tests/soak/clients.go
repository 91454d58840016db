// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/internal/socket"
	"github.com/pcn-linux/pcn/loader"
)

// clients runs clients, and knows those that are there.
type clients struct {
	bed    *bed
	report *report
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns map[*client]bool
	guest int // how many guests there have been
	done  map[string]int
}

// client is one connection of a kind that is watched.
type client struct {
	plan  clientPlan
	conn  *net.TCPConn
	guest int
	sends bool // and must get on

	acked uint64 // as of
	since time.Time
	stuck bool
}

func newClients(b *bed, r *report) *clients {
	return &clients{bed: b, report: r, conns: map[*client]bool{}, done: map[string]int{}}
}

// start runs a client in the background until it has done what it is there for.
func (cs *clients) start(ctx context.Context, p clientPlan) {
	cs.wg.Go(func() {
		cs.mu.Lock()
		guest := cs.guest
		cs.mu.Unlock()
		err := cs.run(ctx, p)
		cs.mu.Lock()
		defer cs.mu.Unlock()
		cs.done[p.Kind]++
		guestGone := p.From == guestHost && guest != cs.guest
		if err != nil && !guestGone && ctx.Err() == nil && !errors.Is(err, errNoPath) {
			cs.report.violation("client: %v: %v", p, err)
		}
	})
}

// errNoPath is when a client could not connect, as may be while the path is down.
var errNoPath = errors.New("no connection")

func (cs *clients) run(ctx context.Context, p clientPlan) error {
	switch p.Kind {
	case udp:
		return cs.datagrams(ctx, p)
	case web, iperf:
		return cs.program(ctx, p)
	case short:
		p.Bytes = min(p.Bytes, 20_000)
		for range 30 {
			if err := cs.connection(ctx, p, cs.sendAll); err != nil || ctx.Err() != nil {
				return err
			}
		}
		return nil
	}
	return cs.connection(ctx, p, map[string]func(context.Context, *client) error{
		bulk: cs.bulk, download: cs.download, rpc: cs.rpc, idle: cs.idle, aborted: cs.abort,
		reset: cs.reset, halfClose: cs.halfClose,
	}[p.Kind])
}

// connection runs a client's part on a new connection.
func (cs *clients) connection(
	ctx context.Context, p clientPlan, run func(context.Context, *client) error,
) error {
	conn, err := cs.dial(ctx, p)
	if err != nil {
		return err
	}
	c := &client{plan: p, conn: conn, since: time.Now()}
	cs.mu.Lock()
	c.guest = cs.guest
	cs.conns[c] = true
	cs.mu.Unlock()
	defer func() {
		cs.mu.Lock()
		delete(cs.conns, c)
		cs.mu.Unlock()
		conn.Close()
	}()
	_ = conn.SetDeadline(time.Now().Add(p.Lives + clientPatience))
	return run(ctx, c)
}

// clientPatience is how long a client waits, beyond its life, for what it has sent to arrive. At
// the floor of 1 Mbit/s a megabyte takes 8 s, and outages come on top.
const clientPatience = 60 * time.Second

func (cs *clients) dial(ctx context.Context, p clientPlan) (*net.TCPConn, error) {
	to := netip.AddrPortFrom(server(p.IPv6), tcpPort).String()
	h := cs.bed.host(p.From)
	if h == nil {
		return nil, errNoPath
	}
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: -1}
	if p.Control != "" {
		dialer.Control = func(_, _ string, raw syscall.RawConn) error {
			err := socket.SetControl(raw, p.Control)
			if errors.Is(err, unix.ENOENT) { // between down and up
				err = nil
			}
			return err
		}
	}
	var err error
	for range 3 {
		var conn net.Conn
		if dialErr := h.do(func() error {
			conn, err = dialer.DialContext(ctx, "tcp", to)
			return nil
		}); dialErr != nil {
			return nil, errNoPath // the guest's namespace is gone
		}
		if err == nil {
			return conn.(*net.TCPConn), nil
		}
		time.Sleep(time.Second)
	}
	if cs.bed.downWithin(15 * time.Second) {
		return nil, errNoPath
	}
	return nil, err
}

// control returns the connection's congestion control.
func (c *client) control() string {
	name, _ := socket.Control(c.conn)
	return name
}

// data returns bytes that differ between clients.
func (p clientPlan) data(n int) []byte {
	b := make([]byte, n)
	x := uint32(p.ID)*2654435761 + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// sendAll sends the client's bytes and checks the receipt.
func (cs *clients) sendAll(_ context.Context, c *client) error {
	data := c.plan.data(c.plan.Bytes)
	return c.sendAndCheck(func(send func([]byte) error) error { return send(data) }, nil)
}

// sendAndCheck sends what fill gives it, and compares the receipt; settled is called before.
func (c *client) sendAndCheck(
	fill func(send func([]byte) error) error, settled func() error,
) error {
	if _, err := c.conn.Write([]byte{askReceive}); err != nil {
		return err
	}
	want := receipt{}
	err := fill(func(b []byte) error {
		n, err := c.conn.Write(b)
		want.Bytes += uint64(n)
		want.CRC = crc32.Update(want.CRC, crc32.IEEETable, b[:n])
		return err
	})
	if err == nil && settled != nil {
		err = settled()
	}
	if err != nil {
		return err
	}
	if err := c.conn.CloseWrite(); err != nil {
		return err
	}
	var got [receiptBytes]byte
	if _, err := io.ReadFull(c.conn, got[:]); err != nil {
		return fmt.Errorf("read the receipt of %d bytes: %w", want.Bytes, err)
	}
	if string(got[:]) != string(want.bytes()) {
		return fmt.Errorf("the server received %x: want %x", got, want.bytes())
	}
	return nil
}

// bulk sends for its life. Before it ends it compares its entry in the flow table with what TCP
// says.
func (cs *clients) bulk(ctx context.Context, c *client) error {
	data := c.plan.data(64 << 10)
	cs.watch(c, true)
	return c.sendAndCheck(func(send func([]byte) error) error {
		for until := time.Now().Add(c.plan.Lives); time.Now().Before(until) && ctx.Err() == nil; {
			if err := send(data); err != nil {
				return err
			}
		}
		cs.watch(c, false)
		return nil
	}, func() error { return cs.compareEntry(ctx, c) })
}

// watch tells the watchdog that the client sends, or has sent all.
func (cs *clients) watch(c *client, sends bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.sends, c.since = sends, time.Now()
}

// compareEntry waits until all is acknowledged and checks the counters of the flow's entry. An
// upgrade may have given the table up or taken the entry; then there is nothing to compare.
func (cs *clients) compareEntry(ctx context.Context, c *client) error {
	for {
		info, err := socket.Info(c.conn)
		if err != nil {
			return err
		}
		if info.Unacked == 0 && info.Notsent_bytes == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(20 * time.Millisecond):
		}
		if info.State != tcpEstablished {
			return nil
		}
	}
	f, ok := cs.entry(c)
	if !ok {
		return nil
	}
	info, err := socket.Info(c.conn)
	if err != nil {
		return err
	}
	return checkEntry(f, info)
}

const tcpEstablished = 1

// checkEntry compares a flow's entry with the socket that it belongs to. A control does not see
// all packets (KNOWN_ISSUES.md), but none that were not there.
func checkEntry(f loader.Flow, info *unix.TCPInfo) error {
	const frameHead = 14 + 40 + 60 // the longest headers of a frame
	most := info.Bytes_sent + uint64(info.Segs_out)*frameHead
	var errs []error
	check := func(what string, got, most uint64) {
		if got > most {
			errs = append(errs, fmt.Errorf("flow %s: %s is %d: TCP says at most %d",
				f.FlowKey, what, got, most))
		}
	}
	check("sent_bytes", f.SentBytes, most)
	check("packets", uint64(f.Packets), uint64(info.Delivered))
	check("marked_packets", uint64(f.MarkedPackets), uint64(f.Packets)+1)
	check("retransmissions", uint64(f.Retransmissions), uint64(info.Total_retrans))
	return errors.Join(errs...)
}

// entry returns the connection's entry in the flow table of its control.
func (cs *clients) entry(c *client) (loader.Flow, bool) {
	flows, err := host.At(root(clientHost)).Flows()
	if err != nil {
		return loader.Flow{}, false // while up or down change the pins
	}
	local, remote := addrPort(c.conn.LocalAddr()), addrPort(c.conn.RemoteAddr())
	for _, f := range flows {
		if f.Src == local && f.Dst == remote {
			return f.Flow, true
		}
	}
	return loader.Flow{}, false
}

func addrPort(a net.Addr) netip.AddrPort {
	p := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

func (cs *clients) download(ctx context.Context, c *client) error {
	if _, err := c.conn.Write([]byte{askSend}); err != nil {
		return err
	}
	b := make([]byte, 64<<10)
	for until := time.Now().Add(c.plan.Lives); time.Now().Before(until) && ctx.Err() == nil; {
		if _, err := c.conn.Read(b); err != nil {
			return err
		}
	}
	return c.conn.SetLinger(0) // data is under way
}

func (cs *clients) rpc(ctx context.Context, c *client) error {
	if _, err := c.conn.Write([]byte{askAnswer}); err != nil {
		return err
	}
	n := min(c.plan.Bytes, 100_000)
	request := binary.BigEndian.AppendUint32(nil, uint32(n))
	request = append(request, make([]byte, requestBytes-len(request))...)
	answer := make([]byte, n)
	for until := time.Now().Add(c.plan.Lives); time.Now().Before(until); {
		if _, err := c.conn.Write(request); err != nil {
			return err
		}
		if _, err := io.ReadFull(c.conn, answer); err != nil {
			return err
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return nil
		}
	}
	return nil
}

// sleep reports whether the context lasted.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (cs *clients) idle(ctx context.Context, c *client) error {
	return c.sendAndCheck(func(send func([]byte) error) error {
		if err := send(c.plan.data(c.plan.Bytes)); err != nil {
			return err
		}
		sleep(ctx, c.plan.Lives)
		return send(c.plan.data(1000))
	}, nil)
}

func (cs *clients) abort(ctx context.Context, c *client) error {
	if _, err := c.conn.Write([]byte{askReceive}); err != nil {
		return err
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(c.plan.Lives))
	if _, err := c.conn.Write(c.plan.data(c.plan.Bytes)); err != nil &&
		!errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return c.conn.SetLinger(0)
}

func (cs *clients) reset(_ context.Context, c *client) error {
	if _, err := c.conn.Write([]byte{askReset}); err != nil {
		return err
	}
	_, _ = c.conn.Write(c.plan.data(max(2000, c.plan.Bytes)))
	if _, err := c.conn.Read(make([]byte, 1)); err == nil {
		return errors.New("data arrived: want a reset")
	}
	return nil
}

func (cs *clients) halfClose(_ context.Context, c *client) error {
	if _, err := c.conn.Write([]byte{askAfter}); err != nil {
		return err
	}
	if _, err := c.conn.Write(c.plan.data(c.plan.Bytes)); err != nil {
		return err
	}
	if err := c.conn.CloseWrite(); err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, c.conn)
	if err == nil && n != int64(c.plan.Bytes) {
		err = fmt.Errorf("%d bytes came back: want %d", n, c.plan.Bytes)
	}
	return err
}

// datagrams sends UDP to a port of which NP sends CNPs. Losses are in order.
func (cs *clients) datagrams(ctx context.Context, p clientPlan) error {
	h := cs.bed.host(p.From)
	if h == nil {
		return errNoPath
	}
	var conn net.Conn
	if err := h.do(func() (err error) {
		conn, err = net.Dial("udp", netip.AddrPortFrom(server(p.IPv6), udpPort).String())
		return err
	}); err != nil {
		return errNoPath
	}
	defer conn.Close()
	b := make([]byte, 2000)
	for until := time.Now().Add(p.Lives); time.Now().Before(until) && ctx.Err() == nil; {
		_, _ = conn.Write(b[:min(1200, p.Bytes)])
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		_, _ = conn.Read(b)
	}
	return nil
}

// program runs curl or iperf3 on the host of the client.
func (cs *clients) program(ctx context.Context, p clientPlan) error {
	h := cs.bed.host(p.From)
	to := server(p.IPv6)
	var args []string
	switch p.Kind {
	case web:
		args = []string{"curl", "-s", "-o", "/dev/null", "--max-time", "90", "--connect-timeout",
			"10", fmt.Sprintf("http://%s/%d", netip.AddrPortFrom(to, webPort), p.Bytes)}
	case iperf:
		args = []string{"iperf3", "-c", to.String(), "-p", strconv.Itoa(iperfPort), "-t",
			strconv.Itoa(max(1, int(p.Lives.Seconds()))), "-P", "2", "--connect-timeout", "5000"}
	}
	if _, err := exec.LookPath(args[0]); err != nil {
		return nil
	}
	c := command(ctx, p.From, h.ns, args...)
	defer closeFiles(c)
	out, err := c.CombinedOutput()
	if err != nil && p.Kind == iperf {
		return nil // its server takes one client at a time, and it gives up in an outage
	}
	if err != nil && cs.bed.downWithin(clientPatience) {
		return errNoPath
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", args[0], err, out)
	}
	return nil
}

// stuckAfter is how long a sender may get nowhere while its path is up. TCP's timeout doubles in an
// outage, so after the longest one it may be 4 s.
const stuckAfter = 15 * time.Second

// check looks for flows that are stuck.
func (cs *clients) check() {
	up := cs.bed.up()
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c := range cs.conns {
		if !c.sends || c.plan.From == guestHost && c.guest != cs.guest {
			continue
		}
		info, err := socket.Info(c.conn)
		if err != nil || info.State != tcpEstablished {
			continue
		}
		if info.Bytes_acked != c.acked {
			c.acked, c.since, c.stuck = info.Bytes_acked, time.Now(), false
			continue
		}
		waits := time.Since(c.since)
		if !up.IsZero() {
			waits = min(waits, time.Since(up))
		} else {
			waits = 0
		}
		if waits > stuckAfter && !c.stuck {
			c.stuck = true
			cs.report.violation("stuck: %v, %s: nothing acknowledged for %v: %+v",
				c.plan, c.control(), waits.Round(time.Millisecond), *info)
		}
	}
}

// guestGone resets the guest's connections, whose link is gone.
func (cs *clients) guestGone() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.guest++
	for c := range cs.conns {
		if c.plan.From == guestHost {
			_ = c.conn.SetLinger(0)
			_ = c.conn.Close()
		}
	}
}

// counts returns how many clients of each kind ended.
func (cs *clients) counts() map[string]int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return maps.Clone(cs.done)
}

// wait waits for all clients to end; it returns those that did not.
func (cs *clients) wait(patience time.Duration) []string {
	ended := make(chan struct{})
	go func() {
		cs.wg.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-time.After(patience):
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	var left []string
	for c := range cs.conns {
		left = append(left, c.plan.String())
	}
	return left
}
