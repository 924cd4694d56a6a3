/* The page pool: a stack of free pages with reference counts, page tables, copy on write. Pages are
 * freed in reverse, so that a rewound sequence gets the same pages again. */
#include "engine/session/kv.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

/* Each sequence may leave all except one token of its last page empty. */
uint32_t ak_session_kv_count_pages(uint32_t context, uint32_t n_sequences)
{
    uint64_t tokens = (uint64_t)context + (uint64_t)n_sequences * (AK_KV_PAGE_TOKENS - 1);
    uint64_t pages = tokens / AK_KV_PAGE_TOKENS;
    return pages < UINT32_MAX ? (uint32_t)pages : 0;
}

static ak_status allocate_pages(struct ak_session_kv *kv, struct ak_error *error)
{
    uint32_t n_pages = kv->shape.n_pages, table_length = ak_session_kv_pages_of(kv->context);
    size_t table_elems, token_elems;
    kv->pool_bytes = ak_kv_pool_bytes(&kv->shape);
    if (ak_kv_page_bytes(&kv->shape) == 0 || kv->pool_bytes == 0 ||
        !ak_mul_size(table_length, kv->n_sequences, &table_elems) ||
        !ak_mul_size(kv->context, kv->n_sequences, &token_elems))
        return ak_fail_memory(error, "the KV cache", 0);

    kv->references = ak_alloc(n_pages, sizeof *kv->references);
    kv->free_pages = ak_alloc(n_pages, sizeof *kv->free_pages);
    kv->sequences = ak_alloc(kv->n_sequences, sizeof *kv->sequences);
    kv->tables = ak_alloc(kv->n_sequences, sizeof *kv->tables);
    kv->table_block = ak_alloc(table_elems, sizeof *kv->table_block);
    kv->token_block = ak_alloc(token_elems, sizeof *kv->token_block);
    if (!kv->references || !kv->free_pages || !kv->sequences || !kv->tables || !kv->table_block ||
        !kv->token_block)
        return ak_fail_memory(error, "the KV cache's tables", 0);
    return kv->backend->ops->alloc_kv(kv->backend, &kv->shape, &kv->pool, error);
}

ak_status ak_session_kv_create(struct ak_backend *backend, const struct ak_kv_shape *shape,
                               uint32_t context, uint32_t n_sequences, struct ak_session_kv *out,
                               struct ak_error *error)
{
    *out = (struct ak_session_kv){
        .backend = backend, .shape = *shape, .context = context, .n_sequences = n_sequences
    };
    ak_status status = allocate_pages(out, error);
    if (status != AKUNU_OK) {
        ak_session_kv_clear(out);
        return status;
    }
    /* page 0 is on top, so the pool fills from its beginning */
    for (uint32_t i = 0; i < shape->n_pages; i++)
        out->free_pages[i] = shape->n_pages - 1 - i;
    out->n_free = shape->n_pages;
    for (uint32_t i = 0; i < n_sequences; i++) {
        out->sequences[i].pages = out->table_block + (size_t)i * ak_session_kv_pages_of(context);
        out->sequences[i].tokens = out->token_block + (size_t)i * context;
        out->tables[i] = out->sequences[i].pages;
    }
    return AKUNU_OK;
}

void ak_session_kv_clear(struct ak_session_kv *kv)
{
    if (kv->pool)
        kv->backend->ops->free_kv(kv->backend, kv->pool, &kv->shape);
    ak_free(kv->references);
    ak_free(kv->free_pages);
    ak_free(kv->sequences);
    ak_free(kv->tables);
    ak_free(kv->table_block);
    ak_free(kv->token_block);
    *kv = (struct ak_session_kv){ 0 };
}

static uint32_t take_page(struct ak_session_kv *kv)
{
    assert(kv->n_free > 0);
    uint32_t page = kv->free_pages[--kv->n_free];
    assert(kv->references[page] == 0);
    kv->references[page] = 1;
    return page;
}

void ak_session_kv_hold_page(struct ak_session_kv *kv, uint32_t page)
{
    assert(kv->references[page] > 0);
    kv->references[page]++;
}

void ak_session_kv_release_page(struct ak_session_kv *kv, uint32_t page)
{
    assert(kv->references[page] > 0);
    if (--kv->references[page] == 0)
        kv->free_pages[kv->n_free++] = page;
}

static uint32_t copy_shared_page(struct ak_session_kv *kv, uint32_t page)
{
    uint32_t copy = take_page(kv);
    kv->backend->ops->copy_page(kv->backend, kv->pool, &kv->shape, copy, page);
    return copy;
}

int32_t ak_session_kv_sequence_new(struct ak_session_kv *kv)
{
    for (uint32_t i = 0; i < kv->n_sequences; i++) {
        if (!kv->sequences[i].used) {
            kv->sequences[i].used = true;
            kv->sequences[i].length = kv->sequences[i].state_length = 0;
            kv->sequences[i].n_dropped = kv->sequences[i].evicted_length = 0;
            return (int32_t)i;
        }
    }
    return -1;
}

const struct ak_session_kv_sequence *ak_session_kv_sequence(const struct ak_session_kv *kv,
                                                            int32_t sequence)
{
    if (sequence < 0 || (uint32_t)sequence >= kv->n_sequences || !kv->sequences[sequence].used)
        return NULL;
    return &kv->sequences[sequence];
}

void ak_session_kv_sequence_free(struct ak_session_kv *kv, int32_t sequence)
{
    ak_session_kv_rewind(kv, sequence, 0);
    kv->sequences[sequence].used = false;
}

/* Whether the next token would be written to a shared page. */
static bool writes_shared(const struct ak_session_kv *kv, const struct ak_session_kv_sequence *s)
{
    return s->length % AK_KV_PAGE_TOKENS != 0 &&
           kv->references[s->pages[s->length / AK_KV_PAGE_TOKENS]] > 1;
}

uint32_t ak_session_kv_count_new_pages(const struct ak_session_kv *kv, int32_t sequence, uint32_t n)
{
    const struct ak_session_kv_sequence *s = &kv->sequences[sequence];
    return n == 0 ? 0 :
                    ak_session_kv_pages_of(s->length + n) - ak_session_kv_pages_of(s->length) +
                        writes_shared(kv, s);
}

void ak_session_kv_extend(struct ak_session_kv *kv, int32_t sequence, const int32_t *tokens,
                          uint32_t n)
{
    struct ak_session_kv_sequence *s = &kv->sequences[sequence];
    assert(s->used && n > 0 && n <= kv->context - s->length);
    if (writes_shared(kv, s)) {
        uint32_t *page = &s->pages[s->length / AK_KV_PAGE_TOKENS];
        uint32_t shared = *page;
        *page = copy_shared_page(kv, shared);
        ak_session_kv_release_page(kv, shared);
    }
    for (uint32_t i = ak_session_kv_pages_of(s->length); i < ak_session_kv_pages_of(s->length + n);
         i++)
        s->pages[i] = take_page(kv);
    memcpy(s->tokens + s->length, tokens, n * sizeof *tokens);
    s->length += n;
    s->state_length = s->length;
}

bool ak_session_kv_state_is_stale(const struct ak_session_kv *kv, int32_t sequence)
{
    const struct ak_session_kv_sequence *s = &kv->sequences[sequence];
    return kv->shape.state_elems > 0 && s->length > 0 && s->state_length != s->length;
}

uint32_t ak_session_kv_count_whole(const struct ak_session_kv_sequence *s)
{
    uint32_t n = 0;
    while (s->n_dropped > 0 && s->pages[n] != AK_KV_NO_PAGE)
        n++;
    return s->n_dropped > 0 ? n * AK_KV_PAGE_TOKENS : s->length;
}

uint32_t ak_session_kv_find_rewind(const struct ak_session_kv_sequence *s, uint32_t length)
{
    uint32_t whole = ak_session_kv_count_whole(s);
    length = length < s->length ? length : s->length;
    return length >= s->evicted_length || length <= whole ? length : whole;
}

void ak_session_kv_drop_page(struct ak_session_kv *kv, int32_t sequence, uint32_t index)
{
    struct ak_session_kv_sequence *s = &kv->sequences[sequence];
    assert(s->used && (index + 1) * AK_KV_PAGE_TOKENS <= s->length);
    ak_session_kv_release_page(kv, s->pages[index]);
    s->pages[index] = AK_KV_NO_PAGE;
    s->n_dropped++;
    s->evicted_length = s->length;
}

void ak_session_kv_rewind(struct ak_session_kv *kv, int32_t sequence, uint32_t length)
{
    struct ak_session_kv_sequence *s = &kv->sequences[sequence];
    assert(s->used && length <= s->length && ak_session_kv_find_rewind(s, length) == length);
    /* last page first, so that pages are reused in the same order */
    for (uint32_t i = ak_session_kv_pages_of(s->length); i > ak_session_kv_pages_of(length); i--) {
        if (s->pages[i - 1] == AK_KV_NO_PAGE)
            s->n_dropped--;
        else
            ak_session_kv_release_page(kv, s->pages[i - 1]);
    }
    if (s->n_dropped == 0)
        s->evicted_length = 0;
    s->length = length;
}

int32_t ak_session_kv_fork(struct ak_session_kv *kv, int32_t sequence, uint32_t length)
{
    const struct ak_session_kv_sequence *from = &kv->sequences[sequence];
    assert(from->used && ak_session_kv_find_rewind(from, length) == length);
    uint32_t whole = length / AK_KV_PAGE_TOKENS;
    bool partial = length % AK_KV_PAGE_TOKENS != 0;
    if (partial && kv->n_free == 0)
        return -1;
    int32_t fork = ak_session_kv_sequence_new(kv);
    if (fork < 0)
        return -1;
    struct ak_session_kv_sequence *to = &kv->sequences[fork];
    for (uint32_t i = 0; i < whole; i++) {
        to->pages[i] = from->pages[i];
        if (to->pages[i] == AK_KV_NO_PAGE)
            to->n_dropped++;
        else
            ak_session_kv_hold_page(kv, to->pages[i]);
    }
    to->evicted_length = to->n_dropped > 0 ? from->evicted_length : 0;
    if (partial)
        to->pages[whole] = copy_shared_page(kv, from->pages[whole]);
    if (length)
        memcpy(to->tokens, from->tokens, length * sizeof *to->tokens);
    to->length = length;
    to->state_length = from->state_length;
    if (kv->shape.state_elems > 0)
        kv->backend->ops->copy_state(kv->backend, kv->pool, &kv->shape, (uint32_t)fork,
                                     (uint32_t)sequence);
    return fork;
}

void ak_session_kv_share(struct ak_session_kv *kv, int32_t sequence, uint32_t page,
                         const int32_t *tokens, uint32_t n)
{
    struct ak_session_kv_sequence *s = &kv->sequences[sequence];
    assert(s->used && s->length % AK_KV_PAGE_TOKENS == 0);
    assert(n > 0 && n <= AK_KV_PAGE_TOKENS && n <= kv->context - s->length);
    ak_session_kv_hold_page(kv, page);
    s->pages[s->length / AK_KV_PAGE_TOKENS] = page;
    memcpy(s->tokens + s->length, tokens, n * sizeof *tokens);
    s->length += n;
    s->state_length = s->length;
}
