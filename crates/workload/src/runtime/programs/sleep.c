/* Sleeps for TARGET_NS in a loop and writes the start and end of each sleep: see sleep error in docs/sleep.md.
 *
 * The call is nanosleep(2): POSIX removed usleep, sleep(3) counts whole seconds, and clock_nanosleep(2) with an
 * absolute time is a method of punctual. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Sleeps once and formats its line. Returns the length. */
static int sleep_once(long long target_ns, char *line, size_t size)
{
	struct timespec target = { target_ns / 1000000000, target_ns % 1000000000 };
	long long before, after;

	before = now_ns();
	nanosleep(&target, NULL);
	after = now_ns();
	return snprintf(line, size, "%lld %lld\n", before, after);
}

int main(int argc, char **argv)
{
	long long target_ns = argc == 3 ? atoll(argv[1]) : 0;
	int warm_up = argc == 3 ? atoi(argv[2]) : 0;
	char line[64];

	if (target_ns <= 0) {
		fprintf(stderr, "Error: the arguments are TARGET_NS WARM_UP\n");
		return 1;
	}
	while (warm_up-- > 0)
		sleep_once(100000, line, sizeof(line));
#ifdef __GLIBC__
	printf("ready %d glibc %s\n", (int)getpid(), gnu_get_libc_version());
#else
	printf("ready %d another libc than glibc\n", (int)getpid());
#endif
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (;;) {
		int length = sleep_once(target_ns, line, sizeof(line));

		/* After the reader has closed the pipe, SIGPIPE ends the program. */
		if (write(STDOUT_FILENO, line, length) != length)
			return 1;
	}
}
