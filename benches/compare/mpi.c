/* Open MPI: for mpirun, with two ranks. The arguments are pingpong.h's. */
#define _GNU_SOURCE
#include <mpi.h>

#include "pingpong.h"

static int rank;

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "mpi: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void send_message(void *message, int size) { MPI_Send(message, size, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD); }

static void receive_message(void *space, int size) {
    MPI_Recv(space, size, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc <= FIRST || ranks != 2) fail("wrong arguments");
    bind_to_core(argv[2], rank);
    play(argc, argv, rank);
    MPI_Finalize();
    return 0;
}
