/* UCX: messages with tags, between this process and one that it starts. The arguments are pingpong.h's; the file has another
   two pages, by which the two exchange their addresses. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>

#include "pingpong.h"

/* What a side writes into its page. */
struct card {
    _Atomic uint64_t written;
    uint64_t length;
    char address[PAGE - 16];
};

static ucp_worker_h worker;
static ucp_ep_h endpoint;

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "ucx: %s\n", what);
    _exit(1);
}

static void check(ucs_status_t status, const char *what) {
    if (status != UCS_OK) {
        fprintf(stderr, "ucx: %s: %s\n", what, ucs_status_string(status));
        _exit(1);
    }
}

/* Waits as UCX's own benchmark does: busily. */
static void finish(ucs_status_ptr_t request, const char *what) {
    if (request == NULL) return;
    if (UCS_PTR_IS_ERR(request)) check(UCS_PTR_STATUS(request), what);
    ucs_status_t status;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) ucp_worker_progress(worker);
    ucp_request_free(request);
    check(status, what);
}

static void send_message(void *message, int size) {
    ucp_request_param_t param = {0};
    finish(ucp_tag_send_nbx(endpoint, message, size, 1, &param), "send");
}

static void receive_message(void *space, int size) {
    ucp_request_param_t param = {0};
    finish(ucp_tag_recv_nbx(worker, space, size, 1, UINT64_MAX, &param), "receive");
}

static void connect_to(struct card *mine, struct card *other) {
    ucp_address_t *address;
    size_t length;
    check(ucp_worker_get_address(worker, &address, &length), "address");
    if (length > sizeof mine->address) fail("a long address");
    memcpy(mine->address, address, length);
    mine->length = length;
    atomic_store_explicit(&mine->written, 1, memory_order_release);
    ucp_worker_release_address(worker, address);
    wait_until(&other->written, 1);
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = (void *)other->address};
    check(ucp_ep_create(worker, &params, &endpoint), "endpoint");
}

int main(int argc, char **argv) {
    if (argc <= FIRST) fail("wrong arguments");
    pid_t parent = getpid(), child = fork();
    if (child < 0) fail("no second process");
    int side = child == 0;
    /* Who is alone would wait for ever. */
    if (side == 1 && (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)) fail("the first process is gone");
    bind_to_core(argv[2], side);

    ucp_context_h context;
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
    ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = UCS_THREAD_MODE_SINGLE};
    check(ucp_init(&params, NULL, &context), "context");
    check(ucp_worker_create(context, &single, &worker), "worker");
    struct card *cards[2];
    for (int index = 0; index < 2; index++) cards[index] = page_of(argv[1], argc - FIRST + index);
    connect_to(cards[side], cards[1 - side]);
    play(argc, argv, side);
    /* Nothing is on its way: the last batch was answered. What UCX holds ends with the process. */
    if (side == 1) _exit(0);
    int status;
    if (waitpid(child, &status, 0) < 0 || status != 0) fail("the second process has failed");
    return 0;
}
