// kinds KIND FILE: a loop of 2 ms that waits in one of many ways. Each fortieth turn works for 5 ms, the others for
// 100 us. At SIGTERM, FILE gets a line for each turn: its release, start and end, CLOCK_MONOTONIC, ns.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define PERIOD 2000000ll
#define MOST 200000
#define check(holds) do { if (!(holds)) { perror(#holds); _exit(1); } } while (0)

static struct { int64_t release, start, end; } turns[MOST];
static volatile int n;
static const char *file;

static int64_t ns(struct timespec t) { return t.tv_sec * 1000000000ll + t.tv_nsec; }
static struct timespec spec(int64_t ns) { return (struct timespec){ ns / 1000000000, ns % 1000000000 }; }
static int64_t clock_now(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return ns(t); }
static int64_t now(void) { return clock_now(CLOCK_MONOTONIC); }

static void save(int signal) {
    (void)signal;
    FILE *out = fopen(file, "w");
    check(out);
    for (int i = 0; i < n; i++)
        fprintf(out, "%lld %lld %lld\n", (long long)turns[i].release, (long long)turns[i].start, (long long)turns[i].end);
    check(!fclose(out));
    _exit(0);
}

static void turn(int64_t release) {
    int64_t start = now(), length = n % 40 == 20 ? 5000000 : 100000;
    while (now() - start < length) ;
    if (n < MOST) {
        turns[n].release = release, turns[n].start = start, turns[n].end = now();
        n++;
    }
}

// What a producer sends: the time, through the kernel or in a ring beside it.
static int64_t ring[1 << 16];
static volatile unsigned head, tail;
static int in = -1, out = -1;
static mqd_t queue;
static sem_t semaphore;
static pthread_cond_t condition;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void put(int64_t at) { ring[head & 65535] = at; head++; }
static int64_t take(void) { int64_t at = ring[tail & 65535]; tail++; return at; }

static void send_mq(int64_t at) { mq_send(queue, (char *)&at, sizeof at, 0); }
static void send_socket(int64_t at) { check(send(in, &at, sizeof at, 0) == sizeof at); }
static void send_eventfd(int64_t at) { uint64_t one = 1; put(at); check(write(in, &one, 8) == 8); }
static void send_sem(int64_t at) { put(at); sem_post(&semaphore); }
static void send_cond(int64_t at) {
    pthread_mutex_lock(&lock);
    put(at);
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&lock);
}
static void send_file(int64_t at) { put(at); check(pwrite(in, "x", 1, 0) == 1); }

static int64_t get_mq(void) { int64_t at; check(mq_receive(queue, (char *)&at, sizeof at, 0) == sizeof at); return at; }
static int64_t get_socket(void) { int64_t at; check(recv(out, &at, sizeof at, 0) == sizeof at); return at; }
static int64_t get_eventfd(void) { uint64_t k; check(read(in, &k, 8) == 8); return take(); }
static int64_t get_sem(void) { check(!sem_wait(&semaphore)); return take(); }
static int64_t get_cond(void) {
    pthread_mutex_lock(&lock);
    while (tail == head) pthread_cond_wait(&condition, &lock);
    int64_t at = take();
    pthread_mutex_unlock(&lock);
    return at;
}
static int64_t get_file(void) {
    char events[4096];
    check(read(out, events, sizeof events) > 0);
    int64_t at = take();
    tail = head;
    return at;
}

// Timers, on a grid that begins at `due`.
static int64_t due;
static sigset_t signals;
static int64_t later(int64_t periods) { int64_t at = due; due += periods * PERIOD; return at; }
static int64_t get_timerfd(void) { uint64_t k; check(read(in, &k, 8) == 8); return later(k); }
static int64_t get_signalfd(void) {
    struct signalfd_siginfo info;
    check(read(in, &info, sizeof info) == sizeof info);
    return later(info.ssi_overrun + 1);
}
static int64_t get_signal(void) { siginfo_t info; while (sigwaitinfo(&signals, &info) < 0) ; return later(info.si_overrun + 1); }
static int64_t get_tai(void) {
    struct timespec at = spec(due + clock_now(CLOCK_TAI) - now());
    clock_nanosleep(CLOCK_TAI, TIMER_ABSTIME, &at, 0);
    return later(1);
}
static int64_t get_cond_until(void) {
    struct timespec at = spec(due);
    pthread_cond_timedwait(&condition, &lock, &at);
    return later(1);
}
static int64_t get_sem_until(void) { struct timespec at = spec(due); sem_clockwait(&semaphore, CLOCK_MONOTONIC, &at); return later(1); }
static int64_t get_poll(void) {
    int64_t left = due - now();
    struct timespec length = spec(left);
    if (left > 0) ppoll(0, 0, &length, 0);
    return later(1);
}
static int64_t get_yield(void) { sched_yield(); return now(); }

static const struct { const char *name; void (*send)(int64_t); int64_t (*get)(void); } kinds[] = {
    { "mq_receive", send_mq, get_mq }, { "socket", send_socket, get_socket },
    { "eventfd", send_eventfd, get_eventfd }, { "sem_wait", send_sem, get_sem }, { "cond_wait", send_cond, get_cond },
    { "inotify", send_file, get_file }, { "timerfd", 0, get_timerfd }, { "signalfd", 0, get_signalfd },
    { "sigwaitinfo", 0, get_signal }, { "tai", 0, get_tai }, { "cond_timedwait", 0, get_cond_until },
    { "sem_clockwait", 0, get_sem_until }, { "ppoll", 0, get_poll }, { "deadline", 0, get_yield },
};

static void *produce(void *send) {
    struct sched_param fifo = { .sched_priority = 60 };
    prctl(PR_SET_NAME, "producer");
    check(!sched_setscheduler(0, SCHED_FIFO, &fifo));
    for (int64_t next = now() + 10 * PERIOD;; next += PERIOD) {
        struct timespec at = spec(next);
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0)) ;
        ((void (*)(int64_t))send)(now());
    }
    return 0;
}

int main(int argc, char **words) {
    if (argc != 3) return 2;
    unsigned kind = 0;
    while (kind < sizeof kinds / sizeof *kinds && strcmp(words[1], kinds[kind].name)) kind++;
    if (kind == sizeof kinds / sizeof *kinds) return 2;
    const char *name = kinds[kind].name;
    file = words[2];
    prctl(PR_SET_NAME, "loop");
    signal(SIGTERM, save);
    sigemptyset(&signals), sigaddset(&signals, SIGRTMIN), sigprocmask(SIG_BLOCK, &signals, 0);
    due = now() + 10 * PERIOD;
    struct itimerspec timer = { spec(PERIOD), spec(due) };
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic), pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&condition, &monotonic), sem_init(&semaphore, 0, 0);
    if (kinds[kind].get == get_mq) {
        struct mq_attr sizes = { .mq_maxmsg = 10, .mq_msgsize = sizeof(int64_t) };
        char queue_name[32];
        snprintf(queue_name, sizeof queue_name, "/kinds-%d", getpid());
        check((queue = mq_open(queue_name, O_CREAT | O_RDWR, 0600, &sizes)) >= 0 && !mq_unlink(queue_name));
    }
    if (kinds[kind].get == get_socket) {
        int ends[2];
        check(!socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
        in = ends[0], out = ends[1];
    }
    if (kinds[kind].get == get_eventfd) check((in = eventfd(0, EFD_SEMAPHORE)) >= 0);
    if (kinds[kind].get == get_file) {
        char path[] = "/tmp/kinds-XXXXXX";
        check((in = mkstemp(path)) >= 0 && (out = inotify_init()) >= 0 && inotify_add_watch(out, path, IN_MODIFY) >= 0);
        unlink(path);
    }
    if (kinds[kind].get == get_timerfd)
        check((in = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0 && !timerfd_settime(in, TFD_TIMER_ABSTIME, &timer, 0));
    if (kinds[kind].get == get_signalfd || kinds[kind].get == get_signal) {
        struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
        timer_t id;
        check(!timer_create(CLOCK_MONOTONIC, &event, &id) && !timer_settime(id, TIMER_ABSTIME, &timer, 0));
        check((in = signalfd(-1, &signals, 0)) >= 0);
    }
    if (kinds[kind].get == get_cond_until) pthread_mutex_lock(&lock);
    pthread_t thread;
    if (kinds[kind].send) check(!pthread_create(&thread, 0, produce, (void *)kinds[kind].send));
    if (!strcmp(name, "deadline")) {
        struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t runtime, deadline, period; }
            budget = { 48, SCHED_DEADLINE, 0, 0, 0, PERIOD * 9 / 10, PERIOD, PERIOD };
        check(!syscall(SYS_sched_setattr, 0, &budget, 0));
    } else {
        struct sched_param fifo = { .sched_priority = 50 };
        check(!sched_setscheduler(0, SCHED_FIFO, &fifo));
    }
    for (;;) turn(kinds[kind].get());
}
