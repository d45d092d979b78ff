#!/usr/bin/env python3
"""A control loop in Python, with faults that can be switched on.

    punctual watch --for 5s -- python3 servo.py
    punctual watch --for 5s -- python3 servo.py --fault gc
    punctual watch --for 5s -- python3 servo.py --fault log

Every 5 ms the loop reads the position of an arm, computes the force and applies it. A fault hits every 50th loop:

gc   many small objects are made, and the garbage collector looks at all that live: the loop runs longer than usual.
log  a burst of log lines goes to a pipe whose reader is slow: the loop waits in write().
"""

import argparse
import gc
import os
import subprocess
import sys
import time

PERIOD_NS = 5_000_000
EVERY = 50
# A reader that takes 4096 bytes, then rests for 2 ms: slower than the loop writes.
READER = """
import os, time
open("/proc/self/comm", "w").write("log-reader")
while os.read(0, 4096):
    time.sleep(0.002)
"""


class Arm:
    """The simulated arm: a mass with friction."""

    def __init__(self):
        self.position = 0.0
        self.speed = 0.0

    def step(self, force, seconds):
        self.speed += (force - self.speed) * seconds
        self.position += self.speed * seconds


def control(arm, target):
    """The force of a controller with a proportional and a differential part."""
    return 40.0 * (target - arm.position) - 8.0 * arm.speed


def slow_log():
    """The writing end of a pipe to a slow reader."""
    reader = subprocess.Popen([sys.executable, "-c", READER], stdin=subprocess.PIPE, bufsize=0)
    return reader.stdin.fileno(), reader


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fault", choices=["gc", "log"])
    parser.add_argument("--loops", type=int, default=0, help="end after this many loops")
    arguments = parser.parse_args()

    arm = Arm()
    # What a real program has: objects that live long. A full collection looks at each of them.
    history = [[index] for index in range(100_000)] if arguments.fault == "gc" else []
    gc.disable()  # only the planted collection happens
    log, _reader = slow_log() if arguments.fault == "log" else (None, None)
    lines = b"servo: position and force of the last fifty loops\n" * 1600

    due = time.monotonic_ns()
    loop = 0
    while arguments.loops == 0 or loop < arguments.loops:
        due += PERIOD_NS
        # time.sleep takes a length of time, from which Python computes an instant.
        time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
        arm.step(control(arm, 1.0), PERIOD_NS / 1e9)
        loop += 1
        if loop % EVERY == 0:
            if arguments.fault == "gc":
                gc.collect()
            elif arguments.fault == "log":
                os.write(log, lines)
    print(f"position {arm.position:.3f} after {loop} loops, {len(history)} objects")


if __name__ == "__main__":
    main()
