/* The radix tree. Its edges are whole pages, so a node has few children and they are compared one
 * by one. Nodes are also in a list by last use, in which a node comes after its ancestors: leaves
 * are evicted first. */
#include "engine/schedule/prefix_tree.h"

#include <string.h>

#include "base/mem.h"

struct ak_sched_node {
    struct ak_sched_node *parent, *children, *sibling;
    struct ak_sched_node *newer, *older;
    uint32_t page;
    uint32_t n;     /* tokens; fewer than AK_KV_PAGE_TOKENS only in a leaf */
    bool was_given; /* by ak_sched_tree_give, as the end of a text */
    int32_t ids[AK_KV_PAGE_TOKENS];
};

void ak_sched_tree_init(struct ak_sched_tree *t, struct ak_session_kv *kv)
{
    *t = (struct ak_sched_tree){ .kv = kv };
}

/* ---- Last use ----------------------------------------------------------- */
static void unlink_use(struct ak_sched_tree *t, struct ak_sched_node *node)
{
    *(node->newer ? &node->newer->older : &t->newest) = node->older;
    *(node->older ? &node->older->newer : &t->oldest) = node->newer;
}

static void link_newest(struct ak_sched_tree *t, struct ak_sched_node *node)
{
    node->newer = NULL;
    node->older = t->newest;
    *(t->newest ? &t->newest->newer : &t->oldest) = node;
    t->newest = node;
}

/* Marks a node and its ancestors as used now. */
static void touch(struct ak_sched_tree *t, struct ak_sched_node *node)
{
    for (; node; node = node->parent) {
        unlink_use(t, node);
        link_newest(t, node);
    }
}

/* ---- Nodes -------------------------------------------------------------- */
static struct ak_sched_node **children_of(struct ak_sched_tree *t, struct ak_sched_node *parent)
{
    return parent ? &parent->children : &t->roots;
}

static void remove_node(struct ak_sched_tree *t, struct ak_sched_node *node)
{
    struct ak_sched_node **link = children_of(t, node->parent);
    while (*link != node)
        link = &(*link)->sibling;
    *link = node->sibling;
    unlink_use(t, node);
    ak_session_kv_release_page(t->kv, node->page);
    ak_free(node);
    t->n_nodes--;
}

static uint32_t count_common(const int32_t *a, const int32_t *b, uint32_t n)
{
    uint32_t i = 0;
    while (i < n && a[i] == b[i])
        i++;
    return i;
}

/* The child with the most tokens in common with the n at `ids`; NULL: none has the first one. */
static struct ak_sched_node *find_child(struct ak_sched_tree *t, struct ak_sched_node *parent,
                                        const int32_t *ids, uint32_t n, uint32_t *n_common)
{
    struct ak_sched_node *best = NULL;
    *n_common = 0;
    for (struct ak_sched_node *c = *children_of(t, parent); c; c = c->sibling) {
        uint32_t common = count_common(c->ids, ids, c->n < n ? c->n : n);
        if (common > *n_common) {
            best = c;
            *n_common = common;
        }
    }
    return best;
}

void ak_sched_tree_clear(struct ak_sched_tree *t)
{
    while (t->oldest) /* the parent may go first: no path is needed any more */
    {
        struct ak_sched_node *node = t->oldest;
        unlink_use(t, node);
        ak_session_kv_release_page(t->kv, node->page);
        ak_free(node);
    }
    t->roots = NULL;
    t->n_nodes = 0;
}

/* ---- Sharing ------------------------------------------------------------ */
uint32_t ak_sched_tree_share(struct ak_sched_tree *t, int32_t sequence, const int32_t *ids,
                             uint32_t n)
{
    uint32_t length = ak_session_kv_sequence(t->kv, sequence)->length, at = 0;
    struct ak_sched_node *last = NULL;
    while (at < n) {
        uint32_t n_common;
        struct ak_sched_node *node = find_child(t, last, ids + at, n - at, &n_common);
        if (!node)
            break;
        last = node;
        at += n_common;
        if (at > length)
            ak_session_kv_share(t->kv, sequence, node->page, ids + at - n_common, n_common);
        if (n_common < AK_KV_PAGE_TOKENS)
            break;
    }
    touch(t, last);
    return at > length ? at : length;
}

/* Makes the node of a page, or lets a leaf whose tokens begin the page take it. NULL: out of
 * memory. */
static struct ak_sched_node *add_page(struct ak_sched_tree *t, struct ak_sched_node *parent,
                                      uint32_t page, const int32_t *ids, uint32_t n)
{
    uint32_t n_common;
    struct ak_sched_node *node = find_child(t, parent, ids, n, &n_common);
    if (node && n_common == n) /* it holds all of them */
        return node;
    if (node && n_common == node->n) {
        ak_session_kv_release_page(t->kv, node->page);
    } else {
        node = ak_alloc(1, sizeof *node);
        if (!node)
            return NULL;
        node->parent = parent;
        node->sibling = *children_of(t, parent);
        *children_of(t, parent) = node;
        link_newest(t, node);
        t->n_nodes++;
    }
    ak_session_kv_hold_page(t->kv, page);
    node->page = page;
    node->n = n;
    node->was_given = false;
    memcpy(node->ids, ids, n * sizeof *ids);
    return node;
}

void ak_sched_tree_add(struct ak_sched_tree *t, int32_t sequence, bool partial)
{
    const struct ak_session_kv_sequence *s = ak_session_kv_sequence(t->kv, sequence);
    struct ak_sched_node *last = NULL;
    uint32_t length = ak_session_kv_count_whole(s);
    for (uint32_t at = 0; at < length; at += AK_KV_PAGE_TOKENS) {
        uint32_t n = length - at < AK_KV_PAGE_TOKENS ? length - at : AK_KV_PAGE_TOKENS;
        if (n < AK_KV_PAGE_TOKENS && !partial)
            break;
        struct ak_sched_node *node =
            add_page(t, last, s->pages[at / AK_KV_PAGE_TOKENS], s->tokens + at, n);
        if (!node)
            break;
        last = node;
    }
    touch(t, last);
}

/* ---- Giving ------------------------------------------------------------- */
static uint32_t count_tokens(const struct ak_sched_node *node)
{
    uint32_t n = 0;
    for (; node; node = node->parent)
        n += node->n;
    return n;
}

/* Shares the pages of a text from its first node on. */
static void share_text(struct ak_sched_tree *t, const struct ak_sched_node *last, int32_t sequence)
{
    uint32_t depth = 0;
    for (const struct ak_sched_node *node = last; node; node = node->parent)
        depth++;
    while (depth > 0) {
        const struct ak_sched_node *node = last;
        depth--;
        for (uint32_t i = 0; i < depth; i++)
            node = node->parent;
        ak_session_kv_share(t->kv, sequence, node->page, node->ids, node->n);
    }
}

bool ak_sched_tree_give(struct ak_sched_tree *t, int32_t sequence, uint32_t n_min)
{
    for (struct ak_sched_node *node = t->oldest; node; node = node->newer) {
        if (node->children || node->was_given)
            continue;
        node->was_given = true;
        if (count_tokens(node) < n_min)
            continue;
        share_text(t, node, sequence);
        return true;
    }
    return false;
}

/* ---- Eviction ----------------------------------------------------------- */
static bool is_evictable(const struct ak_sched_tree *t, const struct ak_sched_node *node)
{
    return t->kv->references[node->page] == 1;
}

bool ak_sched_tree_evict(struct ak_sched_tree *t)
{
    for (struct ak_sched_node *node = t->oldest; node; node = node->newer)
        if (!node->children && is_evictable(t, node)) {
            remove_node(t, node);
            return true;
        }
    return false;
}

uint32_t ak_sched_tree_count_evictable(const struct ak_sched_tree *t)
{
    uint32_t n = 0;
    for (const struct ak_sched_node *node = t->oldest; node; node = node->newer)
        n += is_evictable(t, node);
    return n;
}
