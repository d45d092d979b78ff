#include <linux/device.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/uio_driver.h>

/*
 * Three devices. The first interrupts every 2 ms while its interrupt is enabled, which disables it; each hundredth time
 * it counts two interrupts. The second has no interrupt. The third belongs to a driver that leaves interrupts disabled.
 */
static struct uio_info device, silent, foreign;
static struct hrtimer timer;
static unsigned int n_ticks;
static atomic_t is_on = ATOMIC_INIT(0);

static enum hrtimer_restart tick(struct hrtimer *timer)
{
	if (atomic_xchg(&is_on, 0)) {
		if (++n_ticks % 100 == 0)
			atomic_inc(&device.uio_dev->event);
		uio_event_notify(&device);
	}
	hrtimer_forward_now(timer, 2 * NSEC_PER_MSEC);
	return HRTIMER_RESTART;
}

static int turn(struct uio_info *info, s32 on)
{
	atomic_set(&is_on, !!on);
	return 0;
}

static struct uio_info device = { .name = "ticks", .version = "1", .irq = UIO_IRQ_CUSTOM, .irqcontrol = turn };
static struct uio_info silent = { .name = "silent", .version = "1", .irq = UIO_IRQ_NONE };
static struct uio_info foreign = { .name = "uio_pci_generic", .version = "1", .irq = UIO_IRQ_CUSTOM };

static int __init start(void)
{
	struct uio_info *all[] = { &device, &silent, &foreign };
	struct device *parent = root_device_register("ticking");
	int i, err;

	if (IS_ERR(parent))
		return PTR_ERR(parent);
	for (i = 0; i < ARRAY_SIZE(all); i++) {
		err = uio_register_device(parent, all[i]);
		if (err)
			return err;
	}
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	timer.function = tick;
	hrtimer_start(&timer, 2 * NSEC_PER_MSEC, HRTIMER_MODE_REL);
	return 0;
}
module_init(start);
MODULE_LICENSE("GPL");
