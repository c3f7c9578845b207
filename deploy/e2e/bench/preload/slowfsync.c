// Makes a disk seem slower: every fsync and fdatasync takes one millisecond more.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <time.h>

static void wait_longer(void)
{
	struct timespec left = {0, 1000000};
	while (nanosleep(&left, &left) == -1 && errno == EINTR)
		;
}

int fsync(int fd)
{
	int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
	wait_longer();
	return next(fd);
}

int fdatasync(int fd)
{
	int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
	wait_longer();
	return next(fd);
}
