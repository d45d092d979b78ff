#include <linux/delay.h>
#include <linux/module.h>
#include <linux/timer.h>

/* A recurring softirq of 1.3 ms: longer than the period of the measured thread, so that it always delays a wake-up. */
static void long_softirq(struct timer_list *unused);
static DEFINE_TIMER(timer, long_softirq);

static void long_softirq(struct timer_list *unused)
{
	udelay(1300);
	mod_timer(&timer, jiffies + 3);
}

static int __init start(void)
{
	mod_timer(&timer, jiffies + 3);
	return 0;
}
module_init(start);
MODULE_LICENSE("GPL");
