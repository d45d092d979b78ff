// A thread that waits for packets of another one, and what both know of each packet.
//
// packets MODE N FROM TO ADDRESS LOG: the thread "sender" sends N packets, one each ms, from the network namespace FROM
// to ADDRESS in the namespace TO, where the thread "receiver" waits in recvmsg, poll or epoll_wait (MODE recv, poll,
// epoll), or calls recvmsg each 50 us until one is there (spin). A namespace is a file; "-" is that of the process. The
// log has a line for each packet: the clock before it was sent, the software time stamp of its reception, and the clock
// after recvmsg, ns. Its last line is the number of calls without a packet.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/net_tstamp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

enum { TIMEOUT_MS = 20000 };
static long n, empty;
static const char *mode;
static int from, to, events;
static struct sockaddr_in address = {.sin_family = AF_INET};
static long long *sent;
static struct received {
    long index;
    long long stamp, at;
} *received;

static long long ns(struct timespec at) { return at.tv_sec * 1000000000LL + at.tv_nsec; }

static long long now(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return ns(at);
}

static int socket_in(const char *space) {
    int file = strcmp(space, "-") ? open(space, O_RDONLY) : -1;
    if (strcmp(space, "-") && setns(file, CLONE_NEWNET)) {
        perror(space);
        exit(1);
    }
    return socket(AF_INET, SOCK_DGRAM, 0);
}

static void *send_all(void *nothing) {
    prctl(PR_SET_NAME, "sender");
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (long index = 0; index < n; index++) {
        due.tv_nsec += 1000000;
        if (due.tv_nsec >= 1000000000) {
            due.tv_sec++;
            due.tv_nsec -= 1000000000;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        sent[index] = now(CLOCK_MONOTONIC);
        sendto(from, &index, sizeof index, 0, (struct sockaddr *)&address, sizeof address);
    }
    return nothing;
}

static int wait_for_one(void) {
    struct epoll_event event;
    struct pollfd one = {.fd = to, .events = POLLIN};
    if (!strcmp(mode, "poll")) {
        return poll(&one, 1, TIMEOUT_MS);
    }
    return strcmp(mode, "epoll") ? 1 : epoll_wait(events, &event, 1, TIMEOUT_MS);
}

static long receive_all(void) {
    int flags = strcmp(mode, "spin") ? 0 : MSG_DONTWAIT;
    for (long count = 0; count < n; count++) {
        struct received *one = received + count;
        char control[256];
        struct iovec data = {&one->index, sizeof one->index};
        struct msghdr message;
        ssize_t size;
        do {
            message = (struct msghdr){.msg_iov = &data, .msg_iovlen = 1, .msg_control = control};
            message.msg_controllen = sizeof control;
            if (wait_for_one() < 1) {
                return count;
            }
            size = recvmsg(to, &message, flags);
            int is_empty = size < 0 && errno == EAGAIN;
            empty += is_empty;
            // A trace has room for so many calls.
            for (long long until = now(CLOCK_MONOTONIC) + 50000; is_empty && now(CLOCK_MONOTONIC) < until;) {
            }
        } while (size < 0 && flags);
        if (size < 0) {
            return count;
        }
        one->at = now(CLOCK_MONOTONIC);
        long long ahead = now(CLOCK_REALTIME) - now(CLOCK_MONOTONIC);
        for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
            if (head->cmsg_type == SCM_TIMESTAMPING) {
                one->stamp = ns(*(struct timespec *)CMSG_DATA(head)) - ahead;
            }
        }
    }
    return n;
}

int main(int count, char **words) {
    if (count != 7) {
        return 2;
    }
    mode = words[1];
    n = atol(words[2]);
    sent = calloc(n, sizeof *sent);
    received = calloc(n, sizeof *received);
    from = socket_in(words[3]);
    to = socket_in(words[4]);
    inet_pton(AF_INET, words[5], &address.sin_addr);
    address.sin_port = htons(4711);
    int stamps = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
    struct timeval timeout = {.tv_sec = TIMEOUT_MS / 1000};
    struct epoll_event event = {.events = EPOLLIN};
    events = epoll_create1(0);
    if (bind(to, (struct sockaddr *)&address, sizeof address) || epoll_ctl(events, EPOLL_CTL_ADD, to, &event) ||
        setsockopt(to, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps) ||
        setsockopt(to, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout)) {
        perror("socket");
        return 1;
    }
    pthread_t sender;
    prctl(PR_SET_NAME, "receiver");
    pthread_create(&sender, NULL, send_all, NULL);
    long all = receive_all();
    pthread_join(sender, NULL);
    FILE *log = fopen(words[6], "w");
    for (long index = 0; index < all; index++) {
        struct received one = received[index];
        fprintf(log, "%lld %lld %lld\n", sent[one.index], one.stamp, one.at);
    }
    fprintf(log, "%ld\n", empty);
    return fclose(log);
}
