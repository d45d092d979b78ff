#include <linux/io.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

/*
 * An earlier user of all edu devices. It binds them to the driver of RTDM; loaded before that, it is refused, and loaded
 * again after it. QEMU forgets the devices' registers when it saves a guest, so that each start from the saved state
 * shows. Then it raises an interrupt of each device, which waits for the next opener, and starts the DMA, whose interrupt
 * comes 100 ms later, while the device belongs to the measurement.
 */
static void look(struct work_struct *work);
static DECLARE_DELAYED_WORK(again, look);

static void leave_running(struct pci_dev *pci)
{
	void __iomem *registers = ioremap(pci_resource_start(pci, 0), 4096);

	if (!registers)
		return;
	pci_write_config_dword(pci, PCI_BASE_ADDRESS_0, pci_resource_start(pci, 0));
	pci_write_config_word(pci, PCI_COMMAND, PCI_COMMAND_IO | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	writel(1, registers + 0x60);
	writeq(0x40000, registers + 0x80);
	writeq(0x1000, registers + 0x88);
	writeq(4, registers + 0x90);
	writeq(1 | 2 | 4, registers + 0x98);
	iounmap(registers);
}

static void look(struct work_struct *work)
{
	struct pci_dev *pci = NULL;
	bool was_saved = false;
	u32 memory;

	while ((pci = pci_get_device(0x1234, 0x11e8, pci))) {
		pci_read_config_dword(pci, PCI_BASE_ADDRESS_0, &memory);
		if (memory & PCI_BASE_ADDRESS_MEM_MASK)
			continue;
		leave_running(pci);
		was_saved = true;
	}
	if (!was_saved)
		schedule_delayed_work(&again, 1);
}

static int __init start(void)
{
	struct pci_dev *pci = NULL;

	while ((pci = pci_get_device(0x1234, 0x11e8, pci))) {
		if (!pci->driver_override)
			pci->driver_override = kstrdup("punctual_oob", GFP_KERNEL);
		if (device_attach(&pci->dev) != 1) {
			pci_dev_put(pci);
			return -ENODEV;
		}
	}
	schedule_delayed_work(&again, 1);
	return 0;
}
module_init(start);
MODULE_LICENSE("GPL");
