// A periodic thread that passes marks, and logs the clock around each pass.
//
// marks LOG N: the thread "marked" has a period of 2 ms. In each of N activations it writes "read" to trace_marker, calls
// solve() but in every fifth, and passes the static probe marks:write, which has a counter; in every seventh it writes
// "read" once more. A last activation passes nothing. Each line of the log is one activation: its due time, then the clock
// before and after each of these passes (0 without one), at its end, and the counter.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

// As sys/sdt.h of SystemTap writes it: a note of the place, of the base of addresses, of the counter, and the names.
unsigned short marks_write_semaphore __attribute__((section(".probes")));
#define PROBE()                                                                                                    \
    __asm__ __volatile__("990: nop\n"                                                                              \
                         ".pushsection .note.stapsdt,\"?\",\"note\"\n.balign 4\n.4byte 992f-991f, 994f-993f, 3\n"  \
                         "991: .asciz \"stapsdt\"\n992: .balign 4\n"                                               \
                         "993: .8byte 990b, _.stapsdt.base, marks_write_semaphore\n"                               \
                         ".asciz \"marks\"\n.asciz \"write\"\n.asciz \"\"\n994: .balign 4\n.popsection\n"          \
                         ".ifndef _.stapsdt.base\n"                                                                \
                         ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                   \
                         ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n"                \
                         ".size _.stapsdt.base, 1\n.popsection\n.endif\n" ::: "memory")

static long long now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

__attribute__((noinline)) long long solve(void) {
    long long begun = now();
    while (now() < begun + 50000) {
    }
    return begun;
}

int main(int argc, char **argv) {
    int marker = open("/sys/kernel/tracing/trace_marker", O_WRONLY);
    FILE *log = argc == 3 ? fopen(argv[1], "w") : NULL;
    if (!log || marker < 0) {
        return 3;
    }
    setvbuf(log, NULL, _IOFBF, 1 << 20);
    prctl(PR_SET_NAME, "marked");
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (int n = 0, last = atoi(argv[2]); n <= last; n++) {
        long long at[10] = {0};
        due.tv_nsec += 2000000;
        if (due.tv_nsec >= 1000000000) {
            due.tv_nsec -= 1000000000;
            due.tv_sec++;
        }
        at[0] = due.tv_sec * 1000000000LL + due.tv_nsec;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        if (n < last) {
            at[1] = now();
            at[2] = write(marker, "read\n", 5) == 5 ? now() : 0;
            if (n % 5) {
                at[3] = now();
                at[4] = solve();
            }
            at[5] = now();
            PROBE();
            at[6] = now();
            if (n % 7 == 0) {
                at[7] = now();
                at[8] = write(marker, "read", 4) == 4 ? now() : 0;
            }
        }
        at[9] = now();
        for (int i = 0; i < 10; i++) {
            fprintf(log, "%lld ", at[i]);
        }
        fprintf(log, "%d\n", marks_write_semaphore);
    }
    return fclose(log) ? 3 : 0;
}
