// SPDX-License-Identifier: Apache-2.0

package cnp

import _ "embed"

// Dissector is a Lua script for Wireshark and tshark 4.0 or later that names
// PCN's CNPs and decodes their verdict. Write it to a file in the personal Lua
// plugins folder, or pass that file with -X lua_script:FILE. Its fields are
// pcn.decrease, pcn.recrate (Mbit/s), pcn.srcport and pcn.dstport.
//
//go:embed pcn.lua
var Dissector string
