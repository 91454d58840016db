package tc

import (
	"encoding/hex"
	"fmt"
	"github.com/go-quicktest/qt"
	"pcn/cnp"
	"pcn/loader/ns/nstest"
	"testing"
)

func TestExplore(t *testing.T) {
	h := nstest.New(t)
	d := newTap(t, h, "tap0", 1)
	np, err := LoadNP(NPOptions{TNs: 1, CongestedShare: 0.95})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { np.Close() })
	qt.Assert(t, qt.IsNil(np.Attach(h, d.ifindex)))
	f := make([]byte, 1000)
	copy(f, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 3, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x88, 0x17, 0x70})
	f[16], f[17] = byte((len(f)-14)>>8), byte(len(f)-14)
	f[46] = 5 << 4
	for _, v := range []vnetHeader{{}, unchecked(), segments(100)} {
		d.receive(t, v, f)
		d.receive(t, v, f)
		for _, s := range d.sent(t) {
			fmt.Println(hex.EncodeToString(s))
			fmt.Println(cnp.Parse(s))
		}
	}
	c, _ := np.Counts()
	fmt.Printf("%+v\n", c)
}
