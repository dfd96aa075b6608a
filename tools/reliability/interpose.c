// Calls of the C library that a process makes on the files below one folder, counted, and disturbed
// at a use that was chosen: by an error, by a part of the write only, or by the end of the process.
//
//     cc -O2 -shared -fPIC -o interpose.so interpose.c -ldl
//     LD_PRELOAD=interpose.so python ...
//
//     interpose_arm      from now on: which folder, which calls, which use, and what becomes of it
//     interpose_disarm   from now on nothing is counted or disturbed; descriptors are still followed
//     interpose_rearm    goes on where it was disarmed
//     interpose_counts   uses of each call since it was armed
//     interpose_fired    how many of them were disturbed
//
// A descriptor counts if it was opened below the folder, or duplicated from one that was. A name
// counts if it is absolute and below the folder, or relative to a descriptor that counts.
// Memory counts where the caller is in one of the libraries named to `interpose_watch`.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

enum call {
  OPEN, CREATE, CLOSE, DUPLICATE, READ, WRITE, TRUNCATE, ALLOCATE, SYNC, SYNC_RANGE, RENAME, UNLINK,
  MKDIR, LIST, STAT, SPACE, MAP, LOCK, MEMORY, THREAD, CALLS
};
const char *const interpose_names =
    "open create close duplicate read write truncate allocate sync sync_range rename unlink "
    "mkdir list stat space map lock memory thread";

enum action { PASS, FAIL, PART, KILL, TEAR };  // TEAR: a part is written, then the process ends

static struct {
  char root[PATH_MAX];
  size_t root_bytes;
  atomic_int armed;
  unsigned long calls;  // bit c: call c is one of those that are disturbed
  long first, last;     // uses of them, from 1
  int action, error;
  atomic_long uses, fired, counts[CALLS];
} plan;

#define MOST_DESCRIPTORS 65536
static _Atomic unsigned char ours[MOST_DESCRIPTORS];

static struct { size_t begin, end, least; } watched[64];
static int watched_count;
static size_t watched_least;

static int next_action(enum call call) {
  if (!atomic_load_explicit(&plan.armed, memory_order_relaxed)) return PASS;
  atomic_fetch_add(&plan.counts[call], 1);
  if (!(plan.calls >> call & 1)) return PASS;
  const long use = atomic_fetch_add(&plan.uses, 1) + 1;
  if (use < plan.first || use > plan.last) return PASS;
  atomic_fetch_add(&plan.fired, 1);
  if (plan.action == KILL) kill(getpid(), SIGKILL);
  return plan.action;
}

static int below(const char *path) {
  return plan.root_bytes && path != NULL && strncmp(path, plan.root, plan.root_bytes) == 0 &&
         (path[plan.root_bytes] == '/' || path[plan.root_bytes] == 0);
}

static int is_ours(int fd) { return fd >= 0 && fd < MOST_DESCRIPTORS && ours[fd]; }

static int below_at(int fd, const char *path) {
  return path != NULL && path[0] != '/' && fd != AT_FDCWD ? is_ours(fd) : below(path);
}

static int follow(int fd, int wanted) {
  if (fd >= 0 && fd < MOST_DESCRIPTORS) ours[fd] = wanted != 0;
  return fd;
}

// What Python calls ------------------------------------------------------------------------------

void interpose_arm(const char *root, unsigned long calls, long first, long last, int action,
                   int error) {
  plan.root_bytes = strlen(root);
  memcpy(plan.root, root, plan.root_bytes + 1);
  plan.calls = calls, plan.first = first, plan.last = last;
  plan.action = action, plan.error = error;
  plan.uses = plan.fired = 0;
  for (int call = 0; call < CALLS; ++call) plan.counts[call] = 0;
  plan.armed = 1;
}

void interpose_disarm(void) { plan.armed = 0; }

void interpose_rearm(void) { plan.armed = 1; }

void interpose_counts(long *counts) {
  for (int call = 0; call < CALLS; ++call) counts[call] = plan.counts[call];
}

long interpose_fired(void) { return plan.fired; }

static int note(struct dl_phdr_info *info, size_t size, void *name) {
  (void)size;
  if (strstr(info->dlpi_name, name) == NULL) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || watched_count == 64) continue;
    watched[watched_count].least = watched_least;
    watched[watched_count].begin = info->dlpi_addr + part->p_vaddr;
    watched[watched_count++].end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
  }
  return 0;
}

// From now on memory of `least` bytes and more counts that this library asks for. Returns how many
// pieces of code are watched.
int interpose_watch(const char *name, size_t least) {
  watched_least = least;
  dl_iterate_phdr(note, (void *)name);
  return watched_count;
}

// What is disturbed ------------------------------------------------------------------------------

#define REAL(name) \
  static __typeof__(&name) real; \
  if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define FAILED(value) do { errno = plan.error; return (value); } while (0)

static int opening(int flags) { return flags & O_CREAT ? CREATE : OPEN; }

int open(const char *path, int flags, ...) {
  REAL(open);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (!below(path)) return follow(real(path, flags, mode), 0);
  if (next_action(opening(flags))) FAILED(-1);
  return follow(real(path, flags, mode), 1);
}
int open64(const char *path, int flags, ...) __attribute__((alias("open")));

int openat(int fd, const char *path, int flags, ...) {
  REAL(openat);
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (!below_at(fd, path)) return follow(real(fd, path, flags, mode), 0);
  if (next_action(opening(flags))) FAILED(-1);
  return follow(real(fd, path, flags, mode), 1);
}
int openat64(int fd, const char *path, int flags, ...) __attribute__((alias("openat")));

int creat(const char *path, mode_t mode) { return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) __attribute__((alias("creat")));

int close(int fd) {
  REAL(close);
  const int counted = is_ours(fd);
  follow(fd, 0);
  const int action = counted ? next_action(CLOSE) : PASS;
  const int code = real(fd);  // the descriptor is gone even where closing fails
  if (action) FAILED(-1);
  return code;
}

int fcntl(int fd, int command, ...) {
  REAL(fcntl);
  va_list rest;
  va_start(rest, command);
  void *value = va_arg(rest, void *);
  va_end(rest);
  const int duplicates = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
  const int locks = command == F_SETLK || command == F_SETLKW || command == F_SETLEASE;
  if (is_ours(fd) && (duplicates || locks) && next_action(duplicates ? DUPLICATE : LOCK)) FAILED(-1);
  const int code = real(fd, command, value);
  return duplicates ? follow(code, is_ours(fd)) : code;
}
int fcntl64(int fd, int command, ...) __attribute__((alias("fcntl")));

int dup(int fd) {
  REAL(dup);
  if (is_ours(fd) && next_action(DUPLICATE)) FAILED(-1);
  return follow(real(fd), is_ours(fd));
}

int flock(int fd, int operation) {
  REAL(flock);
  if (is_ours(fd) && next_action(LOCK)) FAILED(-1);
  return real(fd, operation);
}

ssize_t read(int fd, void *data, size_t bytes) {
  REAL(read);
  if (is_ours(fd) && next_action(READ)) FAILED(-1);
  return real(fd, data, bytes);
}

ssize_t pread(int fd, void *data, size_t bytes, off_t at) {
  REAL(pread);
  if (is_ours(fd) && next_action(READ)) FAILED(-1);
  return real(fd, data, bytes, at);
}
ssize_t pread64(int fd, void *data, size_t bytes, off_t at) __attribute__((alias("pread")));

#define WRITTEN(whole, part)                                 \
  if (!is_ours(fd)) return (whole);                          \
  switch (next_action(WRITE)) {                              \
    case PASS: return (whole);                               \
    case PART: return (part);                                \
    case TEAR:                                               \
      if (bytes > SECTOR) (void)(part);                      \
      kill(getpid(), SIGKILL);                               \
      break;                                                 \
  }                                                          \
  FAILED(-1)

enum { SECTOR = 512 };  // which a disk writes whole

static size_t half(size_t bytes) { return bytes > 1 ? bytes / 2 : bytes; }

ssize_t write(int fd, const void *data, size_t bytes) {
  REAL(write);
  WRITTEN(real(fd, data, bytes), real(fd, data, half(bytes)));
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at) {
  REAL(pwrite);
  WRITTEN(real(fd, data, bytes, at), real(fd, data, half(bytes), at));
}
ssize_t pwrite64(int fd, const void *data, size_t bytes, off_t at) __attribute__((alias("pwrite")));

ssize_t writev(int fd, const struct iovec *pieces, int count) {
  REAL(writev);
  const size_t bytes = count > 1 ? SIZE_MAX : pieces->iov_len;
  WRITTEN(real(fd, pieces, count), write(fd, pieces->iov_base, half(pieces->iov_len)));
}

ssize_t pwritev(int fd, const struct iovec *pieces, int count, off_t at) {
  REAL(pwritev);
  const size_t bytes = count > 1 ? SIZE_MAX : pieces->iov_len;
  WRITTEN(real(fd, pieces, count, at), pwrite(fd, pieces->iov_base, half(pieces->iov_len), at));
}
ssize_t pwritev64(int fd, const struct iovec *pieces, int count, off_t at)
    __attribute__((alias("pwritev")));

int ftruncate(int fd, off_t bytes) {
  REAL(ftruncate);
  if (is_ours(fd) && next_action(TRUNCATE)) FAILED(-1);
  return real(fd, bytes);
}
int ftruncate64(int fd, off_t bytes) __attribute__((alias("ftruncate")));

int truncate(const char *path, off_t bytes) {
  REAL(truncate);
  if (below(path) && next_action(TRUNCATE)) FAILED(-1);
  return real(path, bytes);
}
int truncate64(const char *path, off_t bytes) __attribute__((alias("truncate")));

int posix_fallocate(int fd, off_t at, off_t bytes) {
  REAL(posix_fallocate);
  if (is_ours(fd) && next_action(ALLOCATE)) return plan.error;
  return real(fd, at, bytes);
}
int posix_fallocate64(int fd, off_t at, off_t bytes) __attribute__((alias("posix_fallocate")));

int fallocate(int fd, int mode, off_t at, off_t bytes) {
  REAL(fallocate);
  if (is_ours(fd) && next_action(ALLOCATE)) FAILED(-1);
  return real(fd, mode, at, bytes);
}
int fallocate64(int fd, int mode, off_t at, off_t bytes) __attribute__((alias("fallocate")));

int fsync(int fd) {
  REAL(fsync);
  if (is_ours(fd) && next_action(SYNC)) FAILED(-1);
  return real(fd);
}

int fdatasync(int fd) {
  REAL(fdatasync);
  if (is_ours(fd) && next_action(SYNC)) FAILED(-1);
  return real(fd);
}

int sync_file_range(int fd, off64_t at, off64_t bytes, unsigned flags) {
  REAL(sync_file_range);
  if (is_ours(fd) && next_action(SYNC_RANGE)) FAILED(-1);
  return real(fd, at, bytes, flags);
}

int rename(const char *from, const char *to) {
  REAL(rename);
  if (below(from) && next_action(RENAME)) FAILED(-1);
  return real(from, to);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to) {
  REAL(renameat);
  if (below_at(from_fd, from) && next_action(RENAME)) FAILED(-1);
  return real(from_fd, from, to_fd, to);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags) {
  REAL(renameat2);
  if (below_at(from_fd, from) && next_action(RENAME)) FAILED(-1);
  return real(from_fd, from, to_fd, to, flags);
}

int link(const char *from, const char *to) {
  REAL(link);
  if (below(to) && next_action(RENAME)) FAILED(-1);
  return real(from, to);
}

int unlink(const char *path) {
  REAL(unlink);
  if (below(path) && next_action(UNLINK)) FAILED(-1);
  return real(path);
}

int unlinkat(int fd, const char *path, int flags) {
  REAL(unlinkat);
  if (below_at(fd, path) && next_action(UNLINK)) FAILED(-1);
  return real(fd, path, flags);
}

int rmdir(const char *path) {
  REAL(rmdir);
  if (below(path) && next_action(UNLINK)) FAILED(-1);
  return real(path);
}

int mkdir(const char *path, mode_t mode) {
  REAL(mkdir);
  if (below(path) && next_action(MKDIR)) FAILED(-1);
  return real(path, mode);
}

int mkdirat(int fd, const char *path, mode_t mode) {
  REAL(mkdirat);
  if (below_at(fd, path) && next_action(MKDIR)) FAILED(-1);
  return real(fd, path, mode);
}

DIR *opendir(const char *path) {
  REAL(opendir);
  if (below(path) && next_action(LIST)) FAILED(NULL);
  return real(path);
}

DIR *fdopendir(int fd) {
  REAL(fdopendir);
  if (is_ours(fd) && next_action(LIST)) FAILED(NULL);
  return real(fd);
}

int stat(const char *path, struct stat *found) {
  REAL(stat);
  if (below(path) && next_action(STAT)) FAILED(-1);
  return real(path, found);
}
int stat64(const char *path, struct stat64 *found) __attribute__((alias("stat")));

int lstat(const char *path, struct stat *found) {
  REAL(lstat);
  if (below(path) && next_action(STAT)) FAILED(-1);
  return real(path, found);
}
int lstat64(const char *path, struct stat64 *found) __attribute__((alias("lstat")));

int fstat(int fd, struct stat *found) {
  REAL(fstat);
  if (is_ours(fd) && next_action(STAT)) FAILED(-1);
  return real(fd, found);
}
int fstat64(int fd, struct stat64 *found) __attribute__((alias("fstat")));

int fstatat(int fd, const char *path, struct stat *found, int flags) {
  REAL(fstatat);
  if (below_at(fd, path) && next_action(STAT)) FAILED(-1);
  return real(fd, path, found, flags);
}
int fstatat64(int fd, const char *path, struct stat64 *found, int flags)
    __attribute__((alias("fstatat")));

int __fxstat(int version, int fd, struct stat *found) {  // libraries built against an older libc
  (void)version;
  return fstat(fd, found);
}

int __xstat(int version, const char *path, struct stat *found) {
  (void)version;
  return stat(path, found);
}

int statvfs(const char *path, struct statvfs *found) {
  REAL(statvfs);
  if (below(path) && next_action(SPACE)) FAILED(-1);
  return real(path, found);
}
int statvfs64(const char *path, struct statvfs64 *found) __attribute__((alias("statvfs")));

off_t lseek(int fd, off_t at, int from) {
  REAL(lseek);
  if (is_ours(fd) && next_action(STAT)) FAILED(-1);
  return real(fd, at, from);
}
off_t lseek64(int fd, off_t at, int from) __attribute__((alias("lseek")));

// Memory and threads -----------------------------------------------------------------------------

static int is_watched(const void *caller, size_t bytes) {
  const size_t at = (size_t)caller;
  for (int i = 0; i < watched_count; ++i) {
    if (watched[i].begin <= at && at < watched[i].end) return bytes >= watched[i].least;
  }
  return 0;
}

#define REFUSED(bytes) (is_watched(__builtin_return_address(0), bytes) && next_action(MEMORY))

void *mmap(void *address, size_t bytes, int access, int flags, int fd, off_t at) {
  REAL(mmap);
  if (flags & MAP_ANONYMOUS ? REFUSED(bytes) : is_ours(fd) && next_action(MAP)) FAILED(MAP_FAILED);
  return real(address, bytes, access, flags, fd, at);
}
void *mmap64(void *address, size_t bytes, int access, int flags, int fd, off_t at)
    __attribute__((alias("mmap")));

// The C library's own, under names that do not ask the loader, which would ask for memory.
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes) {
  if (REFUSED(bytes)) FAILED(NULL);
  return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
  if (REFUSED(count * bytes)) FAILED(NULL);
  return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes) {
  if (REFUSED(bytes)) FAILED(NULL);
  return __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  if (REFUSED(bytes)) FAILED(NULL);
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  if (REFUSED(bytes)) return ENOMEM;
  *memory = __libc_memalign(alignment, bytes);
  return *memory == NULL ? ENOMEM : 0;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*work)(void *), void *with) {
  REAL(pthread_create);
  if (plan.armed && next_action(THREAD)) return EAGAIN;
  return real(thread, how, work, with);
}
