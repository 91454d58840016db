/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The names that make gives a file. It defines them as PCN_..., which no header has: a compiler
 * takes compiled headers only if none of the names in them is defined before.
 */
#define KBUILD_BASENAME	 PCN_BASENAME
#define KBUILD_MODFILE	 PCN_MODFILE
#define KBUILD_MODNAME	 PCN_MODNAME
#define __KBUILD_MODNAME PCN__MODNAME
