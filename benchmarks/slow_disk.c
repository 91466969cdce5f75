/* Stands between a program and its disk, and makes every sync take SLOW_DISK_US microseconds longer.
   Preloaded with LD_PRELOAD: a fast laptop disk syncs in 0.06 ms, a cloud disk in 0.5 to 5. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_longer(void)
{
    const char *us = getenv("SLOW_DISK_US");
    if (us)
        usleep((useconds_t)atoi(us));
}

int fsync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    wait_longer();
    return real(fd);
}

int fdatasync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    wait_longer();
    return real(fd);
}
