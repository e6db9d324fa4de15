/* A ping-pong over MPI, in batches as src/play.rs has them, with the floor of each. Rank 0 writes a line of JSON a batch.

   mpirun -np 2 mpi FILE CORE0,CORE1 MILLISECONDS NAME SIZE:TRIPS:SOURCE...   FILE: zeros, a page for each of these */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { HOPS = 60, WARM_UP = 3, PAGE = 4096 };
#define OVER UINT64_MAX

static void fail(const char *what) {
    fprintf(stderr, "mpi: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

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

static double floor_of(_Atomic uint64_t *line, uint64_t number, int rank) {
    uint64_t start = number * 2 * (HOPS + 1);
    double from = 0;
    for (uint64_t turn = 0; turn <= HOPS; turn++) {
        if (turn == 1) from = now();
        if (rank == 0) {
            atomic_store_explicit(line, start + 2 * turn + 1, memory_order_release);
            wait_until(line, start + 2 * turn + 2);
        } else {
            wait_until(line, start + 2 * turn + 1);
            atomic_store_explicit(line, start + 2 * turn + 2, memory_order_release);
        }
    }
    return (now() - from) / (2 * HOPS);
}

static void send_to(int peer, void *message, int size) { MPI_Send(message, size, MPI_BYTE, peer, 1, MPI_COMM_WORLD); }

static void receive_from(int peer, unsigned char *space, int size) {
    MPI_Recv(space, size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    unsigned char sum = 0;
    for (int at = 0; at < size; at += 64) sum += space[at];
    __asm__ volatile("" : : "r"(sum) : "memory");
}

int main(int argc, char **argv) {
    int rank, ranks, cores[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 6 || ranks != 2 || sscanf(argv[2], "%d,%d", &cores[0], &cores[1]) != 2) fail("wrong arguments");
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cores[rank], &set);
    if (sched_setaffinity(0, sizeof set, &set)) fail("cannot bind to a core");
    double time = atof(argv[3]) * 1e6;
    int file = open(argv[1], O_RDWR);
    for (int index = 5; index < argc; index++) {
        int size, trips;
        char source[10];
        if (sscanf(argv[index], "%d:%d:%9s", &size, &trips, source) != 3 || size < 1 || trips < 1) fail("wrong size");
        int rewritten = !strcmp(source, "rewritten");
        /* A page for each, so that numbers begin at 0. */
        char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)(index - 5) * PAGE);
        unsigned char *message = aligned_alloc(PAGE, (size + PAGE - 1) / PAGE * PAGE);
        unsigned char *space = aligned_alloc(PAGE, (size + PAGE - 1) / PAGE * PAGE);
        if (page == MAP_FAILED || !message || !space) fail("no memory");
        memset(message, 1, size);
        memset(space, 1, size);
        _Atomic uint64_t *word = (void *)page, *line = (void *)(page + 128);
        double begin = now();
        for (uint64_t number = 0;; number++) {
            if (rank == 0) {
                if (number == WARM_UP) begin = now();
                int over = number > WARM_UP && now() - begin >= time;
                atomic_store_explicit(word, over ? OVER : number + 1, memory_order_release);
                if (over) break;
            } else if (wait_until(word, number + 1) == OVER) {
                break;
            }
            double floor = floor_of(line, number, rank), from = now();
            for (int trip = 0; trip < trips; trip++) {
                if (rank == 1) receive_from(0, space, size);
                if (rewritten) memset(message, trip, size);
                send_to(1 - rank, message, size);
                if (rank == 0) receive_from(1, space, size);
            }
            double one_way = (now() - from) / (2.0 * trips);
            if (rank == 0 && number >= WARM_UP)
                printf("{\"contestant\":\"%s\",\"size\":%d,\"source\":\"%s\",\"floor\":%.1f,\"time\":%.1f}\n", argv[4], size,
                       source, floor, one_way);
        }
        free(message);
        free(space);
    }
    MPI_Finalize();
    return 0;
}
