// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"errors"
	"io"
	"math"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/loader/ns/nstest"
	"github.com/pcn-linux/pcn/tc"
)

const never = uint64(time.Hour) // for a timer

// recovery has timers that do not run out while a test runs.
func recovery(lineRateBps uint64) loader.RecoveryOptions {
	return loader.RecoveryOptions{
		LineRateBps: lineRateBps, MinRateBps: loader.MinSendRateBps,
		RAIBps: lineRateBps / 100, RHAIBps: lineRateBps / 10, TimerNs: never, FastRecovery: 5,
	}
}

func dcqcnOptions(lineRateBps uint64) loader.DCQCNOptions {
	return loader.DCQCNOptions{RecoveryOptions: recovery(lineRateBps), G: 1.0 / 16, InitialAlpha: 0.75, AlphaTimerNs: never, ClampTarget: true}
}

func qcnOptions(lineRateBps uint64) loader.QCNOptions {
	return loader.QCNOptions{RecoveryOptions: recovery(lineRateBps), Gd: 1.0 / 128, MinDecreaseFactor: 0.5}
}

// timelyOptions are such that no round trip changes the rate: none is long, and nothing is added to it.
func timelyOptions(lineRateBps uint64) loader.TIMELYOptions {
	return loader.TIMELYOptions{
		LineRateBps: lineRateBps, MinRateBps: loader.MinSendRateBps,
		TLowNs: never, THighNs: never, MinRTTNs: 1e6, EWMA: 0.5, Beta: 0.8, MaxCut: 0.5,
	}
}

func dcqcn(o loader.DCQCNOptions) func() (*loader.Control, error) {
	return func() (*loader.Control, error) { return loader.RegisterDCQCN(o) }
}

func qcn(o loader.QCNOptions) func() (*loader.Control, error) {
	return func() (*loader.Control, error) { return loader.RegisterQCN(o) }
}

// ibccOptions have a table whose entry i divides the line rate by i + 1.
func ibccOptions(lineRateBps uint64) loader.IBCCOptions {
	o := loader.IBCCOptions{LineRateBps: lineRateBps, TimerNs: never, Increase: 1}
	for delay := range 10 {
		o.CCT = append(o.CCT, loader.NewCCTEntry(float64(delay)))
	}
	return o
}

func ibcc(o loader.IBCCOptions) func() (*loader.Control, error) {
	return func() (*loader.Control, error) { return loader.RegisterIBCC(o) }
}

func timely(o loader.TIMELYOptions) func() (*loader.Control, error) {
	return func() (*loader.Control, error) { return loader.RegisterTIMELY(o) }
}

// controls are all that pace, each at line rate until it hears of congestion.
func controls(lineRateBps uint64) map[string]func() (*loader.Control, error) {
	dcqcnTCD, timelyTCD, ibccTCD := dcqcnOptions(lineRateBps), timelyOptions(lineRateBps), ibccOptions(lineRateBps)
	dcqcnTCD.TCD, timelyTCD.TCDHoldNs, ibccTCD.TCD = true, 1, true
	return map[string]func() (*loader.Control, error){
		"pcn":      pcn(options(lineRateBps)),
		"pcn_line": line(lineRateBps),
		"dcqcn":    dcqcn(dcqcnOptions(lineRateBps)),
		"qcn":      qcn(qcnOptions(lineRateBps)),
		"timely":   timely(timelyOptions(lineRateBps)),
		"ibcc":     ibcc(ibccOptions(lineRateBps)),

		"dcqcn_tcd":  dcqcn(dcqcnTCD),
		"timely_tcd": timely(timelyTCD),
		"ibcc_tcd":   ibcc(ibccTCD),
	}
}

// bad is a change that spoils good options, and what the error says.
type bad[O any] struct {
	change func(*O)
	want   string
}

// refused registers a control with each of the spoilt options.
func refused[O any](t *testing.T, name string, good func() O, register func(O, ...loader.Option) (*loader.Control, error), spoilt []bad[O]) {
	t.Helper()
	for _, c := range spoilt {
		o := good()
		c.change(&o)
		_, err := register(o)
		qt.Check(t, qt.ErrorMatches(err, name+": "+c.want))
	}
}

func TestRecoveryOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		change func(*loader.RecoveryOptions)
		want   string
	}{
		{func(o *loader.RecoveryOptions) { o.LineRateBps = 0 }, "line rate 0 bit/s.*"},
		{func(o *loader.RecoveryOptions) { o.LineRateBps = 801e9 }, "line rate .* want 1 bit/s to 800 Gbit/s"},
		{func(o *loader.RecoveryOptions) { o.MinRateBps = 0 }, "minimum rate 0 bit/s: want 1 bit/s to the line rate, 10000000000 bit/s"},
		{func(o *loader.RecoveryOptions) { o.MinRateBps = 11e9 }, "minimum rate 11000000000 bit/s: .*"},
		{func(o *loader.RecoveryOptions) { o.TimerNs = 0 }, "timer 0 ns: want more"},
		{func(o *loader.RecoveryOptions) { o.FastRecovery = 0 }, "no cycle of fast recovery: want 1 or more"},
		{func(o *loader.RecoveryOptions) { o.Half = 3 }, "halving 3: there is none"},
	} {
		d, q := dcqcnOptions(10e9), qcnOptions(10e9)
		c.change(&d.RecoveryOptions)
		c.change(&q.RecoveryOptions)
		_, err := loader.RegisterDCQCN(d)
		qt.Check(t, qt.ErrorMatches(err, "dcqcn: "+c.want))
		_, err = loader.RegisterQCN(q)
		qt.Check(t, qt.ErrorMatches(err, "qcn: "+c.want))
	}
}

func TestDCQCNOptionsAreChecked(t *testing.T) {
	refused(t, "dcqcn", func() loader.DCQCNOptions { return dcqcnOptions(10e9) }, loader.RegisterDCQCN, []bad[loader.DCQCNOptions]{
		{func(o *loader.DCQCNOptions) { o.DilationShift = 21 }, "dilation shift 21.*"},
		{func(o *loader.DCQCNOptions) { o.G = 0 }, "g 0, initial alpha 0.75, .*"},
		{func(o *loader.DCQCNOptions) { o.G = 1.1 }, "g 1.1, .*"},
		{func(o *loader.DCQCNOptions) { o.G = math.NaN() }, "g NaN, .*"},
		{func(o *loader.DCQCNOptions) { o.InitialAlpha = -0.1 }, ".* initial alpha -0.1, .*"},
		{func(o *loader.DCQCNOptions) { o.InitialAlpha = 1.1 }, ".* initial alpha 1.1, .*"},
		{func(o *loader.DCQCNOptions) { o.InitialAlpha = math.NaN() }, ".* initial alpha NaN, .*"},
		{func(o *loader.DCQCNOptions) { o.AlphaTimerNs = 0 }, ".* alpha timer 0 ns: want 0 < g <= 1, 0 <= alpha <= 1, a timer"},
	})
}

func TestQCNOptionsAreChecked(t *testing.T) {
	refused(t, "qcn", func() loader.QCNOptions { return qcnOptions(10e9) }, loader.RegisterQCN, []bad[loader.QCNOptions]{
		{func(o *loader.QCNOptions) { o.DilationShift = 21 }, "dilation shift 21.*"},
		{func(o *loader.QCNOptions) { o.Gd = 0 }, "Gd 0, minimum decrease factor 0.5: want 0 < Gd <= 1, 0 <= factor <= 1"},
		{func(o *loader.QCNOptions) { o.Gd = 1.1 }, "Gd 1.1, .*"},
		{func(o *loader.QCNOptions) { o.Gd = math.NaN() }, "Gd NaN, .*"},
		{func(o *loader.QCNOptions) { o.MinDecreaseFactor = -0.1 }, ".* factor -0.1: .*"},
		{func(o *loader.QCNOptions) { o.MinDecreaseFactor = 1.1 }, ".* factor 1.1: .*"},
		{func(o *loader.QCNOptions) { o.MinDecreaseFactor = math.NaN() }, ".* factor NaN: .*"},
	})
}

func TestTIMELYOptionsAreChecked(t *testing.T) {
	refused(t, "timely", func() loader.TIMELYOptions { return timelyOptions(10e9) }, loader.RegisterTIMELY, []bad[loader.TIMELYOptions]{
		{func(o *loader.TIMELYOptions) { o.LineRateBps = 0 }, "line rate 0 bit/s.*"},
		{func(o *loader.TIMELYOptions) { o.DilationShift = 21 }, "dilation shift 21.*"},
		{func(o *loader.TIMELYOptions) { o.MinRateBps = 0 }, "minimum rate 0 bit/s: want 1 bit/s to the line rate, 10000000000 bit/s"},
		{func(o *loader.TIMELYOptions) { o.MinRateBps = 11e9 }, "minimum rate 11000000000 bit/s: .*"},
		{func(o *loader.TIMELYOptions) { o.MinRTTNs = 0 }, "minRTT 0 ns, .* want minRTT > 0, T_low <= T_high"},
		{func(o *loader.TIMELYOptions) { o.THighNs = o.TLowNs - 1 }, "minRTT .*, T_low 3600000000000 ns, T_high 3599999999999 ns: .*"},
		{func(o *loader.TIMELYOptions) { o.EWMA = 0 }, "ewma 0, beta 0.8, largest cut 0.5: want each above 0, at most 1"},
		{func(o *loader.TIMELYOptions) { o.EWMA = math.NaN() }, "ewma NaN, .*"},
		{func(o *loader.TIMELYOptions) { o.Beta = 1.1 }, ".* beta 1.1, .*"},
		{func(o *loader.TIMELYOptions) { o.MaxCut = 0 }, ".* largest cut 0: .*"},
	})
}

func TestIBCCOptionsAreChecked(t *testing.T) {
	table := func(entries ...loader.CCTEntry) func(*loader.IBCCOptions) {
		return func(o *loader.IBCCOptions) { o.CCT = entries }
	}
	refused(t, "ibcc", func() loader.IBCCOptions { return ibccOptions(10e9) }, loader.RegisterIBCC, []bad[loader.IBCCOptions]{
		{func(o *loader.IBCCOptions) { o.LineRateBps = 0 }, "line rate 0 bit/s.*"},
		{func(o *loader.IBCCOptions) { o.DilationShift = 21 }, "dilation shift 21.*"},
		{func(o *loader.IBCCOptions) { o.TimerNs = 0 }, "CCTI_Timer 0 ns, CCTI_Increase 1: want more than 0"},
		{func(o *loader.IBCCOptions) { o.Increase = 0 }, ".* CCTI_Increase 0: want more than 0"},
		{func(o *loader.IBCCOptions) { o.Increase = 129 }, ".* CCTI_Increase 129, .* up to 128, .*"},
		{func(o *loader.IBCCOptions) { o.Min = 10 }, "10 entries of the CCT, .* CCTI_Min 10: .* a minimum in the table"},
		{table(), "0 entries of the CCT, .* want 1 to 128 entries, .*"},
		{table(make([]loader.CCTEntry, 129)...), "129 entries of the CCT, .*"},
		{table(loader.CCTEntry{Multiplier: 1 << 14}), "entry 0 of the CCT is 16384 >> 0: want 14 bits and 2"},
		{table(loader.CCTEntry{Multiplier: 1, Shift: 4}), "entry 0 of the CCT is 1 >> 4: .*"},
		{table(loader.CCTEntry{Multiplier: 3}, loader.CCTEntry{Multiplier: 5, Shift: 1}), "entry 1 of the CCT is a shorter delay, 2.5 packet times, .*"},
	})
}

// An entry is the nearest to a delay that 14 bits of multiplier and 2 of shift give.
func TestCCTEntries(t *testing.T) {
	for delay, want := range map[float64]loader.CCTEntry{
		0:       {Multiplier: 0, Shift: 3},
		0.06:    {Multiplier: 0, Shift: 3},
		0.07:    {Multiplier: 1, Shift: 3},
		1:       {Multiplier: 8, Shift: 3},
		2047.9:  {Multiplier: 16383, Shift: 3},
		2047.95: {Multiplier: 8192, Shift: 2},
		4095.5:  {Multiplier: 16382, Shift: 2},
		8000:    {Multiplier: 16000, Shift: 1},
		16383:   {Multiplier: 16383, Shift: 0},
	} {
		got := loader.NewCCTEntry(delay)
		qt.Check(t, qt.Equals(got, want), qt.Commentf("%g", delay))
		qt.Check(t, qt.IsTrue(math.Abs(got.Delay()-delay) <= math.Ldexp(0.5, -int(want.Shift))), qt.Commentf("%g", delay))
	}
}

// sendAll sends n bytes of the stream, receives them, and waits until they are acknowledged.
func (c connection) sendAll(t *testing.T, n int64) {
	t.Helper()
	sent := make(chan error, 1)
	go func() {
		_, err := io.CopyN(c.client, stream(), n)
		sent <- err
	}()
	r := &receiver{conn: c.server, want: stream()}
	r.receive(t, int(n))
	qt.Assert(t, qt.IsNil(<-sent))
	nstest.Eventually(t, "everything is acknowledged", func() bool { return tcpInfo(t, c.client).Unacked == 0 })
}

// A transfer over each control completes; what its flow knows of itself is what the device and TCP know; and flows leave
// the table when they close.
func TestTransferOfEach(t *testing.T) {
	const lineRateBps, bytes = 1e9, 10 << 20
	for _, want := range []struct {
		loader.Flow
		register func() (*loader.Control, error)
	}{
		{loader.Flow{SendRateBps: lineRateBps, TargetRateBps: lineRateBps, Alpha: 0.75, ECN: true}, dcqcn(dcqcnOptions(lineRateBps))},
		{loader.Flow{SendRateBps: lineRateBps, TargetRateBps: lineRateBps}, qcn(qcnOptions(lineRateBps))},
		{loader.Flow{SendRateBps: lineRateBps}, timely(timelyOptions(lineRateBps))},
		{loader.Flow{SendRateBps: lineRateBps, ECN: true}, ibcc(ibccOptions(lineRateBps))},
		{loader.Flow{SendRateBps: lineRateBps, ECN: true}, controls(lineRateBps)["timely_tcd"]},
	} {
		control := registered(t, want.register)
		t.Run(control.Name(), func(t *testing.T) {
			p := newPath(t)
			c := p.connect(t, control)
			for _, k := range []loader.FlowKey{c.key(), reverse(c.key())} {
				f, err := control.Flow(k)
				qt.Assert(t, qt.IsNil(err))
				start := want.Flow
				start.FlowKey, start.SRTT, start.Packets, start.SentBytes = k, f.SRTT, f.Packets, f.SentBytes
				qt.Check(t, qt.Equals(f, start))
				qt.Check(t, qt.IsTrue(f.SentBytes == 0 && f.Packets <= 1), qt.Commentf("%+v", f)) // the SYN counts
			}
			flows, err := control.Flows()
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.HasLen(flows, 2))

			c.sendAll(t, bytes)

			f, err := control.Flow(c.key())
			qt.Assert(t, qt.IsNil(err))
			info := tcpInfo(t, c.client)
			qt.Check(t, qt.Equals(f.Losses, p.recoveries(t)))
			if f.Losses == 0 { // on a busy machine the timer may expire before an ACK comes
				qt.Check(t, qt.Equals(f.SendRateBps, want.SendRateBps))
				qt.Check(t, qt.Equals(f.TargetRateBps, want.TargetRateBps))
			}
			qt.Check(t, qt.Equals(f.Alpha, want.Alpha))
			// TCP does not tell a control of an ACK that comes after a later one
			qt.Check(t, qt.IsTrue(f.Packets <= info.Delivered && f.Packets > info.Delivered*99/100), qt.Commentf("%d of %d packets", f.Packets, info.Delivered))
			qt.Check(t, qt.Equals(f.Retransmissions, info.Total_retrans))
			qt.Check(t, qt.Equals(f.CNPDecrease+f.CNPIncrease+uint64(f.MarkedPackets), 0))
			qt.Check(t, qt.IsTrue(f.SRTT > 0 && f.SRTT < time.Second), qt.Commentf("%v", f.SRTT))
			onWire := float64(p.client.SentBytes(t)) // little else than data
			qt.Check(t, qt.IsTrue(float64(f.SentBytes) > 0.99*onWire && float64(f.SentBytes) < 1.02*onWire),
				qt.Commentf("%d B, %g on the wire", f.SentBytes, onWire))
			back, err := control.Flow(reverse(c.key()))
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(back.SentBytes, 0))

			qt.Assert(t, qt.IsNil(errors.Join(c.client.Close(), c.server.Close())))
			nstest.Eventually(t, "closed flows leave the table", func() bool {
				flows, err := control.Flows()
				return err == nil && len(flows) == 0
			})
			_, err = control.Flow(c.key())
			qt.Check(t, qt.ErrorIs(err, loader.ErrNoFlow))
		})
	}
}

// A rate that is set is kept, and so is the target: no recovery leads back to line rate.
func TestSetRateIsKept(t *testing.T) {
	const lineRateBps = 1e9
	d, q := dcqcnOptions(lineRateBps), qcnOptions(lineRateBps)
	for _, o := range []*loader.RecoveryOptions{&d.RecoveryOptions, &q.RecoveryOptions} {
		o.TimerNs, o.ByteCounterBytes, o.FastRecovery = uint64(time.Millisecond), 100_000, math.MaxUint32
	}
	for _, register := range []func() (*loader.Control, error){dcqcn(d), qcn(q), timely(timelyOptions(lineRateBps))} {
		control := registered(t, register)
		t.Run(control.Name(), func(t *testing.T) {
			p := newPath(t)
			c := p.connect(t, control)
			r := c.start(t)
			for _, rateBps := range []uint64{100e6, 20e6, 50e6} {
				qt.Assert(t, qt.IsNil(control.SetSendRate(c.key(), rateBps)))
				p.checkRate(t, r, float64(rateBps))
				f, err := control.Flow(c.key())
				qt.Assert(t, qt.IsNil(err))
				qt.Check(t, qt.Equals(f.SendRateBps, rateBps))
				if control.Name() != "timely" {
					qt.Check(t, qt.Equals(f.TargetRateBps, rateBps))
				}
				qt.Check(t, qt.IsTrue(f.SentBytes > 0))
			}
			for _, rateBps := range []uint64{0, loader.MinSendRateBps - 1, lineRateBps + 1} {
				err := control.SetSendRate(c.key(), rateBps)
				qt.Check(t, qt.ErrorMatches(err, "set rate of flow .* want 1000000 to 1000000000 bit/s"))
			}
			qt.Check(t, qt.ErrorIs(control.SetSendRate(loader.FlowKey{Src: c.key().Src, Dst: c.key().Src}, 1e8), loader.ErrNoFlow))
		})
	}
}

// A rate that is set is that of the nearest CCTI below, and is kept; and a loss is a BECN.
func TestIBCCRates(t *testing.T) {
	const lineRateBps = 1e9
	control := registered(t, ibcc(ibccOptions(lineRateBps)))
	p := newPath(t)
	c := p.connect(t, control)
	r := c.start(t)
	for rateBps, want := range map[uint64]uint32{500e6: 1, 499e6: 2, 334e6: 2, 100e6: 9, 1e9: 0} {
		qt.Assert(t, qt.IsNil(control.SetSendRate(c.key(), rateBps)))
		f, err := control.Flow(c.key())
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(f.CCTI, want), qt.Commentf("%d bit/s", rateBps))
		qt.Check(t, qt.Equals(f.SendRateBps, lineRateBps/uint64(want+1)))
	}
	qt.Assert(t, qt.IsNil(control.SetSendRate(c.key(), 250e6)))
	p.checkRate(t, r, 250e6)
	for _, rateBps := range []uint64{0, 99e6, lineRateBps + 1} {
		err := control.SetSendRate(c.key(), rateBps)
		qt.Check(t, qt.ErrorMatches(err, "set rate of flow .* want 100000000 to 1000000000 bit/s"))
	}

	d := nstest.NewDropper(t, p.server)
	d.DropEvery(t, 5000)
	for d.Dropped(t) < 1 {
		r.receive(t, 64<<10)
	}
	d.DropEvery(t, 0)
	r.receive(t, 1<<20)
	f, err := control.Flow(c.key())
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(f.Losses >= 1))
	qt.Check(t, qt.Equals(uint64(f.CCTI), min(3+f.Losses, 9)))
}

// Each recovery, and each timeout, halves the rate of every control, once; QCN's and DCQCN's target is what it was.
func TestLossHalvesRateOfEach(t *testing.T) {
	const lineRateBps, drops = 1 << 33, 3
	for _, register := range []func() (*loader.Control, error){
		dcqcn(dcqcnOptions(lineRateBps)), qcn(qcnOptions(lineRateBps)), timely(timelyOptions(lineRateBps)),
	} {
		control := registered(t, register)
		t.Run(control.Name(), func(t *testing.T) {
			p := newPath(t)
			d := nstest.NewDropper(t, p.server)
			c := p.connect(t, control)
			r := c.start(t)
			d.DropEvery(t, 5000) // more than are on the way at once
			for d.Dropped(t) < drops {
				r.receive(t, 64<<10)
			}
			d.DropEvery(t, 0)
			r.receive(t, 1<<20)
			losses := p.recoveries(t)
			qt.Assert(t, qt.IsTrue(losses >= drops), qt.Commentf("%d recoveries", losses))
			f, err := control.Flow(c.key())
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(f.Losses, losses))
			qt.Check(t, qt.Equals(f.SendRateBps, lineRateBps>>losses))
			if control.Name() != "timely" {
				qt.Check(t, qt.Equals(f.TargetRateBps, lineRateBps>>(losses-1)))
			}
			qt.Check(t, qt.IsTrue(f.Retransmissions >= drops), qt.Commentf("%d retransmissions", f.Retransmissions))
		})
	}
}

// The kernel's own controls are there by their names, and keep no flows.
func TestKernelControl(t *testing.T) {
	nstest.RequireRoot(t)
	for _, name := range []string{"reno", "cubic"} {
		t.Run(name, func(t *testing.T) {
			if !available(t, name) {
				_, err := loader.KernelControl(name)
				qt.Assert(t, qt.ErrorIs(err, loader.ErrNotSupported))
				return
			}
			control, err := loader.KernelControl(name)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(control.Name(), name))
			qt.Check(t, qt.IsNil(control.Params()))
			qt.Check(t, qt.IsNil(control.FlowTable()))
			c := newPath(t).connect(t, control)
			c.sendAll(t, 1<<20)
			chosen := func() (chosen string) {
				raw, err := c.client.SyscallConn()
				qt.Assert(t, qt.IsNil(err))
				qt.Assert(t, qt.IsNil(raw.Control(func(fd uintptr) {
					chosen, _ = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
				})))
				return chosen
			}
			qt.Check(t, qt.Equals(chosen(), name))
			flows, err := control.Flows()
			qt.Check(t, qt.IsNil(err))
			qt.Check(t, qt.HasLen(flows, 0))
			_, err = control.Flow(c.key())
			qt.Check(t, qt.ErrorIs(err, loader.ErrNoFlow))
			qt.Check(t, qt.ErrorIs(control.SetSendRate(c.key(), 1e6), loader.ErrNoFlow))
			qt.Assert(t, qt.IsNil(control.Close()))
			qt.Check(t, qt.IsTrue(available(t, name)), qt.Commentf("it is the kernel's"))
			qt.Check(t, qt.Equals(chosen(), name))
		})
	}
}

func TestNoKernelControl(t *testing.T) {
	for _, name := range []string{"none_such", "", "cubi", "reno cubic"} {
		_, err := loader.KernelControl(name)
		qt.Check(t, qt.ErrorIs(err, loader.ErrNotSupported))
		qt.Check(t, qt.ErrorMatches(err, "this kernel has no congestion control "+name+`, only .*reno.*: load its module \(modprobe tcp_`+name+`\): .*`))
	}
}

// until waits, receiving, until the flow is as it should be.
func (r *receiver) until(t *testing.T, control *loader.Control, k loader.FlowKey, what string, so func(f loader.Flow) bool) loader.Flow {
	t.Helper()
	for deadline := time.Now().Add(4 * stallTimeout); ; {
		f, err := control.Flow(k)
		qt.Assert(t, qt.IsNil(err))
		if so(f) {
			return f
		}
		qt.Assert(t, qt.IsTrue(time.Now().Before(deadline)), qt.Commentf("%s: not so: %d bit/s, %d CNPs, alpha %g, round trip %v",
			what, f.SendRateBps, f.CNPDecrease, f.Alpha, f.SRTT))
		r.receive(t, 16<<10)
	}
}

// The whole loop of DCQCN on the kernel's clock: CNPs take the sender down to the floor while packets are marked, and it
// goes back to line rate, through all stages of its recovery, when the marks end.
func TestCNPsControlDCQCN(t *testing.T) {
	const lineRateBps, minRateBps, periodNs = 100e6, 10e6, 1e6
	o := dcqcnOptions(lineRateBps)
	o.MinRateBps, o.TimerNs, o.AlphaTimerNs = minRateBps, 2*periodNs, 2*periodNs
	control := registered(t, dcqcn(o))
	l := newLoop(t, control, tc.MarkedNPOptions{IntervalNs: periodNs})
	l.begin(t)
	for range 2 {
		before, err := control.Flow(l.key())
		qt.Assert(t, qt.IsNil(err))
		l.marker.Mark(t, true)
		f := l.until(t, "the rate falls to the floor", func(f loader.Flow) bool { return f.SendRateBps < 1.1*minRateBps })
		qt.Check(t, qt.IsTrue(f.CNPDecrease > before.CNPDecrease))
		qt.Check(t, qt.Equals(f.CNPIncrease, 0))
		qt.Check(t, qt.IsTrue(f.MarkedPackets > before.MarkedPackets && f.MarkedPackets <= f.Packets))
		l.marker.Mark(t, false)
		f = l.until(t, "the rate rises to line rate", func(f loader.Flow) bool { return f.SendRateBps > 0.99*lineRateBps })
		qt.Check(t, qt.Equals(f.TargetRateBps, lineRateBps))
		qt.Check(t, qt.IsTrue(f.Alpha < 0.75), qt.Commentf("%g", f.Alpha))
	}
	l.checkCounts(t)
}

// The whole loop of InfiniBand's congestion control, by a CNP for every marked packet.
func TestBECNsControlIBCC(t *testing.T) {
	o := ibccOptions(100e6)
	o.TimerNs = 2e6
	control := registered(t, ibcc(o))
	l := newLoop(t, control, tc.MarkedNPOptions{})
	l.begin(t)
	for range 2 {
		l.marker.Mark(t, true)
		f := l.until(t, "the rate falls to the floor", func(f loader.Flow) bool { return f.SendRateBps == 10e6 })
		qt.Check(t, qt.Equals(f.CCTI, 9))
		l.marker.Mark(t, false)
		l.until(t, "the rate rises to line rate", func(f loader.Flow) bool { return f.SendRateBps == 100e6 })
	}
	l.checkCounts(t)
}

// The whole loop with TCD: CE takes the sender down; packets that are ECT(0), as TCP makes them, say UE and hold the rate;
// and it goes up when stamp makes them ECT(1).
func TestTCDHoldsRate(t *testing.T) {
	const lineRateBps, minRateBps, periodNs = 100e6, 10e6, 1e6
	d, i, y := dcqcnOptions(lineRateBps), ibccOptions(lineRateBps), timelyOptions(lineRateBps)
	d.MinRateBps, d.TimerNs, d.AlphaTimerNs, d.TCD = minRateBps, 10*periodNs, 10*periodNs, true
	i.TimerNs, i.TCD = 10*periodNs, true
	// whatever the round trip, TIMELY adds without a mark
	y.MinRateBps, y.DeltaBps, y.TCDHoldNs = minRateBps, 1e6, 20*periodNs
	for _, register := range []func() (*loader.Control, error){dcqcn(d), ibcc(i), timely(y)} {
		control := registered(t, register)
		t.Run(control.Name(), func(t *testing.T) {
			l := newLoop(t, control, tc.MarkedNPOptions{IntervalNs: periodNs, TCD: true})
			if control.Name() == "timely_tcd" {
				qt.Assert(t, qt.IsNil(control.SetSendRate(l.key(), minRateBps)))
				l.begin(t)
			} else {
				l.begin(t)
				l.marker.Mark(t, true)
				l.until(t, "the rate falls to the floor", func(f loader.Flow) bool { return f.SendRateBps < 1.1*minRateBps })
				l.marker.Mark(t, false)
			}
			before := l.until(t, "packets say UE", func(f loader.Flow) bool { return f.CNPHold > 5 })
			f := l.until(t, "and go on", func(f loader.Flow) bool { return f.CNPHold > before.CNPHold+100 })
			qt.Check(t, qt.Equals(f.SendRateBps, before.SendRateBps))

			stamp, err := tc.LoadStamp(tc.StampOptions{ECT1: true})
			qt.Assert(t, qt.IsNil(err))
			t.Cleanup(func() { stamp.Close() })
			qt.Assert(t, qt.IsNil(stamp.Attach(l.path.client.NS, l.path.client.Index())))
			l.until(t, "the rate rises to line rate", func(f loader.Flow) bool { return f.SendRateBps > 0.99*lineRateBps })
			l.checkCounts(t)
		})
	}
}

// loop is a flow whose marks come back in CNPs of DCQCN's notification point.
type loop struct {
	connection
	control  *loader.Control
	path     path
	marker   *nstest.Marker
	np       *tc.NP
	rp       *tc.RP
	receiver *receiver // from begin on
}

func newLoop(t *testing.T, control *loader.Control, o tc.MarkedNPOptions) *loop {
	t.Helper()
	p := newPath(t)
	np, err := tc.LoadMarkedNP(o)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { np.Close() })
	marker := nstest.NewMarker(t, p.server)
	qt.Assert(t, qt.IsNil(np.Attach(p.server.NS, p.server.Index())))
	rp := attachRP(t, control, p.client)
	c := p.connect(t, control)
	return &loop{connection: c, control: control, path: p, marker: marker, np: np, rp: rp}
}

// begin sends from now on.
func (l *loop) begin(t *testing.T) {
	t.Helper()
	l.receiver = l.start(t)
}

// until waits, receiving, until the flow is as it should be.
func (l *loop) until(t *testing.T, what string, so func(f loader.Flow) bool) loader.Flow {
	t.Helper()
	return l.receiver.until(t, l.control, l.key(), what, so)
}

// checkCounts checks that every CNP sent was taken in by the flow.
func (l *loop) checkCounts(t *testing.T) {
	t.Helper()
	got, err := l.rp.Counts()
	qt.Assert(t, qt.IsNil(err))
	sent, err := l.np.Counts()
	qt.Assert(t, qt.IsNil(err))
	f, err := l.control.Flow(l.key())
	qt.Assert(t, qt.IsNil(err))
	checkCounts(t, sent, tc.Counts{"cnp_decrease": f.CNPDecrease, "cnp_hold": f.CNPHold})
	checkCounts(t, got, tc.Counts{"cnp_decrease": f.CNPDecrease, "cnp_hold": f.CNPHold})
}

// checkCounts checks every counter; those that are not in want are to be 0.
func checkCounts(t *testing.T, got, want tc.Counts) {
	t.Helper()
	for name, n := range got {
		qt.Check(t, qt.Equals(n, want[name]), qt.Commentf("%s", name))
	}
}

// attachRP attaches the control's reaction point to the sender.
func attachRP(t *testing.T, control *loader.Control, sender nstest.End) *tc.RP {
	t.Helper()
	rp, err := tc.LoadRP(control, 0)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { rp.Close() })
	qt.Assert(t, qt.IsNil(rp.Attach(sender.NS, sender.Index())))
	return rp
}

// The whole loop of QCN on the kernel's clock: CNMs, for what looks sampled on its last link, take the sender down to the
// floor, and it goes back to line rate when they end.
func TestCNMsControlQCN(t *testing.T) {
	const lineRateBps, minRateBps, verdict, queue, port = 100e6, 10e6, 0x50434e00 | 40<<1, 0, 3
	o := qcnOptions(lineRateBps)
	o.MinRateBps, o.TimerNs, o.ByteCounterBytes, o.Half = minRateBps, 10e6, 150_000, loader.HalfActive
	control := registered(t, qcn(o))
	p := newPath(t)
	events, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: uint32(os.Getpagesize())})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { events.Close() })
	arrive, err := tc.LoadArrive(tc.ArriveOptions{Events: events})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { arrive.Close() })
	qt.Assert(t, qt.IsNil(arrive.Attach(p.server.NS, p.server.Index())))
	sampler := nstest.NewSampler(t, p.server.NS, p.server.Index(), verdict, queue, port)
	rp := attachRP(t, control, p.client)
	c := p.connect(t, control)
	r := c.start(t)
	for range 2 {
		before, err := control.Flow(c.key())
		qt.Assert(t, qt.IsNil(err))
		sampler.Sample(t, true)
		f := r.until(t, control, c.key(), "the rate falls to the floor", func(f loader.Flow) bool { return f.SendRateBps < 1.1*minRateBps })
		qt.Check(t, qt.IsTrue(f.CNPDecrease > before.CNPDecrease))
		sampler.Sample(t, false)
		r.until(t, control, c.key(), "the rate rises to line rate", func(f loader.Flow) bool { return f.SendRateBps > 0.99*lineRateBps })
	}
	got, err := rp.Counts()
	qt.Assert(t, qt.IsNil(err))
	sent, err := arrive.CNMs()
	qt.Assert(t, qt.IsNil(err))
	f, err := control.Flow(c.key())
	qt.Assert(t, qt.IsNil(err))
	checkCounts(t, got, tc.Counts{"cnp_decrease": f.CNPDecrease})
	qt.Check(t, qt.Equals(sent, tc.CNMCounts{Sent: f.CNPDecrease}))
}

// The whole loop of TIMELY on the kernel's clock: behind a bottleneck, where TCP small queues let the round trip rise to
// 5 ms, the rate comes down; and it goes to line rate when there is none.
func TestRTTControlsTIMELY(t *testing.T) {
	const lineRateBps, bottleneckBps = 100e6, 20e6
	o := timelyOptions(lineRateBps)
	o.TLowNs, o.THighNs, o.MinRTTNs, o.DeltaBps = 1e6, 3e6, 1e6, 500_000
	control := registered(t, timely(o))
	p := newPath(t)
	c := p.connect(t, control)
	r := c.start(t)
	bottleneck(t, p.client, bottleneckBps)
	r.until(t, control, c.key(), "the rate falls", func(f loader.Flow) bool { return f.SendRateBps < bottleneckBps })
	const forS = 2
	received, fast, all := 0, 0, 0
	for began := time.Now(); time.Since(began) < forS*time.Second; received += 16 << 10 {
		r.receive(t, 16<<10)
		f, err := control.Flow(c.key())
		qt.Assert(t, qt.IsNil(err))
		if all++; f.SendRateBps > 2*bottleneckBps {
			fast++
		}
	}
	t.Logf("%.1f Mbit/s", float64(received)*8/forS/1e6)
	qt.Check(t, qt.IsTrue(received*8/forS > bottleneckBps/4))
	qt.Check(t, qt.IsTrue(fast < all/10), qt.Commentf("%d of %d times the rate was too high by far", fast, all))
	qt.Assert(t, qt.IsNil(nstest.Netlink(t, p.client.NS).QdiscDel(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: p.client.Index(), Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0)},
	})))
	r.until(t, control, c.key(), "the rate rises to line rate", func(f loader.Flow) bool { return f.SendRateBps > 0.9*lineRateBps })
}

func TestDCTCPOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		o    loader.DCTCPOptions
		want string
	}{
		{loader.DCTCPOptions{G: 0, InitialAlpha: 1}, "g 0, initial alpha 1: want 1, 1/2, ... 1/1024, and 0 to 1"},
		{loader.DCTCPOptions{G: 2, InitialAlpha: 1}, "g 2, .*"},
		{loader.DCTCPOptions{G: 0.3, InitialAlpha: 1}, "g 0.3, .*"},
		{loader.DCTCPOptions{G: 1.0 / 2048, InitialAlpha: 1}, "g 0.00048828125, .*"},
		{loader.DCTCPOptions{G: math.NaN(), InitialAlpha: 1}, "g NaN, .*"},
		{loader.DCTCPOptions{G: 1, InitialAlpha: -0.1}, "g 1, initial alpha -0.1: .*"},
		{loader.DCTCPOptions{G: 1, InitialAlpha: 1.1}, "g 1, initial alpha 1.1: .*"},
		{loader.DCTCPOptions{G: 1, InitialAlpha: math.NaN()}, "g 1, initial alpha NaN: .*"},
		{loader.DCTCPOptions{G: 1, InitialAlpha: 1, DilationShift: 21}, "dilation shift 21: want 0 to 20"},
	} {
		_, err := loader.RegisterDCTCP(c.o)
		qt.Check(t, qt.ErrorMatches(err, "pcn_dctcp: "+c.want))
	}
}

// DCTCP: alpha follows the marks, the window follows alpha, and the receiver tells of each packet's mark.
func TestDCTCP(t *testing.T) {
	const g, initialAlpha = 1.0 / 16, 0.5
	control := registered(t, func() (*loader.Control, error) {
		return loader.RegisterDCTCP(loader.DCTCPOptions{G: g, InitialAlpha: initialAlpha})
	})
	p := newPath(t)
	marker := nstest.NewMarker(t, p.server)
	c := p.connect(t, control)
	f, err := control.Flow(c.key())
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(f.Alpha, initialAlpha))
	qt.Check(t, qt.IsTrue(f.ECN))
	qt.Check(t, qt.Equals(f.SendRateBps, 0))
	qt.Check(t, qt.ErrorMatches(control.SetSendRate(c.key(), 1e6), "set rate of flow .*"))

	r := c.start(t)
	r.until(t, control, c.key(), "alpha falls to 0 without marks", func(f loader.Flow) bool { return f.Alpha == 0 })
	for range 20 {
		marker.Mark(t, true)
		r.receive(t, 128<<10)
		marker.Mark(t, false)
		r.receive(t, 128<<10)
	}
	f, err = control.Flow(c.key())
	qt.Assert(t, qt.IsNil(err))
	marked := float64(netstat(t, p.server, "IpExt", "InCEPkts"))
	qt.Check(t, qt.IsTrue(marked > 500), qt.Commentf("%g packets marked", marked))
	qt.Check(t, qt.IsTrue(math.Abs(float64(f.MarkedPackets)-marked) < 0.05*marked), qt.Commentf("%d of %g marks", f.MarkedPackets, marked))
	qt.Check(t, qt.Equals(f.Losses, p.recoveries(t)))

	marker.Mark(t, true)
	f = r.until(t, control, c.key(), "alpha rises with marks", func(f loader.Flow) bool { return f.Alpha > 0.95 })
	nstest.Eventually(t, "the window closes", func() bool {
		r.receive(t, 64<<10)
		return tcpInfo(t, c.client).Snd_cwnd <= 4
	})
	marker.Mark(t, false)
	r.until(t, control, c.key(), "alpha falls again", func(f loader.Flow) bool { return f.Alpha == 0 })
	qt.Check(t, qt.IsTrue(tcpInfo(t, c.client).Snd_cwnd > 10))

	qt.Assert(t, qt.IsNil(errors.Join(c.client.Close(), c.server.Close())))
	nstest.Eventually(t, "closed flows leave the table", func() bool {
		flows, err := control.Flows()
		return err == nil && len(flows) == 0
	})
}
