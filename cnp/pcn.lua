-- SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
--
-- PCN's congestion notification packet (CNP) in Wireshark.
--
-- Try it:  tshark -X lua_script:pcn.lua -r pfc.pcapng -Y pcn
--
-- It comes after Wireshark's own InfiniBand dissector, which does not look into
-- the 16 reserved bytes of a CNP. A CNP of a RoCE NIC has zeros there: it is left
-- alone, because no TCP flow has port 0.

local CNP_OPCODE = 0x81
local CNP_LEN = 32 -- BTH 12, reserved 16, ICRC 4
local ECN_CE = 3

local pcn = Proto("pcn", "PCN Congestion Notification")

local f_decrease = ProtoField.bool("pcn.decrease", "Decrease", base.NONE, nil, nil,
	"Whether the sender is to slow down: ECN is CE")
local f_recrate = ProtoField.uint32("pcn.recrate", "Receiving rate (Mbit/s)", base.DEC, nil, nil,
	"Rate at which the receiver got the flow, 0 in an increase")
local f_srcport = ProtoField.uint16("pcn.srcport", "Flow source port", base.DEC, nil, nil,
	"TCP port of the flow's sender, to which this CNP goes")
local f_dstport = ProtoField.uint16("pcn.dstport", "Flow destination port", base.DEC, nil, nil,
	"TCP port of the flow's receiver, from which this CNP comes")
pcn.fields = { f_decrease, f_recrate, f_srcport, f_dstport }

local opcode_of = Field.new("infiniband.bth.opcode")
local ecn_of = Field.new("ip.dsfield.ecn")
local payload_of = Field.new("udp.payload")

function pcn.dissector(_, pinfo, tree)
	local opcode, ecn, payload = opcode_of(), ecn_of(), payload_of()
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
	local verdict = "increase"
	if decrease then
		verdict = string.format("decrease to %d Mbit/s", recrate:uint())
	end
	local flow = string.format("%d -> %d", srcport:uint(), dstport:uint())

	local subtree = tree:add(pcn, data(12, 16), "PCN CNP, flow " .. flow .. ": " .. verdict)
	subtree:add(f_decrease, ecn.range, decrease)
	subtree:add(f_recrate, recrate)
	subtree:add(f_srcport, srcport)
	subtree:add(f_dstport, dstport)

	pinfo.cols.protocol:set("PCN CNP")
	pinfo.cols.info:set("flow " .. flow .. " " .. verdict)
end

register_postdissector(pcn)
