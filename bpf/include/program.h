/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The programs of a control carry its name: PROGRAM(init) of control pcn is pcn_init. */
#ifndef PCN_PROGRAM_H
#define PCN_PROGRAM_H

#define JOIN_(a_, b_)		    a_##_##b_
#define JOIN(a_, b_)		    JOIN_(a_, b_)
#define TEXT_(a_)		    #a_
#define TEXT(a_)		    TEXT_(a_)
#define PROGRAM(what_)		    JOIN(CONTROL, what_)
#define CONTROL_PROG(program_, ...) BPF_PROG(program_, ##__VA_ARGS__)

#endif
