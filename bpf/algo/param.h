/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How an algorithm describes itself. The texts go into the object's BTF, from which package config/scheme reads them:
 * the keys of experiment and host files with their units, ranges, defaults and documentation, and the columns of
 * statistics. They cost nothing at run time.
 *
 * The unit of a field follows from its name: _bps is a rate, _ns a time, _bytes a size, _packets a count. Its format
 * follows from its type: one of the typedefs below, an enum (whose names are its values in lower case, without what
 * they have in common), or a plain integer.
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
 * PARAM: a field of a struct of parameters that users set. The range is "LOW to HIGH", where "above LOW" and "below
 * HIGH" leave the bound itself out. Bounds and defaults are values with a unit, or formulas of them, of other keys, and
 * of line_rate, base_rtt and frame (bytes of a full frame): "min(100Mbps, line_rate / 10)". Of an enum, the range is the
 * values that users may choose, "ai or hai"; empty: all.
 */
#define PARAM(doc_, range_, default_)                                                              \
	DESCRIBE("doc:" doc_) DESCRIBE("range:" range_) DESCRIBE("default:" default_)
/* KEY: the key in files, if it is not the field's name without its unit. */
#define KEY(name_) DESCRIBE("key:" name_)
/* FROM: users do not set it. A formula of what the network has gives its value. */
#define FROM(formula_) DESCRIBE("from:" formula_)
/* UNLESS_GIVEN: what the program gets where the value is 0. */
#define UNLESS_GIVEN(formula_) DESCRIBE("zero:" formula_)
/* WITH_TCD: the value counts with TCD; without, the program gets 0. */
#define WITH_TCD DESCRIBE("with_tcd:")
/* TABLE: an array. Entry i has the formula's value. */
#define TABLE(formula_) DESCRIBE("table:" formula_)
/* DIVIDES: the value divides this one. */
#define DIVIDES(formula_) DESCRIBE("divides:" formula_)
/* PREFIX: of a variable: its keys stand in this mapping. */
#define PREFIX(key_) DESCRIBE("prefix:" key_)
/*
 * OF: what another struct, or another user of the same struct, has to say about one field of a struct that is a
 * member or a variable: "what:text", as above.
 */
#define OF(field_, what_) DESCRIBE("of:" field_ ":" what_)

/* STAT: a field of a flow's state that is shown as a statistic. */
#define STAT(doc_) DESCRIBE("stat:" doc_)

#endif
