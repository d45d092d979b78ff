// blamed KIND: a FIFO loop of 4 ms that is late each 25th turn, for one reason.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ll
#define PERIOD (4 * MS)
#define SIZE (32ll << 20)
#define check(holds) do { if (!(holds)) { perror(#holds); _exit(1); } } while (0)

static const char *kind;
static sem_t wanted, wanted_too;
static pthread_barrier_t barrier;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *memory;
static int file = -1, faults = -1;
static pid_t loop_tid;

static int is(const char *name) { return strcmp(kind, name) == 0; }
static struct timespec spec(int64_t ns) { return (struct timespec){ ns / 1000000000, ns % 1000000000 }; }
static int64_t read_clock(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}
static int64_t now(void) { return read_clock(CLOCK_MONOTONIC); }
static void work(int64_t ns) { int64_t until = read_clock(CLOCK_THREAD_CPUTIME_ID) + ns; while (read_clock(CLOCK_THREAD_CPUTIME_ID) < until) ; }
static void sleep_ns(int64_t ns) { struct timespec t = spec(ns); nanosleep(&t, NULL); }
static int fifo(pid_t tid, int policy, int priority) {
    struct sched_param param = { .sched_priority = priority };
    return sched_setscheduler(tid, policy, &param);
}
// Gives up root and all limits.
static void give_up(void) {
    struct rlimit none = { 0, 0 };
    check(setrlimit(RLIMIT_MEMLOCK, &none) == 0 && setrlimit(RLIMIT_NICE, &none) == 0 && setrlimit(RLIMIT_RTPRIO, &none) == 0);
    check(setresuid(65534, 65534, 65534) == 0);
}
static void on(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

// What holds up the loop, each time that it is wanted.
static void *other(void *unused) {
    prctl(PR_SET_NAME, "other");
    for (;;) {
        while (sem_wait(&wanted)) ;
        if (is("inode")) {
            check(pwrite(file, memory, SIZE, 0) == SIZE);
        } else if (is("memory_map")) {
            for (int i = 0; i < 8; i++) {
                pid_t child = fork();
                check(child >= 0);
                if (child == 0) _exit(0);
                waitpid(child, NULL, 0);
            }
        } else if (is("backlog") || is("handed_on")) {
            pthread_mutex_lock(&lock);
            sem_post(&wanted_too);
            sleep_ns(is("backlog") ? 34 * MS : 7 * MS);
            pthread_mutex_unlock(&lock);
        } else if (is("barrier")) {
            sleep_ns(7 * MS);
            pthread_barrier_wait(&barrier);
        } else if (is("demoted")) {
            check(fifo(loop_tid, SCHED_OTHER, 0) == 0);
        }
    }
    return unused;
}

// Waits for the lock before the loop does.
static void *third(void *unused) {
    prctl(PR_SET_NAME, "third");
    check(fifo(0, SCHED_FIFO, 50) == 0);
    for (;;) {
        while (sem_wait(&wanted_too)) ;
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

// A busy thread on the CPU of the loop.
static void *hog(void *unused) {
    prctl(PR_SET_NAME, "hog");
    on(0);
    for (;;) work(MS);
    return unused;
}

// Answers page faults after 3 ms.
static void *pager(void *unused) {
    prctl(PR_SET_NAME, "pager");
    static char page[4096] __attribute__((aligned(4096)));
    struct uffd_msg message;
    while (read(faults, &message, sizeof message) == sizeof message) {
        sleep_ns(3 * MS);
        struct uffdio_copy copy = { message.arg.pagefault.address & ~4095ull, (uintptr_t)page, sizeof page, 0, 0 };
        check(ioctl(faults, UFFDIO_COPY, &copy) == 0);
    }
    return unused;
}

static void prepare(void) {
    pthread_t thread;
    sem_init(&wanted, 0, 0);
    sem_init(&wanted_too, 0, 0);
    pthread_barrier_init(&barrier, NULL, 2);
    memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (is("userfault") ? 0 : MAP_POPULATE), -1, 0);
    check(memory != MAP_FAILED);
    madvise(memory, SIZE, MADV_NOHUGEPAGE);
    if (is("inode")) {
        file = memfd_create("blamed", MFD_CLOEXEC);
        check(file >= 0);
    }
    if (is("userfault")) {
        struct uffdio_api api = { .api = UFFD_API };
        struct uffdio_register range = { { (uintptr_t)memory, SIZE }, UFFDIO_REGISTER_MODE_MISSING, 0 };
        faults = syscall(SYS_userfaultfd, O_CLOEXEC);
        check(faults >= 0 && ioctl(faults, UFFDIO_API, &api) == 0 && ioctl(faults, UFFDIO_REGISTER, &range) == 0);
        check(pthread_create(&thread, NULL, pager, NULL) == 0);
    } else {
        check(pthread_create(&thread, NULL, other, NULL) == 0);
    }
    if (is("demoted"))
        check(pthread_create(&thread, NULL, hog, NULL) == 0);
    if (is("handed_on"))
        check(pthread_create(&thread, NULL, third, NULL) == 0);
}

static void hit(int turn) {
    static char one;
    if (is("inode"))
        check(pwrite(file, &one, 1, 0) == 1);
    else if (is("memory_map"))
        check(munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096) == 0);
    else if (is("userfault"))
        memory[turn / 25 * 4096ll % SIZE] = 1;
    else if (is("deadline"))
        work(3 * MS);
    else if (is("backlog") || is("handed_on"))
        pthread_mutex_lock(&lock), pthread_mutex_unlock(&lock);
    else if (is("barrier"))
        pthread_barrier_wait(&barrier);
}

int main(int count, char **arguments) {
    check(count == 2);
    kind = arguments[1];
    loop_tid = gettid();
    prepare();
    prctl(PR_SET_NAME, "loop");
    if (is("demoted"))
        on(0);
    if (is("deadline")) {
        struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t runtime, deadline, period; }
            budget = { 48, SCHED_DEADLINE, 0, 0, 0, MS / 2, PERIOD, PERIOD };
        check(syscall(SYS_sched_setattr, 0, &budget, 0) == 0);
    } else if (is("refused")) {
        give_up();
        check(fifo(0, SCHED_FIFO, 50) != 0 && errno == EPERM);
        check(mlockall(MCL_CURRENT) != 0 && errno == EPERM);
        check(setpriority(PRIO_PROCESS, 0, -5) != 0 && errno == EACCES);
        on(CPU_SETSIZE - 1);
    } else if (is("retried")) {
        give_up();
        check(fifo(0, SCHED_FIFO, 50) != 0 && errno == EPERM);
        check(fifo(0, SCHED_BATCH, 0) == 0);
    } else if (is("filtered")) {
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setscheduler, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog filter = { sizeof code / sizeof *code, code };
        check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
        check(fifo(0, SCHED_FIFO, 50) != 0 && errno == EPERM);
    } else {
        check(fifo(0, SCHED_FIFO, 50) == 0);
    }
    int64_t due = now();
    for (int turn = 1;; turn++) {
        struct timespec at = spec(due += PERIOD);
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) ;
        work(MS / 10);
        if (turn % 25 == 0)
            hit(turn);
        // Just before the next turn, which it holds up.
        if (turn % 25 == 24 && (!is("demoted") || turn == 24 + 25 * 10))
            sem_post(&wanted);
    }
}
