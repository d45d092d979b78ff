#include <linux/delay.h>
#include <linux/module.h>
#include <linux/timer.h>

/* A softirq takes 1.3 ms, again and again: longer than the period of who waits, so that it is met wherever it begins. */
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
