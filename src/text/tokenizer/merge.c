/* Merging with a linked list of nodes and a binary heap of pairs. Entries of the heap that are out
 * of date are skipped when they are popped, so nothing is ever removed from its middle. */
#include "text/tokenizer/merge.h"

#include "base/mem.h"

ak_status ak_tok_merge_begin(struct ak_tok_merge *m, size_t n, struct ak_error *error)
{
    m->n_nodes = 0;
    m->n_heap = 0;
    if (n <= m->capacity)
        return AKUNU_OK;
    size_t capacity = ak_max_size(n + n / 4, 64);
    struct ak_tok_node *nodes = ak_realloc(m->nodes, capacity, sizeof *nodes);
    if (nodes)
        m->nodes = nodes;
    /* A merge pops one entry and adds at most two, so the heap never exceeds 2n. */
    uint64_t *heap = ak_realloc(m->heap, capacity, 2 * sizeof *heap);
    if (heap)
        m->heap = heap;
    if (!nodes || !heap)
        return ak_fail_memory(error, "tokenizing a word",
                              (unsigned long long)capacity * (sizeof *nodes + 2 * sizeof *heap));
    m->capacity = capacity;
    return AKUNU_OK;
}

void ak_tok_merge_free(struct ak_tok_merge *m)
{
    ak_free(m->nodes);
    ak_free(m->heap);
    *m = (struct ak_tok_merge){ 0 };
}

static void sift_down(uint64_t *heap, size_t n, size_t at)
{
    uint64_t entry = heap[at];

    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n && heap[child + 1] < heap[child])
            child++;
        if (entry <= heap[child])
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = entry;
}

static void push(struct ak_tok_merge *m, uint64_t entry)
{
    size_t at = m->n_heap++;

    while (at > 0 && entry < m->heap[(at - 1) / 2]) {
        m->heap[at] = m->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    m->heap[at] = entry;
}

static uint64_t pop(struct ak_tok_merge *m)
{
    uint64_t top = m->heap[0];

    m->heap[0] = m->heap[--m->n_heap];
    if (m->n_heap > 1)
        sift_down(m->heap, m->n_heap, 0);
    return top;
}

/* Updates the merge of node i with the next one; true: they merge. */
static bool update_pair(struct ak_tok_merge *m, uint32_t i, ak_tok_merge_fn *merge_pair,
                        const void *context)
{
    struct ak_tok_node *node = &m->nodes[i];

    if (node->next != AK_TOK_NO_NODE &&
        merge_pair(context, node, &m->nodes[node->next], &node->priority, &node->merged))
        return true;
    node->priority = UINT32_MAX;
    return false;
}

static uint64_t make_entry(const struct ak_tok_merge *m, uint32_t i)
{
    return (uint64_t)m->nodes[i].priority << 32 | i;
}

void ak_tok_merge_run(struct ak_tok_merge *m, ak_tok_merge_fn *merge_pair, const void *context)
{
    for (uint32_t i = 0; i < m->n_nodes; i++)
        if (update_pair(m, i, merge_pair, context))
            m->heap[m->n_heap++] = make_entry(m, i);
    for (size_t at = m->n_heap / 2; at-- > 0;)
        sift_down(m->heap, m->n_heap, at);

    while (m->n_heap > 0) {
        uint64_t entry = pop(m);
        uint32_t i = (uint32_t)entry;
        struct ak_tok_node *node = &m->nodes[i];
        if (node->priority != entry >> 32) /* out of date: its neighbor changed, or it is gone */
            continue;

        struct ak_tok_node *right = &m->nodes[node->next];
        node->id = node->merged;
        node->bytes += right->bytes;
        node->next = right->next;
        right->priority = UINT32_MAX;
        if (node->next != AK_TOK_NO_NODE)
            m->nodes[node->next].prev = i;

        if (update_pair(m, i, merge_pair, context))
            push(m, make_entry(m, i));
        if (node->prev != AK_TOK_NO_NODE && update_pair(m, node->prev, merge_pair, context))
            push(m, make_entry(m, node->prev));
    }
}
