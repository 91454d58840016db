/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PCN_IRQFLAGS_H
#define PCN_IRQFLAGS_H

/*
 * Interrupts of User Mode Linux are signals of the host. Its kernel switches them off and on by a
 * variable: a signal that comes while they are off is noted. Mainline does so in functions of
 * signal.c, which a packet calls some hundred times.
 */
extern int signals_enabled;
extern unsigned int signals_pending;

/* A bit of signals_pending beside those of signal.c: time_travel_irqs is not empty. */
#define PCN_EVENT_PENDING (1U << 8)

void unblock_signals(void);

#define PCN_BARRIER() __asm__ __volatile__("" ::: "memory")

#define arch_local_save_flags arch_local_save_flags
static inline unsigned long arch_local_save_flags(void)
{
	return *(volatile int *)&signals_enabled;
}

#define arch_local_irq_disable arch_local_irq_disable
static inline void arch_local_irq_disable(void)
{
	signals_enabled = 0;
	PCN_BARRIER();
}

#define arch_local_irq_enable arch_local_irq_enable
static inline void arch_local_irq_enable(void)
{
	PCN_BARRIER();
	if (signals_enabled)
		return;
	signals_enabled = 1;
	PCN_BARRIER();
	/* a signal from now on is handled at once, one from before is noted */
	if (__builtin_expect(signals_pending, 0)) {
		signals_enabled = 0;
		unblock_signals();
	}
}

#define arch_local_irq_restore arch_local_irq_restore
static inline void arch_local_irq_restore(unsigned long flags)
{
	if (flags)
		arch_local_irq_enable();
	else
		arch_local_irq_disable();
}

#endif
