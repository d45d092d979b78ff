#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/kthread.h>
#include <linux/module.h>

/*
 * Interrupts are off for 1.3 ms, 40 times a second: longer than the period of the measured thread, so that each such
 * interval delays a wake-up.
 */
static struct task_struct *task;

static noinline void keeps_interrupts_off(void)
{
	unsigned long flags;

	local_irq_save(flags);
	udelay(1300);
	local_irq_restore(flags);
}

static int culprit(void *unused)
{
	while (!kthread_should_stop()) {
		keeps_interrupts_off();
		usleep_range(20000, 20100);
	}
	return 0;
}

static int __init start(void)
{
	task = kthread_run(culprit, NULL, "culprit");
	return PTR_ERR_OR_ZERO(task);
}
module_init(start);
MODULE_LICENSE("GPL");
