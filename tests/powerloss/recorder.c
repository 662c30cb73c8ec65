/* Records what a process writes, names and syncs under one folder, in the order in which it happened.
 *
 * Loaded with LD_PRELOAD. RECORD_ROOT is the folder, RECORD_LOG the file that records are appended to, each in one
 * write: kind u8, flags u8, inode u64, offset u64, lengths of a, b and data u32, then those bytes.
 *
 *   W write (flags 1: the descriptor is O_SYNC or O_DSYNC)   T truncate (offset is the new length)
 *   B a sync begins, E it ended well                          (inode; a is the path)
 *   C a file's name came to be (a: path)  K a folder's  R renamed (a to b)  U a name went away (a)
 *
 * The process appends its own records, acknowledgements, to the same file, so one order covers both.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1;
static const char *root;
static size_t root_len;

#define REAL(result, name, ...) static result (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, name)

__attribute__((constructor)) static void begin(void) {
    root = getenv("RECORD_ROOT");
    const char *path = getenv("RECORD_LOG");
    if (!root || !path) return;
    root_len = strlen(root);
    log_fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int under(const char *path) {
    return log_fd >= 0 && strncmp(path, root, root_len) == 0 && (path[root_len] == '/' || path[root_len] == 0);
}

static int path_of(int fd, char *out, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, out, size - 1);
    if (n < 0) return 0;
    out[n] = 0;
    return under(out);
}

static void record(char kind, int flags, uint64_t inode, uint64_t offset, const char *a, const char *b,
                   const void *data, size_t size) {
    uint32_t la = a ? strlen(a) : 0, lb = b ? strlen(b) : 0, ld = size;
    size_t total = 30 + la + lb + ld;
    char *buffer = malloc(total), *at = buffer;
    *at++ = kind;
    *at++ = flags;
    memcpy(at, &inode, 8); at += 8;
    memcpy(at, &offset, 8); at += 8;
    memcpy(at, &la, 4); at += 4;
    memcpy(at, &lb, 4); at += 4;
    memcpy(at, &ld, 4); at += 4;
    if (la) { memcpy(at, a, la); at += la; }
    if (lb) { memcpy(at, b, lb); at += lb; }
    if (ld) memcpy(at, data, ld);
    if (syscall(SYS_write, log_fd, buffer, total) != (ssize_t)total) abort();
    free(buffer);
}

static uint64_t inode_of(int fd) {
    struct stat found;
    return fstat(fd, &found) == 0 ? found.st_ino : 0;
}

static void wrote(int fd, const struct iovec *parts, int count, ssize_t done, off_t offset) {
    int saved = errno;
    char path[4096];
    if (done > 0 && path_of(fd, path, sizeof path)) {
        int flags = fcntl(fd, F_GETFL);
        char *joined = malloc(done), *at = joined;
        size_t left = done;
        for (int i = 0; i < count && left; i++) {
            size_t part = parts[i].iov_len < left ? parts[i].iov_len : left;
            memcpy(at, parts[i].iov_base, part);
            at += part;
            left -= part;
        }
        record('W', (flags & (O_SYNC | O_DSYNC)) ? 1 : 0, inode_of(fd), offset, path, NULL, joined, done);
        free(joined);
    }
    errno = saved;
}

/* The lock is held over the call, so that records stand in the order of the writes. */
#define WRITING(fd, parts, count, call, at) \
    do { \
        if (log_fd < 0) return call; \
        pthread_mutex_lock(&lock); \
        off_t offset = at; \
        ssize_t done = call; \
        wrote(fd, parts, count, done, offset); \
        pthread_mutex_unlock(&lock); \
        return done; \
    } while (0)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    struct iovec one = {(void *)data, size};
    WRITING(fd, &one, 1, real(fd, data, size), lseek(fd, 0, SEEK_CUR));
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t where) {
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
    struct iovec one = {(void *)data, size};
    WRITING(fd, &one, 1, real(fd, data, size, where), where);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t where) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    struct iovec one = {(void *)data, size};
    WRITING(fd, &one, 1, real(fd, data, size, where), where);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    WRITING(fd, parts, count, real(fd, parts, count), lseek(fd, 0, SEEK_CUR));
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t where) {
    REAL(ssize_t, "pwritev", int, const struct iovec *, int, off_t);
    WRITING(fd, parts, count, real(fd, parts, count, where), where);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t where) {
    REAL(ssize_t, "pwritev64", int, const struct iovec *, int, off64_t);
    WRITING(fd, parts, count, real(fd, parts, count, where), where);
}

static int truncated(int fd, off_t length, int result) {
    char path[4096];
    if (result == 0 && log_fd >= 0 && path_of(fd, path, sizeof path)) {
        pthread_mutex_lock(&lock);
        record('T', 0, inode_of(fd), length, path, NULL, NULL, 0);
        pthread_mutex_unlock(&lock);
    }
    return result;
}

int ftruncate(int fd, off_t length) {
    REAL(int, "ftruncate", int, off_t);
    return truncated(fd, length, real(fd, length));
}

int ftruncate64(int fd, off64_t length) {
    REAL(int, "ftruncate64", int, off64_t);
    return truncated(fd, length, real(fd, length));
}

static int synced(int fd, int (*real)(int)) {
    char path[4096];
    if (log_fd < 0 || !path_of(fd, path, sizeof path)) return real(fd);
    uint64_t inode = inode_of(fd);
    pthread_mutex_lock(&lock);
    record('B', 0, inode, 0, path, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    int result = real(fd);
    int saved = errno;
    if (result == 0) {
        pthread_mutex_lock(&lock);
        record('E', 0, inode, 0, path, NULL, NULL, 0);
        pthread_mutex_unlock(&lock);
    }
    errno = saved;
    return result;
}

int fsync(int fd) {
    REAL(int, "fsync", int);
    return synced(fd, real);
}

int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    return synced(fd, real);
}

int msync(void *address, size_t length, int flags) {
    /* Which file a mapping belongs to is not tracked: a store that syncs by msync is not understood by this test. */
    REAL(int, "msync", void *, size_t, int);
    if (log_fd >= 0) {
        pthread_mutex_lock(&lock);
        record('M', 0, 0, 0, NULL, NULL, NULL, 0);
        pthread_mutex_unlock(&lock);
    }
    return real(address, length, flags);
}

static void named(char kind, const char *a, const char *b) {
    int saved = errno;
    struct stat found;
    const char *there = kind == 'R' ? b : a;
    uint64_t inode = stat(there, &found) == 0 ? found.st_ino : 0;
    pthread_mutex_lock(&lock);
    record(kind, 0, inode, 0, a, b, NULL, 0);
    pthread_mutex_unlock(&lock);
    errno = saved;
}

static int opening(int (*real)(int, const char *, int, ...), int folder, const char *path, int flags, mode_t mode) {
    int watched = (flags & O_CREAT) && path[0] == '/' && log_fd >= 0 && under(path);
    int fresh = watched && access(path, F_OK) != 0;
    int emptied = !fresh && (flags & O_TRUNC) && path[0] == '/' && log_fd >= 0 && under(path);
    int fd = real(folder, path, flags, mode);
    if (fd >= 0 && fresh) named('C', path, NULL);
    if (fd >= 0 && emptied) truncated(fd, 0, 0);
    return fd;
}

static int real_openat(int folder, const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, int);
    va_end(rest);
    return syscall(SYS_openat, folder, path, flags, mode);
}

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, int); \
        va_end(rest); \
    }

int open(const char *path, int flags, ...) { MODE(flags) return opening(real_openat, AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) {
    MODE(flags) return opening(real_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode);
}
int openat(int folder, const char *path, int flags, ...) {
    MODE(flags) return opening(real_openat, folder, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) {
    MODE(flags) return opening(real_openat, folder, path, flags | O_LARGEFILE, mode);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    int result = real(path, mode);
    if (result == 0 && log_fd >= 0 && under(path)) named('K', path, NULL);
    return result;
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    int result = real(from, to);
    if (result == 0 && log_fd >= 0 && under(to)) named('R', from, to);
    return result;
}

static int unlinked(const char *path, int result) {
    if (result == 0 && path[0] == '/' && log_fd >= 0 && under(path)) named('U', path, NULL);
    return result;
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    return unlinked(path, real(path));
}

int rmdir(const char *path) {
    REAL(int, "rmdir", const char *);
    return unlinked(path, real(path));
}
