#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/parport.h>

/* Three parallel ports. Data line 0 of each of the first two is wired to nACK of the other; the third has no interrupt. */
#define PORTS 3

static struct wired {
	struct irq_work rise;
	struct parport *port;
	unsigned char data, control;
	bool interrupts;
} wired[PORTS];

static struct wired *of(struct parport *port)
{
	return port->private_data;
}

static void interrupt(struct irq_work *rise)
{
	parport_irq_handler(0, container_of(rise, struct wired, rise)->port);
}

static void write_data(struct parport *port, unsigned char data)
{
	int number = of(port) - wired;
	bool rises = (data & 1) && !(of(port)->data & 1);

	of(port)->data = data;
	if (number < 2 && rises && READ_ONCE(wired[!number].interrupts))
		irq_work_queue(&wired[!number].rise);
}

static unsigned char read_data(struct parport *port)
{
	return of(port)->data;
}

static void write_control(struct parport *port, unsigned char control)
{
	of(port)->control = control;
}

static unsigned char read_control(struct parport *port)
{
	return of(port)->control;
}

static unsigned char frob_control(struct parport *port, unsigned char mask, unsigned char value)
{
	return of(port)->control = (of(port)->control & ~mask) ^ value;
}

static unsigned char read_status(struct parport *port)
{
	return PARPORT_STATUS_ERROR | PARPORT_STATUS_SELECT;
}

static void enable_irq_of(struct parport *port)
{
	WRITE_ONCE(of(port)->interrupts, true);
}

static void disable_irq_of(struct parport *port)
{
	WRITE_ONCE(of(port)->interrupts, false);
}

static void nothing(struct parport *port)
{
}

static void no_state(struct parport *port, struct parport_state *state)
{
}

static void init_state(struct pardevice *device, struct parport_state *state)
{
}

static struct parport_operations operations = {
	.owner = THIS_MODULE,
	.write_data = write_data,
	.read_data = read_data,
	.write_control = write_control,
	.read_control = read_control,
	.frob_control = frob_control,
	.read_status = read_status,
	.enable_irq = enable_irq_of,
	.disable_irq = disable_irq_of,
	.data_forward = nothing,
	.data_reverse = nothing,
	.init_state = init_state,
	.save_state = no_state,
	.restore_state = no_state,
	.compat_write_data = parport_ieee1284_write_compat,
	.nibble_read_data = parport_ieee1284_read_nibble,
	.byte_read_data = parport_ieee1284_read_byte,
};

static int __init start(void)
{
	int i;

	for (i = 0; i < PORTS; i++) {
		wired[i].rise = IRQ_WORK_INIT_HARD(interrupt);
		wired[i].port = parport_register_port(0x1000 + 0x10 * i, i < 2 ? 100 + i : PARPORT_IRQ_NONE,
						      PARPORT_DMA_NONE, &operations);
		if (!wired[i].port)
			return -ENOMEM;
		wired[i].port->private_data = &wired[i];
		wired[i].port->modes = PARPORT_MODE_PCSPP;
	}
	for (i = 0; i < PORTS; i++)
		parport_announce_port(wired[i].port);
	return 0;
}
module_init(start);
MODULE_LICENSE("GPL");
