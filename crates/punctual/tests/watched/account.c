// A thread on one CPU that logs what the scheduler counts of it, at its beginning and at its end, and others that take
// that CPU from it.
//
// account LOG CPU MS FIFO: the thread "victim" runs for 1 ms of CPU time and sleeps for 50 us, for MS milliseconds. Four
// peers, of FIFO priority 10 if FIFO is 1, have 40, 20, 10 and 5 % of the CPU, each once in 10 ms. The log has two
// lines: the clock before and after the reading, and the run time and the wait of /proc/thread-self/schedstat, ns.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

enum { PEERS = 4 };
static const char *const names[PEERS] = {"peer-40", "peer-20", "peer-10", "peer-5"};
static const long busy_ns[PEERS] = {4000000, 2000000, 1000000, 500000};
static long long until_ns;
static int is_fifo;

static long long now(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

// Reads the clock, which is a system call and two events, once in about 100 us.
static void spend(long length_ns) {
    for (long long end = now(CLOCK_THREAD_CPUTIME_ID) + length_ns; now(CLOCK_THREAD_CPUTIME_ID) < end;) {
        for (volatile int turn = 0; turn < 100000; turn++) {
        }
    }
}

static void nap(void) {
    clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = 50000}, NULL);
}

static void *peer(void *argument) {
    long index = (long)argument;
    prctl(PR_SET_NAME, names[index]);
    if (is_fifo && pthread_setschedparam(pthread_self(), SCHED_FIFO, &(struct sched_param){.sched_priority = 10})) {
        exit(3);
    }
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    while (now(CLOCK_MONOTONIC) < until_ns) {
        spend(busy_ns[index]);
        due.tv_nsec += 10000000;
        if (due.tv_nsec >= 1000000000) {
            due.tv_nsec -= 1000000000;
            due.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    }
    return NULL;
}

// After a sleep, the scheduler has counted all of the time before.
static void note(FILE *log) {
    long long ran, waited;
    nap();
    long long before = now(CLOCK_MONOTONIC);
    FILE *counted = fopen("/proc/thread-self/schedstat", "r");
    if (!counted || fscanf(counted, "%lld %lld", &ran, &waited) != 2) {
        exit(4);
    }
    fclose(counted);
    fprintf(log, "%lld %lld %lld %lld\n", before, now(CLOCK_MONOTONIC), ran, waited);
}

static void *victim(void *log) {
    pthread_t threads[PEERS];
    prctl(PR_SET_NAME, "victim");
    note(log);
    for (long index = 0; index < PEERS; index++) {
        pthread_create(&threads[index], NULL, peer, (void *)index);
    }
    while (now(CLOCK_MONOTONIC) < until_ns) {
        spend(1000000);
        nap();
    }
    note(log);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread;
    FILE *log = argc == 5 ? fopen(argv[1], "w") : NULL;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(log ? atoi(argv[2]) : 0, &one);
    if (!log || sched_setaffinity(0, sizeof one, &one)) {
        return 2;
    }
    is_fifo = atoi(argv[4]);
    until_ns = now(CLOCK_MONOTONIC) + atoll(argv[3]) * 1000000;
    pthread_create(&thread, NULL, victim, log);
    pthread_join(thread, NULL);
    return fclose(log);
}
