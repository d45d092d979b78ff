/* Threads that delay others on one CPU: culprit_threads KIND CPU [SECONDS]. Exits after SECONDS, or 8 s. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { HERD = 800 };
static int cpu, timer;
static double until;
static pthread_mutex_t lock;
static volatile int holds;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int over(void)
{
	return now() > until;
}

static void spin(double seconds)
{
	double end = now() + seconds;

	while (now() < end && !over())
		;
}

static void set_priority(int priority)
{
	struct sched_param param = { .sched_priority = priority };

	if (sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER, &param))
		exit(1);
}

static void be(const char *name, int on_cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(on_cpu, &cpus);
	prctl(PR_SET_NAME, name);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		exit(1);
}

/* Holds the lock for 4 ms. */
static void *holder(void *unused)
{
	be("culprit", cpu);
	while (!over()) {
		pthread_mutex_lock(&lock);
		holds = 1;
		spin(0.004);
		holds = 0;
		pthread_mutex_unlock(&lock);
		usleep(20000);
	}
	return unused;
}

/* Waits for the lock, with a higher priority, on another CPU. */
static void *waiter(void *unused)
{
	be("waiter", cpu == 0);
	set_priority(90);
	while (!over()) {
		while (!holds && !over())
			usleep(200);
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
		usleep(5000);
	}
	return unused;
}

static void inherit(void)
{
	pthread_mutexattr_t attributes;
	pthread_t threads[2];

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&lock, &attributes);
	pthread_create(&threads[0], NULL, holder, NULL);
	pthread_create(&threads[1], NULL, waiter, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

/* Raises its own priority while running. */
static void raise_priority(void)
{
	be("culprit", cpu);
	while (!over()) {
		set_priority(90);
		spin(0.004);
		set_priority(0);
		usleep(20000);
	}
}

/* One timer wakes all its readers, in its interrupt; only one of them reads the expiration. */
static void *reader(void *unused)
{
	uint64_t expirations;

	be("culprit", cpu);
	while (!over())
		if (read(timer, &expirations, sizeof(expirations)) < 0)
			exit(1);
	return unused;
}

static void herd(void)
{
	struct itimerspec every = { { 0, 25000000 }, { 0, 25000000 } };
	pthread_attr_t attributes;
	pthread_t thread;

	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 65536);
	for (int i = 0; i < HERD; i++)
		if (pthread_create(&thread, &attributes, reader, NULL))
			break; /* Where the number of threads is limited, half of them are enough. */
	be("culprit", cpu);
	timerfd_settime(timer, 0, &every, NULL);
	while (!over())
		usleep(100000);
	/* The readers never return. */
	_exit(0);
}

/* Runs for 2.5 ms every 20 ms with this priority. */
static void burst(int priority)
{
	be("culprit", cpu);
	set_priority(priority);
	while (!over()) {
		spin(0.0025);
		usleep(20000);
	}
}

/* Runs without a pause, below the measured thread. */
static void hog(void)
{
	be("culprit", cpu);
	set_priority(50);
	spin(8);	/* or until the end */
}

int main(int count, char **words)
{
	if (count < 3)
		return 2;
	cpu = atoi(words[2]);
	until = now() + (count > 3 ? atoi(words[3]) : 8);
	if (!strcmp(words[1], "inherit"))
		inherit();
	else if (!strcmp(words[1], "raise"))
		raise_priority();
	else if (!strcmp(words[1], "herd"))
		herd();
	else if (!strcmp(words[1], "higher"))
		burst(95);
	else if (!strcmp(words[1], "equal"))
		burst(80);
	else if (!strcmp(words[1], "hog"))
		hog();
	else
		return 2;
	return 0;
}
