// SPDX-License-Identifier: GPL-2.0
/*
 * QEMU's edu device (docs/specs/edu.rst) as a device of RTDM: its interrupt is handled out of band.
 *
 * Cobalt on Dovetail requests each interrupt line once (kernel/cobalt/dovetail/intr.c, without IRQF_SHARED), and
 * several devices share a line. So a line has one handler, which asks each device on it.
 */
#include <linux/io.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <rtdm/driver.h>

#define NAME "punctual_oob"
#define VENDOR 0x1234
#define DEVICE 0x11e8
/* Registers: raised interrupts, and their acknowledgment. */
#define RAISED 0x24
#define ACKNOWLEDGE 0x64

/* An interrupt line, while at least one device uses it. */
struct line {
	struct list_head node;
	struct list_head devices;
	/* Protects `devices` against the handler. */
	rtdm_lock_t lock;
	rtdm_irq_t irq;
	unsigned int number;
};

struct edu {
	struct rtdm_device rtdm;
	struct list_head node;
	struct line *line;
	void __iomem *registers;
	rtdm_event_t interrupted;
	u32 count;
	char label[RTDM_MAX_DEVNAME_LEN + 1];
};

static LIST_HEAD(lines);
/* Protects `lines`; only Linux takes it. */
static DEFINE_MUTEX(lines_lock);

static int handle(rtdm_irq_t *irq)
{
	struct line *line = rtdm_irq_get_arg(irq, struct line);
	int result = RTDM_IRQ_NONE;
	struct edu *edu;

	rtdm_lock_get(&line->lock);
	list_for_each_entry(edu, &line->devices, node) {
		u32 raised = readl(edu->registers + RAISED);

		if (!raised)
			continue;
		writel(raised, edu->registers + ACKNOWLEDGE);
		WRITE_ONCE(edu->count, edu->count + 1);
		rtdm_event_signal(&edu->interrupted);
		result = RTDM_IRQ_HANDLED;
	}
	rtdm_lock_put(&line->lock);
	return result;
}

/* Interrupts before belong to an earlier opener. */
static int edu_open(struct rtdm_fd *fd, int flags)
{
	struct edu *edu = container_of(rtdm_fd_device(fd), struct edu, rtdm);

	rtdm_event_clear(&edu->interrupted);
	return 0;
}

static ssize_t edu_read(struct rtdm_fd *fd, void __user *to, size_t bytes)
{
	struct edu *edu = container_of(rtdm_fd_device(fd), struct edu, rtdm);
	u32 count;
	int err;

	if (bytes != sizeof(count))
		return -EINVAL;
	err = rtdm_event_wait(&edu->interrupted);
	if (err)
		return err;
	count = READ_ONCE(edu->count);
	return rtdm_safe_copy_to_user(fd, to, &count, sizeof(count)) ?: sizeof(count);
}

static struct rtdm_driver rtdm_driver = {
	.profile_info = RTDM_PROFILE_INFO(punctual_oob, RTDM_CLASS_EXPERIMENTAL, RTDM_SUBCLASS_GENERIC, 1),
	.device_flags = RTDM_NAMED_DEVICE | RTDM_EXCLUSIVE,
	/* The slots of a PCI bus. */
	.device_count = 32,
	.ops = { .open = edu_open, .read_rt = edu_read },
};

/* Adds a device to its line, of which the first requests the interrupt. */
static int join_line(struct edu *edu, unsigned int number)
{
	rtdm_lockctx_t context;
	struct line *line;
	int err = 0;

	mutex_lock(&lines_lock);
	list_for_each_entry(line, &lines, node)
		if (line->number == number)
			goto found;
	line = kzalloc(sizeof(*line), GFP_KERNEL);
	if (!line) {
		err = -ENOMEM;
		goto out;
	}
	INIT_LIST_HEAD(&line->devices);
	rtdm_lock_init(&line->lock);
	line->number = number;
	/* The line may be active already. */
	list_add(&edu->node, &line->devices);
	err = rtdm_irq_request(&line->irq, number, handle, 0, NAME, line);
	if (err) {
		kfree(line);
		goto out;
	}
	list_add(&line->node, &lines);
	edu->line = line;
	goto out;
found:
	rtdm_lock_get_irqsave(&line->lock, context);
	list_add(&edu->node, &line->devices);
	rtdm_lock_put_irqrestore(&line->lock, context);
	edu->line = line;
out:
	mutex_unlock(&lines_lock);
	return err;
}

/* The last device frees the interrupt. */
static void leave_line(struct edu *edu)
{
	struct line *line = edu->line;
	rtdm_lockctx_t context;

	mutex_lock(&lines_lock);
	if (list_is_singular(&line->devices)) {
		rtdm_irq_free(&line->irq);
		list_del(&line->node);
		kfree(line);
	} else {
		rtdm_lock_get_irqsave(&line->lock, context);
		list_del(&edu->node);
		rtdm_lock_put_irqrestore(&line->lock, context);
	}
	mutex_unlock(&lines_lock);
}

static int probe(struct pci_dev *pci, const struct pci_device_id *id)
{
	struct edu *edu;
	int err;

	/* `driver_override` accepts any device. */
	if (pci->vendor != VENDOR || pci->device != DEVICE || !pci->irq)
		return -ENODEV;
	err = pcim_enable_device(pci);
	if (err)
		return err;
	edu = devm_kzalloc(&pci->dev, sizeof(*edu), GFP_KERNEL);
	if (!edu)
		return -ENOMEM;
	/* Not requested: with IO_STRICT_DEVMEM a program could not map it, too. */
	edu->registers = pcim_iomap(pci, 0, 0);
	if (!edu->registers)
		return -ENOMEM;
	rtdm_event_init(&edu->interrupted, 0);
	pci_set_master(pci);
	/* A driver for user space may have left it disabled. */
	pci_intx(pci, 1);
	err = join_line(edu, pci->irq);
	if (err)
		goto fail_line;
	snprintf(edu->label, sizeof(edu->label), "punctual-%s", pci_name(pci));
	edu->rtdm.driver = &rtdm_driver;
	edu->rtdm.label = edu->label;
	err = rtdm_dev_register(&edu->rtdm);
	if (err)
		goto fail_register;
	pci_set_drvdata(pci, edu);
	return 0;
fail_register:
	pci_intx(pci, 0);
	leave_line(edu);
fail_line:
	rtdm_event_destroy(&edu->interrupted);
	return err;
}

static void leave(struct pci_dev *pci)
{
	struct edu *edu = pci_get_drvdata(pci);

	/* Waits until the device is closed. */
	rtdm_dev_unregister(&edu->rtdm);
	pci_intx(pci, 0);
	leave_line(edu);
	rtdm_event_destroy(&edu->interrupted);
}

/* No table of devices: those of `driver_override` only, so that the other ones stay free for other drivers. */
static struct pci_driver pci_driver = { .name = NAME, .probe = probe, .remove = leave };

module_pci_driver(pci_driver);
MODULE_DESCRIPTION("QEMU's edu device with an out-of-band interrupt handler");
MODULE_LICENSE("GPL v2");
