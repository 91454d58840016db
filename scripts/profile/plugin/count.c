// SPDX-License-Identifier: Apache-2.0
/*
 * A plugin for QEMU (version 7.2 and later) that counts how often each block of the guest's
 * instructions runs: -plugin count.so,out=FILE,mark=ADDRESS. It writes the counts at the end, and
 * whenever the guest executes the marked address, since the last time:
 *
 *	# N			the Nth phase ends
 *	ADDRESS LENGTH TIMES	a block, of LENGTH instructions
 *
 * Debian has no header of QEMU's plugins, so what is needed of it stands here.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct qemu_plugin_tb;
typedef uint64_t qemu_plugin_id_t;
enum { QEMU_PLUGIN_INLINE_ADD_U64 };

uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*cb)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
					  void (*cb)(unsigned int, void *), int flags, void *data);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int op, void *ptr,
					      uint64_t add);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*cb)(qemu_plugin_id_t, void *),
				    void *data);

EXPORT int qemu_plugin_version = 1;

struct block {
	uint64_t address, length;
	uint64_t times, told; /* in all; of these, in earlier phases */
	struct block *next;
};

#define BUCKETS (1 << 18)

static struct block *blocks[BUCKETS];
static uint64_t mark;
static int phase;
static FILE *out;

static void end_phase(void)
{
	fprintf(out, "# %d\n", phase++);
	for (int i = 0; i < BUCKETS; i++) {
		for (struct block *b = blocks[i]; b; b = b->next) {
			if (b->times == b->told)
				continue;
			fprintf(out, "%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", b->address, b->length,
				b->times - b->told);
			b->told = b->times;
		}
	}
	fflush(out);
}

static void marked(unsigned int cpu, void *data)
{
	end_phase();
}

static struct block *block_of(uint64_t address, uint64_t length)
{
	uint64_t hash = (address * 0x9e3779b97f4a7c15 ^ length * 0x85ebca6b) >> 20 & (BUCKETS - 1);
	struct block *b;

	for (b = blocks[hash]; b; b = b->next)
		if (b->address == address && b->length == length)
			return b;
	b = calloc(1, sizeof(*b));
	if (!b)
		abort();
	*b = (struct block){.address = address, .length = length, .next = blocks[hash]};
	blocks[hash] = b;
	return b;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	uint64_t address = qemu_plugin_tb_vaddr(tb);
	struct block *b = block_of(address, qemu_plugin_tb_n_insns(tb));

	if (address == mark)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, marked, 0, NULL);
	qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &b->times, 1);
}

static void finished(qemu_plugin_id_t id, void *data)
{
	end_phase();
	fclose(out);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
		if (!strncmp(argv[i], "mark=", 5))
			mark = strtoull(argv[i] + 5, NULL, 16);
	}
	if (!out) {
		fprintf(stderr, "count: can't write: want out=FILE\n");
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, finished, NULL);
	return 0;
}
