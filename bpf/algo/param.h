/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How an algorithm describes itself. The texts go into the object's BTF, and package config/scheme
 * reads them there. They become the keys of experiment and host files, with units, ranges, defaults
 * and documentation, and the columns of statistics. They cost nothing at run time.
 *
 * A field's unit follows from its name: _bps is a rate, _ns a time, _bytes a size, _packets a
 * count. Its format follows from its type:
 *	a typedef below
 *	an enum		the values' names in lower case, without their common prefix
 *	an integer	as it is
 */
#ifndef PCN_ALGO_PARAM_H
#define PCN_ALGO_PARAM_H

/* Fixed point: fractions in units of 2^-24, 2^-10 and 2^-8. */
typedef u32 q24;
typedef u64 wide_q24;
typedef u32 q10;
typedef u32 q8;
/* A share in thousandths. */
typedef u32 permille;
/* n stands for 2^-n. */
typedef u32 halvings;
/* Yes or no. */
typedef u32 flag;

#ifdef __wasm__
#define DESCRIBE(text_)
#else
#define DESCRIBE(text_) __attribute__((btf_decl_tag(text_)))
#endif

/*
 * PARAM: a parameter that users set.
 *	range	"LOW to HIGH"; "above LOW" and "below HIGH" leave the bound itself out. For an enum:
 *		the values that users may choose, "ai or hai"; empty: all of them.
 *	default	a value with a unit.
 * Bounds and defaults may be formulas of other keys and of line_rate, base_rtt and frame (bytes of
 * a full frame): "min(100Mbps, line_rate / 10)". The simulator also knows path_rtt.
 */
#define PARAM(doc_, range_, default_)                                                              \
	DESCRIBE("doc:" doc_) DESCRIBE("range:" range_) DESCRIBE("default:" default_)
/*
 * HOST: the default on production hosts, where it is not that of experiments. Rules that no paper
 * has are off in experiments, so that these show what the papers describe.
 */
#define HOST(default_) DESCRIBE("host:" default_)
/*
 * AUTO: users may write auto, and the value is that of this formula. It may also use flows, an
 * upper bound of how many flows share a link.
 */
#define AUTO(formula_) DESCRIBE("auto:" formula_)
/* KEY: the key in files, if it is not the field's name without its unit. */
#define KEY(name_) DESCRIBE("key:" name_)
/* FROM: users do not set the parameter. The formula gives its value. */
#define FROM(formula_) DESCRIBE("from:" formula_)
/* UNLESS_GIVEN: if the value is 0, the program gets the value of this formula. */
#define UNLESS_GIVEN(formula_) DESCRIBE("zero:" formula_)
/* WITH_TCD: the parameter only counts with TCD. Without TCD the program gets 0. */
#define WITH_TCD DESCRIBE("with_tcd:")
/* TABLE: an array. The formula gives the value of entry i. */
#define TABLE(formula_) DESCRIBE("table:" formula_)
/* DIVIDES: the parameter must divide this value. */
#define DIVIDES(formula_) DESCRIBE("divides:" formula_)
/* PREFIX: the mapping in which the keys of this variable stand. */
#define PREFIX(key_) DESCRIBE("prefix:" key_)
/*
 * OF: describes one field of a struct that is a member or a variable here, and overrides what the
 * struct itself says. The text is "what:text", as in the macros above: "default:0".
 */
#define OF(field_, what_) DESCRIBE("of:" field_ ":" what_)

/* STAT: a statistic of a flow that users see. */
#define STAT(doc_) DESCRIBE("stat:" doc_)

#endif
