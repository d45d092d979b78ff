//! Where the pages of a trace come from: the kernel, or files of pages that were recorded before.

use super::TraceError;
use std::io;

/// The pages of a trace, of each CPU in the order in which the kernel wrote them.
pub(crate) trait PageSource {
    /// The number of CPUs, by the highest CPU number.
    fn n_cpus(&self) -> usize;

    /// Memory of the trace of one CPU, bytes: more is not kept of it before a spike.
    fn buffer_bytes(&self) -> usize;

    /// Appends the pages of one CPU that were not read before, oldest first, to `pages`. `page_bytes` is the size of a
    /// page. A stopped trace is read completely. Of a running trace at most one full buffer is read: reading itself may
    /// be what fills it. Errors: when the pages cannot be read.
    fn drain(&mut self, cpu: usize, page_bytes: usize, pages: &mut Vec<u8>) -> io::Result<()>;

    /// Starts the trace, or restarts it.
    fn start(&mut self) -> Result<(), TraceError>;
}

/// Pages in files, one for each CPU: what `per_cpu/cpuN/trace_pipe_raw` has given.
#[cfg(test)]
pub(crate) struct Recorded(Vec<std::fs::File>);

#[cfg(test)]
impl Recorded {
    /// The files `cpu0`, `cpu1` and so on in a directory.
    pub(crate) fn open(directory: &std::path::Path) -> io::Result<Recorded> {
        let files = (0..).map(|cpu| directory.join(format!("cpu{cpu}"))).take_while(|path| path.exists());
        files.map(std::fs::File::open).collect::<io::Result<_>>().map(Recorded)
    }
}

#[cfg(test)]
impl PageSource for Recorded {
    fn n_cpus(&self) -> usize {
        self.0.len()
    }

    fn buffer_bytes(&self) -> usize {
        usize::MAX / 2
    }

    fn drain(&mut self, cpu: usize, _: usize, pages: &mut Vec<u8>) -> io::Result<()> {
        use io::Read;
        self.0.get_mut(cpu).map_or(Ok(0), |file| file.read_to_end(pages)).map(drop)
    }

    fn start(&mut self) -> Result<(), TraceError> {
        Ok(())
    }
}
