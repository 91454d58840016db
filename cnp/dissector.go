// SPDX-License-Identifier: Apache-2.0

package cnp

import _ "embed"

// Dissector is a Lua script for Wireshark and tshark 4.0 or later that names PCN's CNPs and decodes
// their verdict, and decodes QCN's CNMs. Write it to a file in the personal Lua plugins folder, or
// pass that file with -X lua_script:FILE. Its fields of a CNP are pcn.decrease, pcn.recrate
// (Mbit/s), pcn.srcport, pcn.dstport and pcn.udp, and of a signed one pcn.tag, pcn.tag.slot,
// pcn.tag.stamp and pcn.tag.mac. Those of a CNM are cnm.version, cnm.reserved, cnm.qntzfb,
// cnm.cpid, cnm.qoffset and cnm.qdelta (64 bytes), cnm.priority, cnm.dst, cnm.msdu_len and
// cnm.msdu, and of an IPv4 flow cnm.ip.src, cnm.ip.dst, cnm.ip.proto, cnm.srcport and cnm.dstport.
//
//go:embed pcn.lua
var Dissector string
