#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/preempt.h>

/*
 * Stretches of known length, in instructions: interrupts or preemption are off for 37, 100 and 300 us of virtual time,
 * each for one part in SHARE of it.
 */
#ifndef SHARE
#define SHARE 10000
#endif

static __always_inline void work(unsigned long instructions)
{
	unsigned long left = instructions / 2;

	asm volatile("1: dec %0\n\tjnz 1b" : "+r"(left) : : "cc");
}

#define PLANTED(us)                                 \
	static noinline void irqs_off_##us(void)        \
	{                                               \
		local_irq_disable();                        \
		work(us * 1000UL);                          \
		local_irq_enable();                         \
	}                                               \
	static noinline void preemption_off_##us(void)  \
	{                                               \
		preempt_disable();                          \
		work(us * 1000UL);                          \
		preempt_enable();                           \
	}                                               \
	static int irqs_##us(void *unused)              \
	{                                               \
		while (!kthread_should_stop()) {            \
			irqs_off_##us();                        \
			usleep_range(us * SHARE, us * SHARE);   \
		}                                           \
		return 0;                                   \
	}                                               \
	static int preemption_##us(void *unused)        \
	{                                               \
		while (!kthread_should_stop()) {            \
			usleep_range(us * SHARE, us * SHARE);   \
			preemption_off_##us();                  \
		}                                           \
		return 0;                                   \
	}

PLANTED(37)
PLANTED(100)
PLANTED(300)

static int __init start(void)
{
	kthread_run(irqs_37, NULL, "irqs_37");
	kthread_run(irqs_100, NULL, "irqs_100");
	kthread_run(irqs_300, NULL, "irqs_300");
	kthread_run(preemption_37, NULL, "preemption_37");
	kthread_run(preemption_100, NULL, "preemption_100");
	kthread_run(preemption_300, NULL, "preemption_300");
	return 0;
}
module_init(start);
MODULE_LICENSE("GPL");
