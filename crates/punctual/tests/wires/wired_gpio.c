#include <linux/gpio/consumer.h>
#include <linux/gpio/driver.h>
#include <linux/gpio/machine.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irq_work.h>
#include <linux/module.h>

/*
 * A GPIO chip with lines wired to each other: 1 to 2 and 3 to 0, as between a logger and a target, and 5 to 4.
 * Lines 0, 2 and 4 interrupt. Line 6 does not, and line 7 is in use.
 */
static const int wired_to[] = { -1, 2, -1, 0, -1, 4, -1, -1 };
#define LINES ARRAY_SIZE(wired_to)
#define TAKEN 7

static struct line {
	struct irq_work edge;
	bool is_high;
} lines[LINES];

static int first_irq;

static void interrupt(struct irq_work *edge)
{
	int irq = first_irq + (container_of(edge, struct line, edge) - lines);

	if (irq_has_action(irq))
		generic_handle_irq(irq);
}

static int direction(struct gpio_chip *chip, unsigned int offset)
{
	return wired_to[offset] < 0 ? GPIO_LINE_DIRECTION_IN : GPIO_LINE_DIRECTION_OUT;
}

static int input(struct gpio_chip *chip, unsigned int offset)
{
	return 0;
}

static int get(struct gpio_chip *chip, unsigned int offset)
{
	return READ_ONCE(lines[offset].is_high);
}

static void set(struct gpio_chip *chip, unsigned int offset, int value)
{
	int other = wired_to[offset];

	if (other < 0 || READ_ONCE(lines[other].is_high) == !!value)
		return;
	WRITE_ONCE(lines[offset].is_high, !!value);
	WRITE_ONCE(lines[other].is_high, !!value);
	irq_work_queue(&lines[other].edge);
}

static int output(struct gpio_chip *chip, unsigned int offset, int value)
{
	if (wired_to[offset] < 0)
		return -EINVAL;
	set(chip, offset, value);
	return 0;
}

static int to_irq(struct gpio_chip *chip, unsigned int offset)
{
	return offset < 6 && wired_to[offset] < 0 ? first_irq + offset : -ENXIO;
}

static struct gpio_chip chip = {
	.label = "wired",
	.owner = THIS_MODULE,
	.base = -1,
	.ngpio = LINES,
	.get_direction = direction,
	.direction_input = input,
	.direction_output = output,
	.get = get,
	.set = set,
	.to_irq = to_irq,
};

static int __init start(void)
{
	int i, err;

	first_irq = irq_alloc_descs(-1, 0, LINES, NUMA_NO_NODE);
	if (first_irq < 0)
		return first_irq;
	for (i = 0; i < LINES; i++) {
		lines[i].edge = IRQ_WORK_INIT_HARD(interrupt);
		irq_set_chip_and_handler(first_irq + i, &dummy_irq_chip, handle_simple_irq);
		irq_clear_status_flags(first_irq + i, IRQ_NOREQUEST);
	}
	err = gpiochip_add_data(&chip, NULL);
	if (err)
		return err;
	return PTR_ERR_OR_ZERO(gpiochip_request_own_desc(&chip, TAKEN, "panel reset", GPIO_ACTIVE_HIGH, GPIOD_IN));
}
module_init(start);
MODULE_LICENSE("GPL");
