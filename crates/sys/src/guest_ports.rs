//! I/O ports of x86 guests of QEMU, and the names of what is behind them.

/// Port of a byte of a guest's result (isa-debugcon). It needs no driver: that of serial ports treats its interrupt as
/// stuck after some 100 000 bytes under PREEMPT_RT, and disables it.
pub const RESULT: u16 = 0xe9;
/// Port that ends QEMU (isa-debug-exit), with status 2 * value + 1.
pub const END: u16 = 0x501;
/// Port that pauses a guest (pvpanic); without effect unless the lab waits for it.
pub const PAUSE: u16 = 0x505;

/// Name of a file of the firmware configuration: by how much a due time is moved earlier, ns, 8 bytes little-endian,
/// and one byte that is 1 if the guest ends after that wake-up.
pub const MOVE_FILE: &str = "opt/punctual/move";
/// Prefix of the result line of a moved wake-up: its due time and its clock reading, 16 hexadecimal digits each.
pub const MOVED: &str = "moved ";
/// Environment variable of a guest's cell: index of the cycle whose due time can be moved.
pub const MOVABLE_VARIABLE: &str = "PUNCTUAL_MOVABLE_CYCLE";
