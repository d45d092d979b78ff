# Sleeps for TARGET_NS in a loop and writes the start and end of each sleep: see sleep error in docs/sleep.md.
# The call is time.sleep.
import os
import platform
import sys
import time


def sleep_once(target_s):
    before = time.monotonic_ns()
    time.sleep(target_s)
    after = time.monotonic_ns()
    return b"%d %d\n" % (before, after)


def main():
    target_s = int(sys.argv[1]) / 1e9
    for _ in range(int(sys.argv[2])):
        sleep_once(100e-6)
    implementation, version = platform.python_implementation(), platform.python_version()
    os.write(1, f"ready {os.getpid()} {implementation} {version}\n".encode())
    if not sys.stdin.readline():
        sys.exit(1)
    while True:
        # After the reader has closed the pipe, an exception ends the program.
        os.write(1, sleep_once(target_s))


main()
