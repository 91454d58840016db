/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The watchdog of PFC, as SONiC's: when a switch acts on a queue that is paused for long, and when
 * it ends that (sonic-swss, orchagent/pfcwdorch.cpp, pfc_detect_broadcom.lua, pfc_restore.lua). It
 * looks at each lossless queue once a poll. What it does to the queue is the switch's.
 */
#ifndef PCN_ALGO_PFC_WATCHDOG_H
#define PCN_ALGO_PFC_WATCHDOG_H

enum pfc_watchdog_action {
	PFC_WATCHDOG_ALERT,   /* note the storm, and nothing else */
	PFC_WATCHDOG_FORWARD, /* send in spite of PAUSE */
	PFC_WATCHDOG_DROP,    /* empty the queue, and drop what comes for it or by its port */
};

struct pfc_watchdog_params {
	u64 poll_ns;	   /* between two looks; 0: no watchdog */
	u64 first_ns;	   /* the first look, from the beginning of the run */
	u32 detect_polls;  /* looks in a row of a storm, before the action */
	u32 restore_polls; /* looks in a row without PAUSE, before its end */
	enum pfc_watchdog_action action;
	u32 pad;
};

/* What it knows of a queue. */
struct pfc_watchdog {
	u64 heard_ns; /* when a RESUME came while the queue did not obey */
	u32 polls;    /* looks in a row that found what it waits for */
	u32 stormed;  /* a storm was found, and is not over */
	u32 told;     /* the peer's latest word was PAUSE; kept while the queue does not obey */
	u32 pad;
};

enum pfc_watchdog_verdict {
	PFC_WATCHDOG_WAIT,
	PFC_WATCHDOG_ACT, /* a storm: do the action */
	PFC_WATCHDOG_END, /* it is over: the queue obeys PFC again */
};

/*
 * A look at a queue that is paused since paused_since_ns, or is not. A storm is a queue that did
 * not go on since the look before. It is over when no PAUSE was in force since then; if the queue
 * obeys PFC all along, when it went on.
 */
static __always_inline enum pfc_watchdog_verdict
pfc_watchdog_poll(const struct pfc_watchdog_params *p, struct pfc_watchdog *w, u64 t_ns,
		  bool paused, u64 paused_since_ns)
{
	u64 last_ns = t_ns > p->poll_ns ? t_ns - p->poll_ns : 0;
	bool storm = paused && paused_since_ns <= last_ns;
	u32 need = w->stormed ? p->restore_polls : p->detect_polls;
	bool as_awaited = storm;

	if (w->stormed && p->action == PFC_WATCHDOG_ALERT) {
		as_awaited = !storm;
		need = 1;
	} else if (w->stormed) {
		as_awaited = !w->told && w->heard_ns <= last_ns;
	}
	w->polls = as_awaited ? w->polls + 1 : 0;
	if (w->polls < need || !as_awaited)
		return PFC_WATCHDOG_WAIT;
	w->polls = 0;
	w->stormed = !w->stormed;
	w->told = w->stormed;
	return w->stormed ? PFC_WATCHDOG_ACT : PFC_WATCHDOG_END;
}

/* pfc_watchdog_hears: a PAUSE or a RESUME came for a queue that does not obey. */
static __always_inline void pfc_watchdog_hears(struct pfc_watchdog *w, u64 t_ns, bool pause)
{
	if (!pause && w->told)
		w->heard_ns = t_ns;
	w->told = pause;
}

#endif
