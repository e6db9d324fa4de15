/*
 * Uses RDMA over Thunderbolt as Apple's technical note TN3205 describes it: look the library up at run time, open the
 * first device whose port is ACTIVE, register page-aligned memory, make a queue pair of type UC, take it through INIT,
 * RTR and RTS with the IPv4-mapped GID, post receives, exchange messages, poll.
 *
 *   tn3205             prints "QPN GID-INDEX GID" on a line, reads the peer's line, does the same with "ready",
 *                      exchanges 100 messages
 *   tn3205 bad-calls   makes calls that must fail, and checks that they say why
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "thunderbolt_verbs.h"

#define PAGE 16384
#define MESSAGES 100
#define LENGTH 5000

#define CHECK(condition)                                                                      \
	do {                                                                                  \
		if (!(condition)) {                                                           \
			fprintf(stderr, "line %d: %s: errno %d\n", __LINE__, #condition, errno); \
			exit(1);                                                              \
		}                                                                             \
	} while (0)

static struct ibv_device **(*get_device_list)(int *);
static void (*free_device_list)(struct ibv_device **);
static struct ibv_context *(*open_device)(struct ibv_device *);
static int (*close_device)(struct ibv_context *);
static int (*query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *);
static int (*query_gid)(struct ibv_context *, uint8_t, int, union ibv_gid *);
static struct ibv_pd *(*alloc_pd)(struct ibv_context *);
static int (*dealloc_pd)(struct ibv_pd *);
static struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int);
static int (*dereg_mr)(struct ibv_mr *);
static struct ibv_cq *(*create_cq)(struct ibv_context *, int, void *, struct ibv_comp_channel *, int);
static int (*destroy_cq)(struct ibv_cq *);
static struct ibv_qp *(*create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
static int (*modify_qp)(struct ibv_qp *, struct ibv_qp_attr *, int);
static int (*query_qp)(struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *);
static int (*destroy_qp)(struct ibv_qp *);

static void load(void)
{
	void *library = dlopen("librdma.dylib", RTLD_NOW | RTLD_GLOBAL);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
#define LOAD(name) CHECK((*(void **)&name = dlsym(library, "ibv_" #name)) != NULL)
	LOAD(get_device_list);
	LOAD(free_device_list);
	LOAD(open_device);
	LOAD(close_device);
	LOAD(query_port);
	LOAD(query_gid);
	LOAD(alloc_pd);
	LOAD(dealloc_pd);
	LOAD(reg_mr);
	LOAD(dereg_mr);
	LOAD(create_cq);
	LOAD(destroy_cq);
	LOAD(create_qp);
	LOAD(modify_qp);
	LOAD(query_qp);
	LOAD(destroy_qp);
	/* Not exported by anyone: they go through context->ops. */
	CHECK(dlsym(library, "ibv_poll_cq") == NULL);
	CHECK(dlsym(library, "ibv_post_send") == NULL);
}

static struct ibv_context *open_active(void)
{
	struct ibv_device **list = get_device_list(NULL);
	struct ibv_context *context = NULL;

	CHECK(list != NULL);
	for (int i = 0; list[i] && !context; i++) {
		struct ibv_port_attr port;

		memset(&port, 0, sizeof(port));
		context = open_device(list[i]);
		CHECK(context != NULL);
		CHECK(query_port(context, 1, &port) == 0);
		if (port.state != IBV_PORT_ACTIVE) {
			close_device(context);
			context = NULL;
		}
	}
	free_device_list(list);
	CHECK(context != NULL);
	return context;
}

static int ipv4_mapped(struct ibv_context *context, union ibv_gid *gid)
{
	static const uint8_t prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

	for (int index = 0; query_gid(context, 1, index, gid) == 0; index++)
		if (memcmp(gid->raw, prefix, sizeof(prefix)) == 0)
			return index;
	CHECK(!"an IPv4-mapped GID");
	return -1;
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;

	memset(&init, 0, sizeof(init));
	init.send_cq = cq;
	init.recv_cq = cq;
	init.qp_type = IBV_QPT_UC;
	init.cap.max_send_wr = 1000;
	init.cap.max_recv_wr = 1000;
	init.cap.max_send_sge = 1;
	init.cap.max_recv_sge = 1;
	qp = create_qp(pd, &init);
	CHECK(qp != NULL);
	/* What was granted is asked for, not assumed. */
	CHECK(query_qp(qp, &attr, IBV_QP_CAP, &init) == 0);
	CHECK(attr.cap.max_recv_wr >= 1000);
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = 1;
	CHECK(modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
	return qp;
}

static void connect_qp(struct ibv_qp *qp, uint32_t number, int index, const union ibv_gid *gid)
{
	struct ibv_qp_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_4096;
	attr.dest_qp_num = number;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = *gid;
	attr.ah_attr.grh.sgid_index = (uint8_t)index;
	attr.ah_attr.grh.hop_limit = 1;
	CHECK(modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) == 0);
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
}

static int post_recv(struct ibv_qp *qp, struct ibv_mr *mr, char *at, uint64_t id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)at, .length = LENGTH, .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad = NULL;

	return qp->context->ops.post_recv(qp, &wr, &bad);
}

static int post_send(struct ibv_qp *qp, struct ibv_mr *mr, char *at, uint64_t id)
{
	struct ibv_sge sge = { .addr = (uintptr_t)at, .length = LENGTH, .lkey = mr->lkey };
	struct ibv_send_wr wr;
	struct ibv_send_wr *bad = NULL;

	memset(&wr, 0, sizeof(wr));
	wr.wr_id = id;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_SIGNALED;
	return qp->context->ops.post_send(qp, &wr, &bad);
}

static void exchange(void)
{
	struct ibv_context *context = open_active();
	union ibv_gid gid, peer;
	int index = ipv4_mapped(context, &gid);
	struct ibv_pd *pd = alloc_pd(context);
	struct ibv_cq *cq = create_cq(context, 1000, NULL, NULL, 0);
	char *memory = aligned_alloc(PAGE, 64 * PAGE), *out = memory + 32 * PAGE;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	unsigned int number, their_index;
	char hex[33];
	int sent = 0, received = 0, free_to_send = 1;

	CHECK(pd && cq && memory);
	mr = reg_mr(pd, memory, 64 * PAGE, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr != NULL);
	qp = make_qp(pd, cq);

	printf("%u %d ", qp->qp_num, index);
	for (int i = 0; i < 16; i++)
		printf("%02x", gid.raw[i]);
	printf("\n");
	fflush(stdout);
	CHECK(scanf("%u %u %32s", &number, &their_index, hex) == 3);
	for (int i = 0; i < 16; i++)
		CHECK(sscanf(hex + 2 * i, "%2hhx", &peer.raw[i]) == 1);

	connect_qp(qp, number, index, &peer);
	for (int i = 0; i < 8; i++)
		CHECK(post_recv(qp, mr, memory + i * PAGE, (uint64_t)i) == 0);
	/* What is sent before the peer is in RTR is lost, and nobody is told. */
	printf("ready\n");
	fflush(stdout);
	CHECK(scanf("%32s", hex) == 1 && strcmp(hex, "ready") == 0);

	while (sent < MESSAGES || received < MESSAGES) {
		struct ibv_wc wc[4];
		int count;

		if (sent < MESSAGES && free_to_send) {
			memset(out, sent, LENGTH);
			CHECK(post_send(qp, mr, out, 1000) == 0);
			free_to_send = 0;
		}
		count = cq->context->ops.poll_cq(cq, 4, wc);
		CHECK(count >= 0);
		for (int i = 0; i < count; i++) {
			CHECK(wc[i].status == IBV_WC_SUCCESS);
			if (wc[i].wr_id == 1000) {
				sent++;
				free_to_send = 1;
				continue;
			}
			char *in = memory + wc[i].wr_id * PAGE;

			CHECK(wc[i].byte_len == LENGTH);
			CHECK(in[0] == (char)received && in[LENGTH - 1] == (char)received);
			received++;
			CHECK(post_recv(qp, mr, in, wc[i].wr_id) == 0);
		}
	}
	CHECK(destroy_qp(qp) == 0);
	CHECK(destroy_cq(cq) == 0);
	CHECK(dereg_mr(mr) == 0);
	CHECK(dealloc_pd(pd) == 0);
	CHECK(close_device(context) == 0);
	free(memory);
	printf("%d messages each way\n", MESSAGES);
}

static void bad_calls(void)
{
	struct ibv_context *context = open_active();
	struct ibv_pd *pd = alloc_pd(context);
	struct ibv_cq *cq = create_cq(context, 16, NULL, NULL, 0);
	char *memory = aligned_alloc(PAGE, PAGE);
	struct ibv_mr *mr = reg_mr(pd, memory, PAGE, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp *qp = make_qp(pd, cq);
	struct ibv_send_wr wr, *bad_send = NULL;
	struct ibv_wc wc;
	int nothing = 0;

	/* Null, and not an object at all. */
	CHECK(alloc_pd(NULL) == NULL && errno == EINVAL);
	CHECK(alloc_pd((struct ibv_context *)&nothing) == NULL && errno == EINVAL);
	CHECK(dealloc_pd(NULL) == EINVAL);
	CHECK(destroy_cq((struct ibv_cq *)qp) == EINVAL);
	CHECK(create_qp(pd, NULL) == NULL && errno == EINVAL);
	CHECK(modify_qp(qp, NULL, 0) == EINVAL);
	CHECK(create_cq(context, -1, NULL, NULL, 0) == NULL && errno == EINVAL);
	/* Memory. */
	CHECK(reg_mr(pd, memory + 1, 100, IBV_ACCESS_LOCAL_WRITE) == NULL && errno == EINVAL);
	CHECK(reg_mr(pd, memory, 0, IBV_ACCESS_LOCAL_WRITE) == NULL && errno == EINVAL);
	CHECK(reg_mr(pd, memory, PAGE, 1 << 9) == NULL && errno == EINVAL);
	/* In use. */
	CHECK(dealloc_pd(pd) == EBUSY);
	CHECK(destroy_cq(cq) == EBUSY);
	/* Work requests. */
	CHECK(qp->context->ops.post_send(NULL, NULL, NULL) == EINVAL);
	CHECK(post_send(qp, mr, memory, 1) != 0);
	memset(&wr, 0xff, sizeof(wr));
	wr.next = NULL;
	CHECK(qp->context->ops.post_send(qp, &wr, &bad_send) != 0);
	CHECK(cq->context->ops.poll_cq(cq, -1, &wc) < 0);
	CHECK(cq->context->ops.poll_cq(cq, 1, NULL) < 0);
	CHECK(cq->context->ops.poll_cq(cq, 1, &wc) == 0);
	/* Freed. */
	CHECK(destroy_qp(qp) == 0);
	CHECK(destroy_qp(qp) == EINVAL);
	CHECK(destroy_cq(cq) == 0);
	CHECK(destroy_cq(cq) == EINVAL);
	CHECK(dereg_mr(mr) == 0);
	CHECK(dereg_mr(mr) == EINVAL);
	CHECK(dealloc_pd(pd) == 0);
	CHECK(close_device(context) == 0);
	CHECK(close_device(context) == EINVAL);
	CHECK(alloc_pd(context) == NULL && errno == EINVAL);
	free(memory);
	printf("all told\n");
}

int main(int argc, char **argv)
{
	load();
	if (argc > 1 && strcmp(argv[1], "bad-calls") == 0)
		bad_calls();
	else
		exchange();
	return 0;
}
