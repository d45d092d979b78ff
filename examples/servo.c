/*
 * servo: a control loop like that of a robot arm, with faults that can be switched on.
 *
 *   cc -O2 -pthread servo.c -o servo
 *   punctual watch --for 5s -- ./servo
 *   punctual watch --for 5s -- ./servo --fault nice_lock
 *   punctual watch --for 5s --chain sensor,controller,actuator -- ./servo
 *
 * Three threads form a chain. `sensor` wakes up every 2 ms, reads the position and passes it on; `controller` computes
 * the force; `actuator` applies it. Each passes its result through an eventfd, whose read is the wait of the next one.
 *
 * A fault hits every 50th loop of the controller. `--fault a+b` plants several, which take turns. None prints a word:
 * finding them is the task of the tool that watches.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000L
#define MEMORY (4L << 20) /* bytes that page faults and malloc are about */
#define LINES 16384       /* bytes of a burst of log lines; the pipe holds 4096 */

static long period_ns = 2 * MS;
static long every = 50;
static int priority = 80; /* of the sensor; the controller and the actuator follow; 0: normal threads */
static const char *directory = "/var/tmp";
static bool relative; /* sleep for a length of time instead of until an instant */

static int samples, forces;         /* eventfds from the sensor, and to the actuator */
static volatile double position, force; /* the arm, moved by the actuator */
static atomic_bool over;

/* ---- helpers ---- */

static void die(const char *what)
{
	fprintf(stderr, "servo: %s: %s\n", what, strerror(errno));
	exit(1);
}

static long now_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * 1000 * MS + now.tv_nsec;
}

static void sleep_ns(long ns)
{
	struct timespec length = { ns / (1000 * MS), ns % (1000 * MS) };
	clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL);
}

/* Computes for this much CPU time, so that a preempted thread still does all its work. */
static void compute(long ns)
{
	long until = now_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		for (volatile int i = 0; i < 200; i++)
			;
}

/* Computes a number of steps without any system call. */
static void steps(long n)
{
	volatile double x = 1;
	for (long i = 0; i < n; i++)
		x = x * 0.999 + 0.001;
}

/* The nth CPU of those that the program may use, counted in a circle. */
static int nth_cpu(int n)
{
	static cpu_set_t all;
	static int count;
	if (count == 0) {
		sched_getaffinity(0, sizeof all, &all);
		count = CPU_COUNT(&all);
	}
	n %= count;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && n-- == 0)
			return cpu;
	return 0;
}

static void pin(int cpu)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof one, &one);
}

/* Sets the name and the policy of this thread: FIFO `below` under the priority of the loop, or `nice`. */
static void be(const char *name, int below, int nice)
{
	pthread_setname_np(pthread_self(), name);
	struct sched_param param = { .sched_priority = nice ? 0 : priority - below };
	int policy = nice || priority == 0 ? SCHED_OTHER : SCHED_FIFO;
	if (policy == SCHED_OTHER)
		param.sched_priority = 0;
	if (pthread_setschedparam(pthread_self(), policy, &param) != 0 && policy == SCHED_FIFO) {
		priority = 0; /* without the permission, all threads are normal ones */
		fprintf(stderr, "servo: no permission for real-time priorities: normal threads\n");
	}
	if (nice)
		setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), nice);
}

static pthread_t start(void *(*thread)(void *))
{
	pthread_t id;
	int err = pthread_create(&id, NULL, thread, NULL);
	if (err != 0) {
		errno = err;
		die("cannot start a thread");
	}
	return id;
}

/* ---- the faults: each has what it needs, what happens one loop before, and what happens in the loop ---- */

struct fault {
	const char *name;
	void (*prepare)(void);
	void (*before)(void); /* at the end of the loop before the one that it hits */
	void (*hit)(void);
};

static pthread_mutex_t plain_lock, pi_lock;
static sem_t wanted, taken, rival_wanted;
static char *memory;
static int file, pipe_ends[2], service_ends[2];

/* A thread of low priority that holds the locks until its report is wanted and, 3 ms later, written. */
static void *logger(void *unused)
{
	be("logger", 0, 10);
	do {
		pthread_mutex_lock(&plain_lock);
		pthread_mutex_lock(&pi_lock);
		while (sem_wait(&wanted) != 0)
			;
		compute(3 * MS);
		pthread_mutex_unlock(&pi_lock);
		pthread_mutex_unlock(&plain_lock);
	} while (sem_wait(&taken) == 0 || errno == EINTR);
	return unused;
}

static void make_lock(pthread_mutex_t *lock, int protocol)
{
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, protocol);
	pthread_mutex_init(lock, &attributes);
}

static void prepare_locks(void)
{
	static bool done;
	if (done)
		return;
	done = true;
	make_lock(&plain_lock, PTHREAD_PRIO_NONE);
	make_lock(&pi_lock, PTHREAD_PRIO_INHERIT);
	sem_init(&wanted, 0, 0);
	sem_init(&taken, 0, 0);
	start(logger);
}

static void before_lock(void) { sem_post(&wanted); }

static void hit_nice_lock(void)
{
	pthread_mutex_lock(&plain_lock);
	pthread_mutex_unlock(&plain_lock);
	sem_post(&taken);
}

static void hit_pi_lock(void)
{
	pthread_mutex_lock(&pi_lock);
	pthread_mutex_unlock(&pi_lock);
	sem_post(&taken);
}

/* Priority inversion: `vision`, above the logger and below the controller, takes the CPU of the logger. */
static sem_t logger_holds;

static void *pinned_logger(void *unused)
{
	be("logger", 0, 10);
	pin(nth_cpu(1));
	while (sem_wait(&wanted) == 0 || errno == EINTR) {
		pthread_mutex_lock(&plain_lock);
		sem_post(&logger_holds);
		compute(MS);
		pthread_mutex_unlock(&plain_lock);
	}
	return unused;
}

static void *vision(void *unused)
{
	be("vision", 30, 0);
	pin(nth_cpu(1));
	while (sem_wait(&logger_holds) == 0 || errno == EINTR)
		compute(3 * MS);
	return unused;
}

static void prepare_inversion(void)
{
	make_lock(&plain_lock, PTHREAD_PRIO_NONE);
	sem_init(&wanted, 0, 0);
	sem_init(&taken, 0, 0);
	sem_init(&logger_holds, 0, 0);
	start(pinned_logger);
	start(vision);
}

/* Minor page faults: another thread has given the memory back to the kernel, so each page has to be made anew. */
static sem_t trim_wanted;

static void *trimmer(void *unused)
{
	be("trimmer", 0, 10);
	while (sem_wait(&trim_wanted) == 0 || errno == EINTR) {
		madvise(memory, MEMORY, MADV_DONTNEED);
		if (file > 0)
			posix_fadvise(file, 0, MEMORY, POSIX_FADV_DONTNEED);
	}
	return unused;
}

static void prepare_trimmer(void)
{
	sem_init(&trim_wanted, 0, 1);
	start(trimmer);
}

static void prepare_page_fault(void)
{
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		die("cannot map memory");
	madvise(memory, MEMORY, MADV_NOHUGEPAGE);
	prepare_trimmer();
}

/* The next time is far enough: the trimmer may have to wait for the CPU. */
static void hit_page_fault(void)
{
	for (long at = 0; at < MEMORY; at += 4096)
		memory[at]++;
	sem_post(&trim_wanted);
}

/* Opens a file without a name, which is gone when the program ends however it ends. */
static void open_file(void)
{
	if (file > 0)
		return;
	file = open(directory, O_TMPFILE | O_RDWR, 0600);
	if (file < 0) { /* a file system without such files */
		char name[4096];
		snprintf(name, sizeof name, "%s/servo-XXXXXX", directory);
		file = mkstemp(name);
		if (file < 0)
			die(directory);
		unlink(name);
	}
}

/* Major page faults: pages of a file that has to be read from the disk again. */
static void prepare_major_fault(void)
{
	open_file();
	char *zeros = calloc(1, MEMORY);
	if (write(file, zeros, MEMORY) != MEMORY || fsync(file) != 0)
		die("cannot write a file");
	free(zeros);
	memory = mmap(NULL, MEMORY, PROT_READ, MAP_SHARED, file, 0);
	if (memory == MAP_FAILED)
		die("cannot map a file");
	madvise(memory, MEMORY, MADV_RANDOM); /* no reading ahead */
	prepare_trimmer();
}

static void hit_major_fault(void)
{
	static volatile char sum;
	for (long at = 0; at < MEMORY; at += MEMORY / 16)
		sum += memory[at];
	sem_post(&trim_wanted);
}

/* A state that must not be lost: written and synced in the loop. */
static void hit_fsync(void)
{
	char state[4096];
	memset(state, 1, sizeof state);
	if (pwrite(file, state, sizeof state, 0) != sizeof state || fsync(file) != 0)
		die("cannot write the state");
}

/* A service that needs 3 ms for its answer. */
static void *service(void *unused)
{
	char request;
	be("service", 0, 5);
	while (read(service_ends[1], &request, 1) == 1) {
		sleep_ns(3 * MS);
		if (write(service_ends[1], &request, 1) != 1)
			break;
	}
	return unused;
}

static void prepare_service(void)
{
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, service_ends) != 0)
		die("cannot make a socket");
	start(service);
}

static void hit_service(void)
{
	char answer = 1;
	if (write(service_ends[0], &answer, 1) != 1 || read(service_ends[0], &answer, 1) != 1)
		die("the service does not answer");
}

/* Memory that malloc gets from the kernel each time, and gives back. */
static void prepare_malloc(void) { mallopt(M_MMAP_THRESHOLD, 128 << 10); }

static void hit_malloc(void)
{
	volatile char *buffer = malloc(MEMORY);
	if (buffer == NULL)
		die("no memory");
	for (long at = 0; at < MEMORY; at += 4096)
		buffer[at] = 1;
	free((char *)buffer);
}

/* A log line into a pipe whose reader is slow. */
static void *reader(void *unused)
{
	static char lines[4096];
	be("reader", 0, 10);
	while (read(pipe_ends[0], lines, sizeof lines) > 0)
		sleep_ns(MS);
	return unused;
}

static void prepare_full_pipe(void)
{
	if (pipe(pipe_ends) != 0)
		die("cannot make a pipe");
	fcntl(pipe_ends[1], F_SETPIPE_SZ, 4096);
	start(reader);
}

static void hit_full_pipe(void)
{
	static const char lines[LINES];
	if (write(pipe_ends[1], lines, sizeof lines) < 0)
		die("cannot write to the pipe");
}

/* A thread of the same priority on the same CPU, which runs for 3 ms just when the controller is to be woken. */
static void *rival(void *unused)
{
	be("rival", 1, 0);
	pin(nth_cpu(0));
	while (sem_wait(&rival_wanted) == 0 || errno == EINTR)
		compute(3 * MS);
	return unused;
}

static void prepare_equal_priority(void)
{
	pin(nth_cpu(0));
	sem_init(&rival_wanted, 0, 0);
	start(rival);
}

static void before_equal_priority(void) { sem_post(&rival_wanted); }

/* CPU limit of the control group (start the program in one with a quota): a second thread uses it up. */
static sem_t batch_wanted;

static void *batch(void *unused)
{
	be("batch", 0, 1);
	while (sem_wait(&batch_wanted) == 0 || errno == EINTR)
		compute(30 * MS);
	return unused;
}

static void prepare_cpu_limit(void)
{
	sem_init(&batch_wanted, 0, 0);
	start(batch);
}

static void before_cpu_limit(void) { sem_post(&batch_wanted); }

/* A thread that chases a better CPU. */
static void hit_migration(void)
{
	for (int i = 1; i <= 16; i++)
		pin(nth_cpu(i));
}

static void hit_long_run(void) { steps(1000000); }
static void hit_sleep(void) { sleep_ns(3 * MS); }
static void prepare_relative_timer(void) { relative = true; }

static const struct fault faults[] = {
	{ "page_fault", prepare_page_fault, NULL, hit_page_fault },
	{ "major_fault", prepare_major_fault, NULL, hit_major_fault },
	{ "nice_lock", prepare_locks, before_lock, hit_nice_lock },
	{ "pi_lock", prepare_locks, before_lock, hit_pi_lock },
	{ "inversion", prepare_inversion, before_lock, hit_nice_lock },
	{ "fsync", open_file, NULL, hit_fsync },
	{ "service", prepare_service, NULL, hit_service },
	{ "malloc", prepare_malloc, NULL, hit_malloc },
	{ "full_pipe", prepare_full_pipe, NULL, hit_full_pipe },
	{ "equal_priority", prepare_equal_priority, before_equal_priority, NULL },
	{ "cpu_limit", prepare_cpu_limit, before_cpu_limit, NULL },
	{ "migration", NULL, NULL, hit_migration },
	{ "long_run", NULL, NULL, hit_long_run },
	{ "sleep", NULL, NULL, hit_sleep },
	{ "relative_timer", prepare_relative_timer, NULL, NULL },
};

static const struct fault *planted[sizeof faults / sizeof *faults];
static long n_planted;

/* Faults that need the same memory or the same thread for different things. */
static const char *const apart[][2] = {
	{ "page_fault", "major_fault" },
	{ "inversion", "nice_lock" },
	{ "inversion", "pi_lock" },
};

static bool can_be_beside(const char *one, const char *other)
{
	if (strcmp(one, other) == 0)
		return false;
	for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
		if ((strcmp(apart[i][0], one) == 0 && strcmp(apart[i][1], other) == 0) ||
		    (strcmp(apart[i][0], other) == 0 && strcmp(apart[i][1], one) == 0))
			return false;
	return true;
}

static void plant(char *names)
{
	for (char *name = strtok(names, "+"); name != NULL; name = strtok(NULL, "+")) {
		size_t i = 0;
		while (i < sizeof faults / sizeof *faults && strcmp(faults[i].name, name) != 0)
			i++;
		if (i == sizeof faults / sizeof *faults) {
			fprintf(stderr, "servo: invalid fault \"%s\"; --help lists them\n", name);
			exit(1);
		}
		for (long other = 0; other < n_planted; other++)
			if (!can_be_beside(name, planted[other]->name)) {
				fprintf(stderr, "servo: cannot plant %s beside %s\n", name, planted[other]->name);
				exit(1);
			}
		planted[n_planted++] = &faults[i];
	}
}

/* ---- the loop ---- */

static void *sensor(void *unused)
{
	be("sensor", 0, 0);
	long due = now_ns(CLOCK_MONOTONIC);
	while (!over) {
		due += period_ns;
		if (relative) {
			sleep_ns(period_ns);
		} else {
			struct timespec at = { due / (1000 * MS), due % (1000 * MS) };
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		}
		position += force * 1e-3;
		steps(2000);
		eventfd_write(samples, 1);
	}
	return unused;
}

static void *controller(void *unused)
{
	eventfd_t n;
	be("controller", 1, 0);
	for (long i = 0; i < n_planted; i++)
		if (planted[i]->prepare != NULL)
			planted[i]->prepare();
	for (long loop = 1; eventfd_read(samples, &n) == 0; loop++) {
		double error = 1.0 - position;
		steps(10000);
		force = 3.0 * error;
		if (n_planted > 0 && loop % every == 0) {
			const struct fault *fault = planted[loop / every % n_planted];
			if (fault->hit != NULL)
				fault->hit();
		}
		eventfd_write(forces, 1);
		if (n_planted > 0 && (loop + 1) % every == 0) {
			const struct fault *fault = planted[(loop + 1) / every % n_planted];
			if (fault->before != NULL)
				fault->before();
		}
	}
	return unused;
}

static void *actuator(void *unused)
{
	eventfd_t n;
	be("actuator", 2, 0);
	while (eventfd_read(forces, &n) == 0)
		steps(2000);
	return unused;
}

static void help(void)
{
	printf("usage: servo [--fault NAME[+NAME...]] [--every LOOPS] [--period US] [--priority N] [--dir DIR]\nfaults:");
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		printf(" %s", faults[i].name);
	printf("\n");
	exit(0);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char *value = argv[i + 1];
		if (strcmp(argv[i], "--help") == 0)
			help();
		if (value == NULL) {
			fprintf(stderr, "servo: invalid argument \"%s\"; see --help\n", argv[i]);
			return 1;
		}
		if (strcmp(argv[i], "--fault") == 0)
			plant(value);
		else if (strcmp(argv[i], "--every") == 0)
			every = atol(value);
		else if (strcmp(argv[i], "--period") == 0)
			period_ns = atol(value) * 1000;
		else if (strcmp(argv[i], "--priority") == 0)
			priority = atoi(value);
		else if (strcmp(argv[i], "--dir") == 0)
			directory = value;
		else {
			fprintf(stderr, "servo: invalid option \"%s\"; see --help\n", argv[i]);
			return 1;
		}
		i++;
	}
	if (every < 2 || period_ns < 100000 || priority < 0 || priority > 99 || (priority > 0 && priority < 40)) {
		fprintf(stderr, "servo: expected --every >= 2, --period >= 100, --priority 0 or 40 to 99\n");
		return 1;
	}
	/* What a control loop should do: no page fault in the usual loop. */
	mlockall(MCL_CURRENT);
	nth_cpu(0);
	samples = eventfd(0, 0);
	forces = eventfd(0, 0);
	if (samples < 0 || forces < 0)
		die("cannot make an eventfd");
	start(actuator);
	start(controller);
	pthread_join(start(sensor), NULL);
	return 0;
}
