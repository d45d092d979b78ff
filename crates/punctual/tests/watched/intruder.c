// intruder: takes the CPU for 4 of each 20 ms at FIFO 90, for 15 s.
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int main(void) {
    struct sched_param fifo = { .sched_priority = 90 };
    if (sched_setscheduler(0, SCHED_FIFO, &fifo)) { perror("sched_setscheduler"); return 1; }
    int64_t end = now() + 15000000000ll;
    for (int64_t at; (at = now()) < end;) {
        while (now() - at < 4000000) ;
        nanosleep(&(struct timespec){ 0, 16000000 }, 0);
    }
    return 0;
}
