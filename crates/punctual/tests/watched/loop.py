# loop FILE: turns of 5 ms; each fortieth works for 5 ms, the others for 100 us. FILE gets a line for each: its start
# and end, CLOCK_MONOTONIC, ns, and what the thread has waited for a CPU so far (schedstat), ns.
import itertools, sys, time

log, counted = open(sys.argv[1], "w", buffering=1), open("/proc/thread-self/schedstat")
for turn in itertools.count():
    time.sleep(0.005)
    start = time.monotonic_ns()
    while time.monotonic_ns() - start < (5000000 if turn % 40 == 20 else 100000):
        pass
    counted.seek(0)
    log.write("%d %d %s\n" % (start, time.monotonic_ns(), counted.read().split()[1]))
