// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// nicClasses are what a NIC's driver reports of its classes by data center bridging (DCB), as the
// command dcb of iproute2 shows it.
type nicClasses struct {
	// pfc has a bit for each priority on which PFC is on; nil: the driver does not tell.
	pfc *uint8
	// priorities are those of the DSCPs that have one. All other packets have priority 0.
	priorities map[uint8]uint8
	// dcbx says who negotiates them with the switch; 0: the driver does not tell.
	dcbx uint8
}

// Values of linux/dcbnl.h.
const (
	dcbCmdIEEEGet = 21

	dcbAttrIfname       = 1
	dcbAttrIEEE         = 13
	dcbAttrDCBX         = 14
	dcbAttrIEEEPFC      = 2
	dcbAttrIEEEAppTable = 3
	dcbAttrIEEEApp      = 1

	dcbAppDSCP        = 5
	dcbxLLDManaged    = 2
	dcbxStatic        = 16
	sizeofDCBMessage  = 4
	sizeofDCBApp      = 4
	pfcEnabledAt      = 1 // in struct ieee_pfc
	priorities, dscps = 8, 64
	rtnetlinkGetDCB   = netlink.HeaderType(unix.RTM_GETDCB)
)

// dcbRequest returns the message that asks for what is configured at an interface.
func dcbRequest(name string) (netlink.Message, error) {
	e := netlink.NewAttributeEncoder()
	e.String(dcbAttrIfname, name)
	attributes, err := e.Encode()
	return netlink.Message{
		Header: netlink.Header{Type: rtnetlinkGetDCB, Flags: netlink.Request},
		Data:   append([]byte{unix.AF_UNSPEC, dcbCmdIEEEGet, 0, 0}, attributes...),
	}, err
}

// parseDCB reads the answer to a dcbRequest.
func parseDCB(answer []byte) (n nicClasses, err error) {
	n.priorities = map[uint8]uint8{}
	if len(answer) < sizeofDCBMessage {
		return n, fmt.Errorf("%d bytes are too few for an answer", len(answer))
	}
	d, err := netlink.NewAttributeDecoder(answer[sizeofDCBMessage:])
	if err != nil {
		return n, err
	}
	for d.Next() {
		switch d.Type() {
		case dcbAttrIEEE:
			d.Nested(n.parseIEEE)
		case dcbAttrDCBX:
			n.dcbx = d.Uint8()
		}
	}
	return n, d.Err()
}

func (n *nicClasses) parseIEEE(d *netlink.AttributeDecoder) error {
	for d.Next() {
		switch d.Type() {
		case dcbAttrIEEEPFC:
			if pfc := d.Bytes(); len(pfc) > pfcEnabledAt {
				n.pfc = &pfc[pfcEnabledAt]
			}
		case dcbAttrIEEEAppTable:
			d.Nested(n.parseApps)
		}
	}
	return nil // the caller looks at d.Err
}

// parseApps reads the table of which packets have which priority. Of two for a DSCP drivers take
// the higher one.
func (n *nicClasses) parseApps(d *netlink.AttributeDecoder) error {
	for d.Next() {
		app := d.Bytes()
		if d.Type() != dcbAttrIEEEApp || len(app) < sizeofDCBApp || app[0] != dcbAppDSCP {
			continue
		}
		dscp, priority := d.ByteOrder.Uint16(app[2:]), app[1]
		if dscp >= dscps || priority >= priorities {
			return fmt.Errorf("DSCP %d of priority %d: want a DSCP below %d and a priority "+
				"below %d", dscp, priority, dscps, priorities)
		}
		key := uint8(dscp)
		n.priorities[key] = max(n.priorities[key], priority)
	}
	return nil
}

func dialRoute() (*netlink.Conn, error) { return netlink.Dial(unix.NETLINK_ROUTE, nil) }

// readDCB asks an interface's driver. The error wraps [unix.EOPNOTSUPP] if it does not report DCB.
func readDCB(conn *netlink.Conn, name string) (n nicClasses, err error) {
	request, err := dcbRequest(name)
	if err != nil {
		return n, err
	}
	answers, err := conn.Execute(request)
	if err != nil {
		return n, err
	}
	if len(answers) != 1 || answers[0].Header.Type != rtnetlinkGetDCB {
		return n, fmt.Errorf("%d answers that are not of DCB, want one", len(answers))
	}
	return parseDCB(answers[0].Data)
}

// classes are the DSCPs that stamp gives packets at an interface.
type classes struct{ data, control uint8 }

// checkDCB looks at how the NIC treats the classes; stamped is nil where packets have none.
func checkDCB(
	found *checks, dial func() (*netlink.Conn, error), name string, stamped *classes,
) {
	var n nicClasses
	conn, err := dial()
	if err == nil {
		defer conn.Close()
		n, err = readDCB(conn, name)
	}
	check := name + " PFC and DSCP"
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		found.ok(check, "not reported by the driver")
	case err != nil:
		found.bad(Warn, check, err.Error(), "an answer of DCB", "dcb pfc show dev "+name)
	default:
		n.check(found, name, stamped)
	}
}

func (n nicClasses) check(found *checks, name string, stamped *classes) {
	n.checkDSCP(found, name, stamped)
	n.checkPFC(found, name, stamped)
	const firmware = dcbxLLDManaged
	if stamped != nil && n.dcbx&(firmware|dcbxStatic) == firmware {
		found.bad(Warn, name+" DCBX", "the NIC's firmware negotiates with the switch, and may "+
			"change PFC and DSCP at any time", "one who sets them",
			"dcb dcbx set dev "+name+" host ieee, or set them at the switch only")
	}
}

func (n nicClasses) checkDSCP(found *checks, name string, stamped *classes) {
	check := name + " DSCP"
	is := "the NIC goes by no DSCP"
	if len(n.priorities) > 0 {
		var all []string
		for _, dscp := range slices.Sorted(maps.Keys(n.priorities)) {
			all = append(all, fmt.Sprintf("%d:%d", dscp, n.priorities[dscp]))
		}
		is = "priorities of DSCPs " + strings.Join(all, " ")
	}
	// Without PFC a NIC's priorities do not matter: the switch goes by the DSCP.
	isPFCOff := n.pfc != nil && *n.pfc == 0
	if stamped == nil || isPFCOff || n.of(stamped.data) != n.of(stamped.control) {
		found.ok(check, "%s", is)
		return
	}
	found.bad(Warn, check, fmt.Sprintf("%s: data (DSCP %d) and CNPs and ACKs (DSCP %d) share "+
		"priority %d", is, stamped.data, stamped.control, n.of(stamped.data)),
		"a priority for each", fmt.Sprintf("dcb app add dev %s dscp-prio %d:3 %d:6, with the "+
			"priorities of your fabric", name, stamped.data, stamped.control))
}

// of returns the priority of a DSCP's packets.
func (n nicClasses) of(dscp uint8) uint8 { return n.priorities[dscp] }

func (n nicClasses) checkPFC(found *checks, name string, stamped *classes) {
	check := name + " PFC"
	if n.pfc == nil {
		found.ok(check, "not reported by the driver")
		return
	}
	if *n.pfc == 0 {
		found.ok(check, "off, which is right if the fabric has none")
		return
	}
	is := "on for priorities " + prioritiesIn(*n.pfc)
	has := func(dscp uint8) bool { return *n.pfc>>n.of(dscp)&1 == 1 }
	switch {
	case stamped == nil:
		found.ok(check, "%s", is)
	case !has(stamped.data):
		found.bad(Warn, check, fmt.Sprintf("%s, but data (DSCP %d) has priority %d", is,
			stamped.data, n.of(stamped.data)), "PFC for the priority of data",
			fmt.Sprintf("dcb app add dev %s dscp-prio %d:%d, if that is the fabric's lossless "+
				"priority", name, stamped.data, bits.TrailingZeros8(*n.pfc)))
	case has(stamped.control):
		found.bad(Warn, check, fmt.Sprintf("%s, and CNPs and ACKs (DSCP %d) have priority %d: "+
			"they stop when data does", is, stamped.control, n.of(stamped.control)),
			"no PFC for the priority of CNPs and ACKs",
			fmt.Sprintf("dcb pfc set dev %s prio-pfc %d:off, or another priority for DSCP %d",
				name, n.of(stamped.control), stamped.control))
	default:
		found.ok(check, "%s", is)
	}
}

// prioritiesIn lists the bits of a bitmap.
func prioritiesIn(bitmap uint8) string {
	var all []string
	for p := range priorities {
		if bitmap>>p&1 == 1 {
			all = append(all, fmt.Sprint(p))
		}
	}
	return strings.Join(all, ", ")
}
