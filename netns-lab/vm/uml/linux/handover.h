/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PCN_HANDOVER_H
#define PCN_HANDOVER_H

/*
 * A program of the guest and the kernel take turns: each system call and each page fault is handed
 * over, and back. Mainline sleeps and wakes by futex() at each turn, which is most of a run's time.
 * Here who waits looks for the other's answer for some microseconds before it sleeps, and whoever
 * sleeps says so, so that nobody is woken who is awake.
 */
struct pcn_waiter {
	unsigned int sleeps;
	unsigned int looks; /* how often it looks before it sleeps */
	unsigned int turns; /* without a look, since looking was given up */
};

/*
 * Where the other one has no CPU of its own, to look is in vain: each look in vain halves their
 * number, each that helps doubles it, and when none is left every 64th turn tries again.
 */
#define PCN_LOOKS 128

/* pcn_look returns whether *turn is something else than own before all looks are done. */
static __always_inline int pcn_look(struct pcn_waiter *w, unsigned int *turn, unsigned int own)
{
	unsigned int i;

	if (!w->looks && ++w->turns % 64 == 0)
		w->looks = PCN_LOOKS;
	for (i = 0; i < w->looks; i++) {
		if (__atomic_load_n(turn, __ATOMIC_ACQUIRE) != own) {
			w->looks = w->looks * 2 < PCN_LOOKS ? w->looks * 2 : PCN_LOOKS;
			return 1;
		}
		__builtin_ia32_pause();
	}
	w->looks /= 2;
	return 0;
}

/* pcn_sleep says that who waits is about to sleep; futex() then compares once more. */
static __always_inline void pcn_sleep(struct pcn_waiter *w)
{
	__atomic_store_n(&w->sleeps, 1, __ATOMIC_SEQ_CST);
}

/* pcn_awake says that who waits is awake. */
static __always_inline void pcn_awake(struct pcn_waiter *w)
{
	__atomic_store_n(&w->sleeps, 0, __ATOMIC_SEQ_CST);
}

/* pcn_asleep returns whether the other one must be woken, after its turn was written. */
static __always_inline int pcn_asleep(struct pcn_waiter *w)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&w->sleeps, __ATOMIC_SEQ_CST);
}

/* pcn_publish_time writes the time, for the vDSO, before a program goes on: see clock.c. */
void pcn_publish_time(void);

#endif
