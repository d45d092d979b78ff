//! Help text of `punctual cyclictest`.

/// Output of `--help`.
pub(super) const HELP: &str = "\
How late threads wake up, with the options and the output of cyclictest (rt-tests)

Usage: punctual cyclictest [OPTIONS], or `cyclictest [OPTIONS]` through a link of that name

  -a, --affinity [CPUS]     pin thread N to CPU N of CPUS, in turn; like 0-3,5 or !1 or all
  -A, --aligned [US]        start together, thread N later by N times US
  -b, --breaktrace US       end when a latency is above US
  -c, --clock CLOCK         0 monotonic (default), 1 realtime
  -d, --distance US         each thread's interval is longer than the last's by US [500; 0 with a histogram]
  -D, --duration TIME       end after TIME: seconds, or with s, m, h, d
  -h, --histogram US        print a histogram with rows from 0 to US - 1
  -H, --histofall US        the same, with a column for all threads together
  -i, --interval US         interval of the first thread [1000]
  -l, --loops N             end when the first thread has woken N times
  -m, --mlockall            lock memory
  -M, --refresh_on_max      redraw only when there is a new maximum
  -N, --nsecs               values in ns; -b and -h are in ns then
  -o, --oscope N            with -v: of N values print the largest
  -p, --priority PRIO       priority, 1 to 99; makes the threads SCHED_FIFO; 0: one more than threads
  -q, --quiet               print only the result
  -r, --relative            sleep for the interval instead of until an instant
  -R, --resolution          print the resolution of the clock
  -s, --system              sleep by nanosleep
  -S, --smp                 a thread on each CPU: -t -a
  -t, --threads [N]         N threads; without N, one for each CPU [1]
  -v, --verbose             print every value: thread:cycle:value
  -x, --posix_timers        wait for the signal of a periodic timer
      --default-system      leave /dev/cpu_dma_latency alone
      --laptop              the same, to save the battery
      --latency US          held in /dev/cpu_dma_latency [0]
      --histfile FILE       write the histogram to FILE
      --json FILE           write the result as JSON to FILE; - is stdout
      --mainaffinity CPUS   CPUs of the thread that prints [those not measured, if there are any]
      --policy NAME         other, normal, batch, idle, fifo, rr
      --priospread          each thread's priority is one less than the last's
      --secaligned [US]     start at a full second, later by US
      --smi                 count system management interrupts (Intel; needs the module msr)
      --tracemark           with -b: write a trace mark and stop tracing
      --compat 2.4|2.7      layout of which version [2.4]; also PUNCTUAL_CYCLICTEST_COMPAT
  -n, -u, --notrace         accepted, nothing to do; -U, --numa: as -S

Signals: SIGUSR1 prints the status on stderr; SIGINT and SIGTERM end the run with its result.
Exit status: 0 measured, 1 error, 2 a latency was above -b (0 under the name cyclictest;
PUNCTUAL_CYCLICTEST_BREAK_STATUS=0 or 2 chooses).
What differs from cyclictest, and why: docs/cyclictest.md.
";
