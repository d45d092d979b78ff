//! The walk from one frame to its caller.

use crate::module::Module;
use crate::registers::{FRAME, RETURN, Registers, STACK};
use crate::sample::RawSample;
use punctual_host::MappedCode;
use std::rc::Rc;

/// Most frames of a stack that are visited; inlined functions make more of them.
const MOST_FRAMES: usize = 32;
/// Bits of an address of code. Those above may sign a return address (arm64's pointer authentication).
const ADDRESS: u64 = if cfg!(target_arch = "aarch64") { (1 << 48) - 1 } else { u64::MAX };

/// Passes on the address of each frame's instruction, innermost first.
pub(crate) fn walk<'a>(
    sample: &RawSample,
    find: &mut impl FnMut(u64) -> Option<(&'a MappedCode, Option<Rc<Module>>)>,
    mut take: impl FnMut(u64),
) {
    let mut registers = sample.registers.clone();
    for index in 0..MOST_FRAMES {
        let address = registers.counter & ADDRESS;
        let Some((mapping, module)) = find(address) else { return };
        take(address);
        let stack = registers.get(STACK);
        // A return address is behind its call, which may be the last instruction of its function.
        let probe = if index == 0 { address } else { address.saturating_sub(1) };
        let unwound = match &module {
            Some(module) => module
                .address_of(probe.wrapping_sub(mapping.start).wrapping_add(mapping.offset))
                .and_then(|at| module.step(at, &mut registers, sample)),
            // Code without a file, as that of a just-in-time compiler.
            None => by_frame_pointer(&mut registers, sample),
        };
        // The stack shrinks with each caller, but for the innermost function, which may not use it.
        let is_outward = match (stack, registers.get(STACK)) {
            (Some(before), Some(after)) => after > before || (index == 0 && after == before),
            _ => false,
        };
        if unwound.is_none() || !is_outward || registers.counter & ADDRESS == address {
            return;
        }
    }
}

/// The caller by the frame pointer, which points to that of the caller and its return address.
fn by_frame_pointer(registers: &mut Registers, sample: &RawSample) -> Option<()> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return None;
    }
    let frame = registers.get(FRAME)?;
    let (outer, back) = (sample.word(frame)?, sample.word(frame.checked_add(8)?)?);
    registers.set(FRAME, Some(outer));
    registers.set(STACK, Some(frame.checked_add(16)?));
    registers.set(RETURN, None);
    registers.counter = back;
    Some(())
}
