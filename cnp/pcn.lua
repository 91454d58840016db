-- SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
--
-- PCN's congestion notification packet (CNP) and QCN's congestion notification
-- message (CNM) in Wireshark.
--
-- Try it:  tshark -X lua_script:pcn.lua -r pfc.pcapng -Y "pcn || cnm"
--
-- pcn comes after Wireshark's own InfiniBand dissector, which does not look into
-- the 16 reserved bytes of a CNP. A CNP of a RoCE NIC has zeros there: it is left
-- alone, because no TCP flow has port 0.
--
-- cnm has an EtherType of its own, of which Wireshark knows nothing.

local CNP_OPCODE = 0x81
local BTH_UE = 2 -- the bit of its flags, from the left
local CNP_LEN = 32 -- BTH 12, reserved 16, ICRC 4
local ECN_CE = 3

local ETHERTYPE_CNM = 0x22e7
local CNM_HEADER_LEN = 24 -- the PDU before the MSDU
local CNM_QUEUE_UNIT = 64 -- bytes
local IPV4_LEN = 20 -- without options
local TCP, UDP = 6, 17

local pcn = Proto("pcn", "PCN Congestion Notification")

local f_decrease = ProtoField.bool("pcn.decrease", "Decrease", base.NONE, nil, nil,
	"Whether the sender is to slow down: ECN is CE")
local f_undetermined = ProtoField.bool("pcn.undetermined", "Undetermined", base.NONE, nil, nil,
	"Whether the sender is to hold its rate: the bit beside BECN (TCD)")
local f_recrate = ProtoField.uint32("pcn.recrate", "Receiving rate (Mbit/s)", base.DEC, nil, nil,
	"Rate at which the receiver got the flow, 0 in an increase")
local f_srcport = ProtoField.uint16("pcn.srcport", "Flow source port", base.DEC, nil, nil,
	"TCP port of the flow's sender, to which this CNP goes")
local f_dstport = ProtoField.uint16("pcn.dstport", "Flow destination port", base.DEC, nil, nil,
	"TCP port of the flow's receiver, from which this CNP comes")
local f_udp = ProtoField.bool("pcn.udp", "Flow of UDP", base.NONE, nil, nil, "Whether the flow is one of UDP, and not of TCP")
local f_tag = ProtoField.bytes("pcn.tag", "Tag", base.NONE, "Signature, in a signed CNP")
local f_slot = ProtoField.uint32("pcn.tag.slot", "Key", base.DEC, nil, 0x80000000, "Slot of the key")
local f_stamp = ProtoField.uint32("pcn.tag.stamp", "Time (8192 ns)", base.DEC, nil, 0x7fffffff,
	"Wall clock when it was signed, which begins anew every 4.9 hours")
local f_mac = ProtoField.uint32("pcn.tag.mac", "SipHash", base.HEX, nil, nil, "Upper half of SipHash-2-4")
pcn.fields = { f_decrease, f_undetermined, f_recrate, f_srcport, f_dstport, f_udp, f_tag, f_slot, f_stamp, f_mac }

local opcode_of = Field.new("infiniband.bth.opcode")
local ecn_of = Field.new("ip.dsfield.ecn")
local ecn_ipv6_of = Field.new("ipv6.tclass.ecn")
local payload_of = Field.new("udp.payload")

function pcn.dissector(_, pinfo, tree)
	local opcode, ecn, payload = opcode_of(), ecn_of() or ecn_ipv6_of(), payload_of()
	if not (opcode and ecn and payload) or opcode.value ~= CNP_OPCODE then
		return
	end
	local data = payload.range
	if data:len() ~= CNP_LEN then
		return
	end
	local recrate, srcport, dstport = data(12, 4), data(16, 2), data(18, 2)
	if srcport:uint() == 0 or dstport:uint() == 0 then
		return
	end

	local decrease = ecn.value == ECN_CE
	local undetermined = data(4, 1):bitfield(BTH_UE, 1) == 1
	local verdict = "increase"
	if decrease then
		verdict = string.format("decrease to %d Mbit/s", recrate:uint())
	elseif undetermined then
		verdict = "hold"
	end
	local flow = string.format("%d -> %d", srcport:uint(), dstport:uint())

	local subtree = tree:add(pcn, data(12, 16), "PCN CNP, flow " .. flow .. ": " .. verdict)
	subtree:add(f_decrease, ecn.range, decrease)
	subtree:add(f_undetermined, data(4, 1), undetermined)
	subtree:add(f_recrate, recrate)
	subtree:add(f_srcport, srcport)
	subtree:add(f_dstport, dstport)
	if data(11, 1):uint() == UDP then
		subtree:add(f_udp, data(11, 1), true)
	end
	local tag = data(20, 8)
	if tag(0, 4):uint() ~= 0 or tag(4, 4):uint() ~= 0 then
		local tree_of_tag = subtree:add(f_tag, tag)
		tree_of_tag:add(f_slot, tag(0, 4))
		tree_of_tag:add(f_stamp, tag(0, 4))
		tree_of_tag:add(f_mac, tag(4, 4))
	end

	pinfo.cols.protocol:set("PCN CNP")
	pinfo.cols.info:set("flow " .. flow .. " " .. verdict)
end

register_postdissector(pcn)

local cnm = Proto("cnm", "QCN Congestion Notification Message")

local c_version = ProtoField.uint16("cnm.version", "Version", base.DEC, nil, 0xf000)
local c_reserved = ProtoField.uint16("cnm.reserved", "Reserved", base.HEX, nil, 0x0fc0)
local c_qntzfb = ProtoField.uint16("cnm.qntzfb", "Quantized feedback", base.DEC, nil, 0x003f,
	"How congested the queue is, of 63")
local c_cpid = ProtoField.uint64("cnm.cpid", "Congestion point", base.HEX)
local c_qoffset = ProtoField.int16("cnm.qoffset", "Queue offset (64 bytes)", base.DEC, nil, nil,
	"How much longer the queue is than it should be")
local c_qdelta = ProtoField.int16("cnm.qdelta", "Queue delta (64 bytes)", base.DEC, nil, nil,
	"How much the queue has grown since the last sample")
local c_priority = ProtoField.uint16("cnm.priority", "Encapsulated priority", base.DEC, nil, 0xe000,
	"Priority of the sampled frame")
local c_dst = ProtoField.ether("cnm.dst", "Encapsulated destination",
	"Destination of the sampled frame")
local c_msdu_len = ProtoField.uint16("cnm.msdu_len", "Encapsulated MSDU length", base.DEC)
local c_msdu = ProtoField.bytes("cnm.msdu", "Encapsulated MSDU", base.NONE,
	"Start of what follows the Ethernet header in the sampled frame")
local c_ip_src = ProtoField.ipv4("cnm.ip.src", "Source address of the flow")
local c_ip_dst = ProtoField.ipv4("cnm.ip.dst", "Destination address of the flow")
local c_ip_proto = ProtoField.uint8("cnm.ip.proto", "Protocol of the flow", base.DEC)
local c_srcport = ProtoField.uint16("cnm.srcport", "Source port of the flow", base.DEC)
local c_dstport = ProtoField.uint16("cnm.dstport", "Destination port of the flow", base.DEC)
cnm.fields = {
	c_version, c_reserved, c_qntzfb, c_cpid, c_qoffset, c_qdelta, c_priority, c_dst, c_msdu_len, c_msdu,
	c_ip_src, c_ip_dst, c_ip_proto, c_srcport, c_dstport,
}

-- dissect_flow shows which flow an MSDU is of, if it is IPv4's, and returns its
-- name. Its EtherType is not in the CNM. Wireshark's own dissectors would take the
-- MSDU for another packet of the flow, damaged and out of order.
local function dissect_flow(msdu, tree)
	local ipv4 = msdu:len() >= IPV4_LEN and msdu(0, 1):uint() == 0x45
	if not ipv4 then
		return ""
	end
	local src, dst, protocol = msdu(12, 4), msdu(16, 4), msdu(9, 1)
	tree:add(c_ip_src, src)
	tree:add(c_ip_dst, dst)
	tree:add(c_ip_proto, protocol)
	local ports = msdu:len() >= IPV4_LEN + 4 and (protocol:uint() == TCP or protocol:uint() == UDP)
	if not ports then
		return string.format("%s -> %s ", src:ipv4(), dst:ipv4())
	end
	local srcport, dstport = msdu(IPV4_LEN, 2), msdu(IPV4_LEN + 2, 2)
	tree:add(c_srcport, srcport)
	tree:add(c_dstport, dstport)
	return string.format("flow %d -> %d ", srcport:uint(), dstport:uint())
end

function cnm.dissector(buf, pinfo, tree)
	if buf:len() < CNM_HEADER_LEN then
		return 0
	end
	local qntzfb, qoffset, qdelta = buf(0, 2):bitfield(10, 6), buf(10, 2):int(), buf(12, 2):int()
	local msdu_len = math.min(buf(22, 2):uint(), buf:len() - CNM_HEADER_LEN)
	local feedback = string.format("QntzFb %d, Qoff %+d bytes, Qdelta %+d bytes",
		qntzfb, qoffset * CNM_QUEUE_UNIT, qdelta * CNM_QUEUE_UNIT)

	local subtree = tree:add(cnm, buf(0, CNM_HEADER_LEN + msdu_len))
	subtree:add(c_version, buf(0, 2))
	subtree:add(c_reserved, buf(0, 2))
	subtree:add(c_qntzfb, buf(0, 2))
	subtree:add(c_cpid, buf(2, 8))
	subtree:add(c_qoffset, buf(10, 2))
	subtree:add(c_qdelta, buf(12, 2))
	subtree:add(c_priority, buf(14, 2))
	subtree:add(c_dst, buf(16, 6))
	subtree:add(c_msdu_len, buf(22, 2))
	local flow = ""
	if msdu_len > 0 then
		local msdu = buf(CNM_HEADER_LEN, msdu_len)
		flow = dissect_flow(msdu, subtree:add(c_msdu, msdu))
	end
	subtree:set_text("QCN CNM, " .. flow .. feedback)

	pinfo.cols.protocol:set("QCN CNM")
	pinfo.cols.info:set(flow .. feedback)
	return CNM_HEADER_LEN + msdu_len
end

DissectorTable.get("ethertype"):add(ETHERTYPE_CNM, cnm)
