/* A wall clock that a test steps: loaded with LD_PRELOAD, it adds to the time of day the seconds that the file named by
 * STEPPED_CLOCK has (a 64-bit integer). Every other clock, and every wait, stays as it is. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t none = 0;
static const volatile int64_t *step = &none;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("STEPPED_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void *memory = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *step, PROT_READ, MAP_SHARED, file, 0);
  if (memory != MAP_FAILED) step = memory;
  if (file >= 0) close(file);
}

int clock_gettime(clockid_t clock, struct timespec *found) {
  int result = syscall(SYS_clock_gettime, clock, found);
  if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) found->tv_sec += *step;
  return result;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone) {
  int result = syscall(SYS_gettimeofday, found, zone);
  if (!result) found->tv_sec += *step;
  return result;
}

time_t time(time_t *found) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (found) *found = now.tv_sec;
  return now.tv_sec;
}
