// SPDX-License-Identifier: Apache-2.0

// Package loader registers PCN's congestion controls with the kernel and reads their flows.
//
// A congestion control is registered while its [Control] is open. Sockets select it by name, with
// setsockopt(TCP_CONGESTION) or net.ipv4.tcp_congestion_control; sockets that use it keep it after
// Close.
package loader
