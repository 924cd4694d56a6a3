/* Writes and reads saved sequences. The header and the size are checked before anything is
 * allocated, so a damaged file cannot ask for memory. */
#include "engine/persist/save.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"

enum { VERSION = 1, HASHES_ALIGN = 64, PAGES_ALIGN = 4096 };

ak_status ak_save_check(const struct ak_session *s, struct ak_error *error)
{
    if (s->kv.shape.state_elems > 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the model has recurrent state, which is not saved");
    if (!s->backend->ops->host_pages)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the KV cache is not all in this process's memory");
    return ak_session_needs_text(s, error);
}

/* ---- Key ---------------------------------------------------------------- */
static void add_number(struct ak_sha256 *h, uint64_t value)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    ak_sha256_add(h, bytes, sizeof bytes);
}

static void hash_text(struct ak_sha256 *h, const char *text, size_t n)
{
    add_number(h, n);
    ak_sha256_add(h, text, n);
}

static void add_override(struct ak_sha256 *h, const struct ak_meta *meta)
{
    hash_text(h, meta->key, strlen(meta->key));
    add_number(h, (uint64_t)meta->kind);
    if (meta->kind == AK_META_STRING) {
        hash_text(h, meta->as.string, (size_t)meta->n);
    } else {
        uint64_t value = 0;
        if (meta->kind == AK_META_BOOL)
            value = meta->as.boolean;
        else
            memcpy(&value, &meta->as.integer, sizeof value);
        add_number(h, value);
    }
}

static void add_float(struct ak_sha256 *h, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    add_number(h, bits);
}

/* Keys are kept rotated. */
static void add_rope(struct ak_sha256 *h, const struct akunu_rope *rope)
{
    add_number(h, (uint64_t)rope->scaling);
    add_number(h, rope->yarn_orig_ctx);
    add_float(h, rope->freq_base);
    add_float(h, rope->freq_scale);
    add_float(h, rope->yarn_ext_factor);
    add_float(h, rope->yarn_attn_factor);
    add_float(h, rope->yarn_beta_fast);
    add_float(h, rope->yarn_beta_slow);
}

static void add_adapter(struct ak_sha256 *h, const struct ak_model_adapter *adapter)
{
    add_number(h, adapter->bytes);
    add_number(h, (uint64_t)adapter->mtime_ns);
    add_number(h, adapter->hash[0]);
    add_number(h, adapter->hash[1]);
    add_float(h, adapter->scale);
}

void ak_save_key(const struct ak_session *s, struct ak_store_key *out)
{
    const struct ak_model *m = s->model;
    const struct ak_kv_shape *shape = &s->kv.shape;
    struct ak_provider_fingerprint source;
    struct ak_sha256 h;
    struct ak_meta meta;
    ak_provider_fingerprint(m->provider, &source);
    ak_sha256_begin(&h);
    add_number(&h, VERSION);
    add_number(&h,
               AKUNU_VERSION_MAJOR * 1000000 + AKUNU_VERSION_MINOR * 1000 + AKUNU_VERSION_PATCH);
    add_number(&h, source.bytes);
    add_number(&h, (uint64_t)source.mtime_ns);
    add_number(&h, source.hash[0]);
    add_number(&h, source.hash[1]);
    for (size_t i = 0; ak_meta_overrides_at(m->provider->overrides, i, &meta); i++)
        add_override(&h, &meta);
    add_rope(&h, &m->rope);
    /* LongRoPE: sessions of short contexts have frequencies of their own */
    add_number(&h, m->spec.short_frequencies && s->kv.context <= m->spec.rope.original_context);
    for (size_t i = 0; i < m->n_adapters; i++)
        add_adapter(&h, &m->adapters[i]);
    add_number(&h, shape->n_layers);
    add_number(&h, shape->n_kv_heads);
    add_number(&h, shape->head_dim);
    add_number(&h, shape->k_type);
    add_number(&h, shape->v_type);
    add_number(&h, ak_kv_page_bytes(shape));
    hash_text(&h, s->backend->ops->name, strlen(s->backend->ops->name));
    /* then results also depend on the instruction set */
    if (!s->backend->ops->is_batch_invariant || !s->backend->ops->is_batch_invariant(s->backend)) {
        const char *described = s->backend->ops->describe(s->backend);
        hash_text(&h, described, strlen(described));
    }
    add_number(&h, (uint64_t)m->prefill);
    ak_sha256_end(&h, out->digest);
}

/* ---- Offsets ------------------------------------------------------------ */
static uint64_t hashes_offset_of(uint32_t n_tokens)
{
    return AK_STORE_HEADER_BYTES + ak_round_up((uint64_t)n_tokens * sizeof(int32_t), HASHES_ALIGN);
}

static uint64_t pages_offset_of(uint32_t n_tokens)
{
    return ak_round_up(hashes_offset_of(n_tokens) +
                           (uint64_t)ak_session_kv_pages_of(n_tokens) * 2 * sizeof(uint64_t),
                       PAGES_ALIGN);
}

/* Cannot overflow: the pool of the context was counted before. */
uint64_t ak_save_bytes(const struct ak_session *s, uint32_t n)
{
    return pages_offset_of(n) + ak_session_kv_pages_of(n) * ak_kv_page_bytes(&s->kv.shape) -
           AK_STORE_HEADER_BYTES;
}

static void compute_digest(const int32_t *tokens, uint32_t n_tokens, const uint64_t *hashes,
                           uint64_t digest[2])
{
    digest[0] = VERSION;
    digest[1] = n_tokens;
    ak_hash128(tokens, n_tokens * sizeof *tokens, digest);
    ak_hash128(hashes, (size_t)ak_session_kv_pages_of(n_tokens) * 2 * sizeof *hashes, digest);
}

static void hash_page(const uint8_t *page, uint64_t bytes, uint64_t hash[2])
{
    hash[0] = hash[1] = VERSION;
    ak_hash128(page, (size_t)bytes, hash);
}

/* ---- Reading ------------------------------------------------------------ */
static bool read_at(int fd, void *to, size_t n, uint64_t at)
{
    uint8_t *next = to;
    while (n > 0) {
        ssize_t got = pread(fd, next, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        next += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return true;
}

static bool read_index(struct ak_save_file *saved, const struct ak_session *s, const char **why)
{
    uint64_t digest[2];
    *why = "it is damaged";
    if (saved->header.n_tokens == 0 || saved->header.n_tokens > UINT32_MAX - AK_KV_PAGE_TOKENS)
        return false;
    saved->n_tokens = (uint32_t)saved->header.n_tokens;
    saved->n_pages = ak_session_kv_pages_of(saved->n_tokens);
    saved->pages_offset = pages_offset_of(saved->n_tokens);
    uint64_t bytes;
    if (!ak_mul_u64(saved->n_pages, ak_kv_page_bytes(&s->kv.shape), &bytes) ||
        !ak_add_u64(bytes, saved->pages_offset, &bytes) ||
        saved->header.block_bytes != bytes - AK_STORE_HEADER_BYTES)
        return false;
    saved->tokens = ak_alloc(saved->n_tokens, sizeof *saved->tokens);
    saved->hashes = ak_alloc(saved->n_pages, 2 * sizeof *saved->hashes);
    if (!saved->tokens || !saved->hashes) {
        *why = "there is no memory for it";
        return false;
    }
    if (!read_at(saved->fd, saved->tokens, saved->n_tokens * sizeof *saved->tokens,
                 AK_STORE_HEADER_BYTES) ||
        !read_at(saved->fd, saved->hashes, saved->n_pages * 2 * sizeof *saved->hashes,
                 hashes_offset_of(saved->n_tokens)))
        return false;
    compute_digest(saved->tokens, saved->n_tokens, saved->hashes, digest);
    return memcmp(digest, saved->header.digest, sizeof digest) == 0;
}

/* Checks the header, and the file's size by it, before anything is allocated. */
bool ak_save_open(int fd, const struct ak_session *s, const struct ak_store_key *key,
                  struct ak_save_file *out, const char **why)
{
    *out = (struct ak_save_file){ .fd = fd };
    *why = "it is damaged, or no saved text of this version";
    bool good = fd >= 0 && ak_store_check(fd, &out->header) && out->header.kind == AK_STORE_PROMPT;
    if (good && memcmp(&out->header.key, key, sizeof *key) != 0) {
        *why = "it was saved with another model, or with other types of the KV cache";
        good = false;
    }
    good = good && read_index(out, s, why);
    if (!good)
        ak_save_close(out);
    return good;
}

void ak_save_close(struct ak_save_file *saved)
{
    if (saved->fd >= 0)
        close(saved->fd);
    ak_free(saved->tokens);
    ak_free(saved->hashes);
    *saved = (struct ak_save_file){ .fd = -1 };
}

uint32_t ak_save_count_common(const struct ak_save_file *saved, const int32_t *ids, size_t n)
{
    uint32_t n_max = n < saved->n_tokens ? (uint32_t)n : saved->n_tokens, n_common = 0;
    while (n_common < n_max && saved->tokens[n_common] == ids[n_common])
        n_common++;
    return n_common;
}

bool ak_save_read(const struct ak_save_file *saved, struct ak_session *s, int32_t sequence,
                  uint32_t n, const char **why)
{
    const struct ak_session_kv_sequence *own = ak_session_kv_sequence(&s->kv, sequence);
    uint64_t page_bytes = ak_kv_page_bytes(&s->kv.shape), hash[2];
    uint8_t *pool = s->backend->ops->host_pages(s->backend, s->kv.pool);
    ak_session_kv_extend(&s->kv, sequence, saved->tokens, n);
    for (uint32_t i = 0; i < ak_session_kv_pages_of(n); i++) {
        uint8_t *page = pool + own->pages[i] * page_bytes;
        bool read =
            read_at(saved->fd, page, (size_t)page_bytes, saved->pages_offset + i * page_bytes);
        hash_page(page, page_bytes, hash);
        if (!read || memcmp(hash, saved->hashes + 2 * i, sizeof hash) != 0) {
            *why = read ? "it is damaged" : strerror(errno);
            ak_session_kv_rewind(&s->kv, sequence, 0);
            return false;
        }
    }
    return true;
}

/* ---- Writing ------------------------------------------------------------ */
static int write_pages(struct ak_session *s, const struct ak_session_kv_sequence *own, uint32_t n,
                       struct ak_store_writer *writer, uint64_t *hashes)
{
    uint64_t page_bytes = ak_kv_page_bytes(&s->kv.shape);
    const uint8_t *pool = s->backend->ops->host_pages(s->backend, s->kv.pool);
    int failed = 0;
    for (uint32_t i = 0; !failed && i < ak_session_kv_pages_of(n); i++) {
        const uint8_t *page = pool + own->pages[i] * page_bytes;
        hash_page(page, page_bytes, hashes + 2 * i);
        failed = ak_store_write(writer->fd, page, (size_t)page_bytes,
                                pages_offset_of(n) + i * page_bytes);
    }
    return failed;
}

static int write_sequence(struct ak_session *s, int32_t sequence, uint32_t n,
                          struct ak_store_writer *writer)
{
    const struct ak_session_kv_sequence *own = ak_session_kv_sequence(&s->kv, sequence);
    uint64_t *hashes = ak_alloc(ak_session_kv_pages_of(n), 2 * sizeof *hashes);
    if (!hashes)
        return ENOMEM;
    writer->header.kind = AK_STORE_PROMPT;
    writer->header.block_bytes = ak_save_bytes(s, n);
    writer->header.n_tokens = n;
    snprintf(writer->header.backend, sizeof writer->header.backend, "%s", s->backend->ops->name);
    ak_save_key(s, &writer->header.key);
    ak_store_header_set_source(&writer->header, s->model->provider);
    int failed = write_pages(s, own, n, writer, hashes);
    if (!failed)
        failed =
            ak_store_write(writer->fd, own->tokens, n * sizeof *own->tokens, AK_STORE_HEADER_BYTES);
    if (!failed)
        failed = ak_store_write(writer->fd, hashes,
                                (size_t)ak_session_kv_pages_of(n) * 2 * sizeof *hashes,
                                hashes_offset_of(n));
    compute_digest(own->tokens, n, hashes, writer->header.digest);
    ak_free(hashes);
    return failed ? failed : ak_store_commit(writer);
}

bool ak_save_write(struct ak_session *s, int32_t sequence, uint32_t n,
                   struct ak_store_writer *writer, const char **why)
{
    int failed = write_sequence(s, sequence, n, writer);
    if (!failed)
        return true;
    unlinkat(writer->dir, writer->temp_name, 0);
    *why = failed == ENOSPC || failed == EDQUOT ? "the disk is full" : strerror(failed);
    return false;
}
