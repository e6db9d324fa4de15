/* What the peers in C have in common: a ping-pong in batches as src/play.rs has them, with the floor of each. The first side
   writes a line of JSON a batch.

   Arguments: FILE CORE0,CORE1 MILLISECONDS NAME SIZE:TRIPS:SOURCE...   FILE: zeros, a page for each of these */
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { HOPS = 60, WARM_UP = 3, PAGE = 4096, FIRST = 5 };
#define OVER UINT64_MAX

/* How the program ends that includes this. */
static _Noreturn void fail(const char *what);
/* The message of this side goes to the other. */
static void send_message(void *message, int size);
/* And one comes. */
static void receive_message(void *space, int size);

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1e9 + at.tv_nsec;
}

/* Busily for a microsecond or two, then giving the processor away. */
static uint64_t wait_until(_Atomic uint64_t *word, uint64_t least) {
    uint64_t value;
    for (int turn = 0; (value = atomic_load_explicit(word, memory_order_acquire)) < least; turn++) {
        if (turn < 64) {
#if defined(__x86_64__)
            __builtin_ia32_pause();
#elif defined(__aarch64__)
            __asm__ volatile("isb");
#endif
        } else {
            sched_yield();
        }
    }
    return value;
}

static double floor_of(_Atomic uint64_t *line, uint64_t number, int side) {
    uint64_t start = number * 2 * (HOPS + 1);
    double from = 0;
    for (uint64_t turn = 0; turn <= HOPS; turn++) {
        if (turn == 1) from = now();
        if (side == 0) {
            atomic_store_explicit(line, start + 2 * turn + 1, memory_order_release);
            wait_until(line, start + 2 * turn + 2);
        } else {
            wait_until(line, start + 2 * turn + 1);
            atomic_store_explicit(line, start + 2 * turn + 2, memory_order_release);
        }
    }
    return (now() - from) / (2 * HOPS);
}

/* Reads every cache line. */
static void touch(const unsigned char *space, int size) {
    unsigned char sum = 0;
    for (int at = 0; at < size; at += 64) sum += space[at];
    __asm__ volatile("" : : "r"(sum) : "memory");
}

static void *memory(int size) {
    void *memory = aligned_alloc(PAGE, ((size_t)size + PAGE - 1) / PAGE * PAGE);
    if (!memory) fail("no memory");
    memset(memory, 1, size);
    return memory;
}

static void *page_of(const char *name, int number) {
    int file = open(name, O_RDWR);
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)number * PAGE);
    if (file < 0 || page == MAP_FAILED) fail("cannot map the file");
    close(file);
    return page;
}

static void bind_to_core(const char *cores, int side) {
    int core[2];
    cpu_set_t set;
    if (sscanf(cores, "%d,%d", &core[0], &core[1]) != 2) fail("wrong cores");
    CPU_ZERO(&set);
    CPU_SET(core[side], &set);
    if (sched_setaffinity(0, sizeof set, &set)) fail("cannot bind to a core");
}

/* One batch: the time of one way. */
static double batch(int side, unsigned char *message, unsigned char *space, int size, int trips, int rewritten) {
    double from = now();
    for (int trip = 0; trip < trips; trip++) {
        if (side == 1) {
            receive_message(space, size);
            touch(space, size);
        }
        if (rewritten) memset(message, trip, size);
        send_message(message, size);
        if (side == 0) {
            receive_message(space, size);
            touch(space, size);
        }
    }
    return (now() - from) / (2.0 * trips);
}

/* All that the arguments say. */
static void play(int argc, char **argv, int side) {
    double time = atof(argv[3]) * 1e6;
    for (int index = FIRST; index < argc; index++) {
        int size, trips;
        char source[10];
        if (sscanf(argv[index], "%d:%d:%9s", &size, &trips, source) != 3 || size < 1 || trips < 1) fail("wrong size");
        int rewritten = !strcmp(source, "rewritten");
        /* A page for each, so that numbers begin at 0. */
        char *page = page_of(argv[1], index - FIRST);
        unsigned char *message = memory(size), *space = memory(size);
        _Atomic uint64_t *word = (void *)page, *line = (void *)(page + 128);
        double begin = now();
        for (uint64_t number = 0;; number++) {
            if (side == 0) {
                if (number == WARM_UP) begin = now();
                int over = number > WARM_UP && now() - begin >= time;
                atomic_store_explicit(word, over ? OVER : number + 1, memory_order_release);
                if (over) break;
            } else if (wait_until(word, number + 1) == OVER) {
                break;
            }
            double floor = floor_of(line, number, side);
            double one_way = batch(side, message, space, size, trips, rewritten);
            if (side == 0 && number >= WARM_UP)
                printf("{\"contestant\":\"%s\",\"size\":%d,\"source\":\"%s\",\"floor\":%.1f,\"time\":%.1f}\n", argv[4], size,
                       source, floor, one_way);
        }
        free(message);
        free(space);
        munmap(page, PAGE);
    }
    fflush(stdout);
}
