/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The headers that most files of Linux include, and with them those that these include. To read
 * them takes the compiler longer than all else, so they are compiled once, into first.h.gch. None
 * may declare trace events: who creates these includes their header for the first time.
 */
#include <linux/bpf.h>
#include <linux/fs.h>
#include <linux/interrupt.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/netlink.h>
#include <net/sock.h>
