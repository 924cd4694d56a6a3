/* KV pages: sequences, rewind, fork, copy on write. */
#include "engine/session/kv.h"

#include "tests/fake_backend.h"
#include "base/random.h"

enum { CONTEXT = 1000, SEQUENCES = 5 };

static struct ak_kv_shape shape_of(uint32_t n_pages)
{
    return (struct ak_kv_shape){ .n_layers = 1,
                                 .n_kv_heads = 1,
                                 .head_dim = 1,
                                 .k_type = AKUNU_KV_F32,
                                 .v_type = AKUNU_KV_F32,
                                 .n_pages = n_pages };
}

/* What the cache should hold, kept the plain way. */
struct mirror {
    bool used;
    uint32_t length;
    int32_t tokens[CONTEXT];
};

static struct fake_entry *entry(const struct ak_session_kv *kv,
                                const struct ak_session_kv_sequence *s, uint32_t position)
{
    return (struct fake_entry *)kv->pool +
           (size_t)s->pages[position / AK_KV_PAGE_TOKENS] * AK_KV_PAGE_TOKENS +
           position % AK_KV_PAGE_TOKENS;
}

/* Every sequence reads back what was written; every page is free or counted. */
static void check_all(const struct ak_session_kv *kv, const struct mirror *mirrors)
{
    uint32_t *references = calloc(kv->shape.n_pages, sizeof *references);
    ck_assert_ptr_nonnull(references);
    for (int32_t i = 0; i < SEQUENCES; i++) {
        const struct ak_session_kv_sequence *s = ak_session_kv_sequence(kv, i);
        ck_assert_int_eq(s != NULL, mirrors[i].used);
        if (!s)
            continue;
        ck_assert_uint_eq(s->length, mirrors[i].length);
        ck_assert_ptr_eq(kv->tables[i], s->pages);
        for (uint32_t at = 0; at < s->length; at++) {
            ck_assert_int_eq(entry(kv, s, at)->token, mirrors[i].tokens[at]);
            ck_assert_uint_eq(entry(kv, s, at)->position, at);
            ck_assert_int_eq(s->tokens[at], mirrors[i].tokens[at]);
            if (at % AK_KV_PAGE_TOKENS == 0)
                references[s->pages[at / AK_KV_PAGE_TOKENS]]++;
        }
    }
    uint32_t n_free = 0;
    for (uint32_t page = 0; page < kv->shape.n_pages; page++) {
        ck_assert_uint_eq(kv->references[page], references[page]);
        n_free += references[page] == 0;
    }
    ck_assert_uint_eq(kv->n_free, n_free);
    for (uint32_t i = 0; i < n_free; i++)
        ck_assert_uint_eq(kv->references[kv->free_pages[i]], 0);
    free(references);
}

/* Adds n tokens where they fit and writes them as a pass would. */
static void append(struct ak_session_kv *kv, struct mirror *mirror, int32_t sequence, uint32_t n,
                   struct ak_random *random)
{
    const struct ak_session_kv_sequence *s = ak_session_kv_sequence(kv, sequence);
    n = n < CONTEXT - s->length ? n : CONTEXT - s->length;
    uint32_t before = s->length, n_free = kv->n_free,
             wanted = ak_session_kv_count_new_pages(kv, sequence, n);
    if (n == 0 || wanted > kv->n_free)
        return;
    for (uint32_t i = 0; i < n; i++)
        mirror->tokens[before + i] = (int32_t)(ak_random_bits(random) >> 40);
    mirror->length += n;
    ak_session_kv_extend(kv, sequence, mirror->tokens + before, n);
    ck_assert_uint_eq(n_free - kv->n_free, wanted);
    for (uint32_t at = before; at < s->length; at++) {
        /* a page is written by its only owner */
        ck_assert_uint_eq(kv->references[s->pages[at / AK_KV_PAGE_TOKENS]], 1);
        *entry(kv, s, at) = (struct fake_entry){ mirror->tokens[at], at };
    }
}

START_TEST(random_life)
{
    static struct mirror mirrors[SEQUENCES];
    struct fake_backend backend = { .base = { &fake_ops } };
    struct ak_session_kv kv;
    struct ak_random random;
    struct ak_kv_shape shape = shape_of(ak_session_kv_count_pages(CONTEXT, SEQUENCES));
    memset(mirrors, 0, sizeof mirrors);
    ak_random_seed(&random, (uint64_t)_i);
    ck_assert_int_eq(ak_session_kv_create(&backend.base, &shape, CONTEXT, SEQUENCES, &kv, NULL),
                     AKUNU_OK);
    for (int step = 0; step < 3000; step++) {
        int32_t i = (int32_t)(ak_random_bits(&random) % SEQUENCES);
        uint32_t number = (uint32_t)(ak_random_bits(&random) >> 40);
        struct mirror *m = &mirrors[i];
        if (!m->used) {
            int32_t made = ak_session_kv_sequence_new(&kv);
            ck_assert_int_ge(made, 0);
            mirrors[made].used = true;
            mirrors[made].length = 0;
            continue;
        }
        switch (ak_random_bits(&random) % 8) {
        case 0:
        case 1:
        case 2:
        case 3: append(&kv, m, i, number % (number % 3 ? 7 : 200), &random); break;
        case 4:
        case 5:
            m->length = number % 3 ?
                            m->length - (m->length ? number % (m->length < 9 ? m->length : 9) : 0) :
                            number % (m->length + 1);
            ak_session_kv_rewind(&kv, i, m->length);
            break;
        case 6: {
            uint32_t length = number % 2 ? m->length : number % (m->length + 1);
            int32_t made = ak_session_kv_fork(&kv, i, length);
            if (made < 0)
                break;
            ck_assert(!mirrors[made].used);
            mirrors[made] = *m;
            mirrors[made].length = length;
            break;
        }
        default:
            if (number % 4 == 0) {
                ak_session_kv_sequence_free(&kv, i);
                m->used = false;
            }
        }
        if (step % 10 == 0)
            check_all(&kv, mirrors);
    }
    check_all(&kv, mirrors);
    ck_assert_uint_gt(backend.copied, 0);
    ak_session_kv_clear(&kv);
    ck_assert_uint_eq(backend.allocated, 0);
}
END_TEST

/* Dropped pages are free, and no page where a fork or a rewind meets them. */
START_TEST(dropped_pages)
{
    struct fake_backend backend = { .base = { &fake_ops } };
    struct ak_session_kv kv;
    struct ak_kv_shape shape = shape_of(12);
    int32_t tokens[400] = { 0 };
    ck_assert_int_eq(ak_session_kv_create(&backend.base, &shape, 512, 3, &kv, NULL), AKUNU_OK);
    ck_assert_int_eq(ak_session_kv_sequence_new(&kv), 0);
    const struct ak_session_kv_sequence *s = ak_session_kv_sequence(&kv, 0);
    ak_session_kv_extend(&kv, 0, tokens, 400);
    ck_assert_uint_eq(kv.n_free, 5);
    ck_assert_uint_eq(ak_session_kv_count_whole(s), 400);
    ak_session_kv_drop_page(&kv, 0, 2);
    ak_session_kv_drop_page(&kv, 0, 4);
    ck_assert_uint_eq(kv.n_free, 7);
    ck_assert_uint_eq(s->n_dropped, 2);
    ck_assert_uint_eq(ak_session_kv_count_whole(s), 128);
    ck_assert_uint_eq(ak_session_kv_find_rewind(s, 500), 400);
    ck_assert_uint_eq(ak_session_kv_find_rewind(s, 399), 128);
    ck_assert_uint_eq(ak_session_kv_find_rewind(s, 128), 128);
    ck_assert_uint_eq(ak_session_kv_find_rewind(s, 5), 5);

    ak_session_kv_extend(&kv, 0, tokens, 50);
    ck_assert_uint_eq(ak_session_kv_find_rewind(s, 449), 449);
    ck_assert_int_eq(ak_session_kv_fork(&kv, 0, 450), 1);
    const struct ak_session_kv_sequence *fork = ak_session_kv_sequence(&kv, 1);
    ck_assert_uint_eq(fork->n_dropped, 2);
    ck_assert_uint_eq(fork->pages[4], AK_KV_NO_PAGE);
    ck_assert_uint_eq(ak_session_kv_find_rewind(fork, 399), 128);
    ck_assert_int_eq(ak_session_kv_fork(&kv, 0, 100), 2);
    ck_assert_uint_eq(ak_session_kv_sequence(&kv, 2)->evicted_length, 0);
    ak_session_kv_rewind(&kv, 0, 400);
    ck_assert_uint_eq(s->n_dropped, 2);
    ak_session_kv_rewind(&kv, 0, 120);
    ck_assert_uint_eq(s->n_dropped, 0);
    ck_assert_uint_eq(s->evicted_length, 0);
    ak_session_kv_extend(&kv, 0, tokens, 8);
    for (int32_t i = 0; i < 3; i++)
        ak_session_kv_sequence_free(&kv, i);
    ck_assert_uint_eq(kv.n_free, 12);
    ak_session_kv_clear(&kv);
}
END_TEST

/* However the context is shared out, it fits. */
START_TEST(pages_suffice)
{
    ck_assert_uint_eq(ak_session_kv_count_pages(1, 1), 1);
    ck_assert_uint_eq(ak_session_kv_count_pages(64, 1), 1);
    ck_assert_uint_eq(ak_session_kv_count_pages(65, 1), 2);
    ck_assert_uint_eq(ak_session_kv_count_pages(UINT32_MAX, 1), 1u << 26);
    ck_assert_uint_eq(ak_session_kv_count_pages(UINT32_MAX - 64, UINT32_MAX), UINT32_MAX - 1);
    ck_assert_uint_eq(ak_session_kv_count_pages(UINT32_MAX, UINT32_MAX), 0); /* too many */
    for (uint32_t context = 3; context < 400; context++) {
        uint32_t max = 0;
        for (uint32_t a = 1; a < context; a++)
            for (uint32_t b = 1; a + b < context; b++) {
                uint32_t pages = (a + 63) / 64 + (b + 63) / 64 + (context - a - b + 63) / 64;
                max = pages > max ? pages : max;
            }
        ck_assert_uint_eq(ak_session_kv_count_pages(context, 3), max);
    }
}
END_TEST

/* A state is stale if the sequence is not as long as when it was last extended, and has tokens. */
START_TEST(stale_states)
{
    struct fake_backend backend = { .base = { &fake_ops } };
    struct ak_session_kv kv;
    struct ak_kv_shape shape = shape_of(6);
    int32_t tokens[70] = { 0 };
    for (uint32_t state_elems = 0; state_elems < 2; state_elems++) {
        shape.state_elems = state_elems;
        shape.n_states = 2;
        ck_assert_int_eq(ak_session_kv_create(&backend.base, &shape, 128, 2, &kv, NULL), AKUNU_OK);
        ck_assert_int_eq(ak_session_kv_sequence_new(&kv), 0);
        ck_assert(!ak_session_kv_state_is_stale(&kv, 0));
        ck_assert_uint_eq(ak_session_kv_count_new_pages(&kv, 0, 0), 0);
        ak_session_kv_extend(&kv, 0, tokens, 70);
        ck_assert(!ak_session_kv_state_is_stale(&kv, 0));
        ak_session_kv_rewind(&kv, 0, 69);
        ck_assert_int_eq(ak_session_kv_state_is_stale(&kv, 0), state_elems > 0);
        ak_session_kv_extend(&kv, 0, tokens, 1);
        ck_assert(!ak_session_kv_state_is_stale(&kv, 0));
        ak_session_kv_rewind(&kv, 0, 1);
        ck_assert_int_eq(ak_session_kv_state_is_stale(&kv, 0), state_elems > 0);
        ak_session_kv_rewind(&kv, 0, 0);
        ck_assert(!ak_session_kv_state_is_stale(&kv, 0));
        ak_session_kv_clear(&kv);
    }
}
END_TEST

START_TEST(sequences_run_out)
{
    struct fake_backend backend = { .base = { &fake_ops } };
    struct ak_session_kv kv;
    struct ak_kv_shape shape = shape_of(2);
    int32_t tokens[70] = { 0 };
    ck_assert_int_eq(ak_session_kv_create(&backend.base, &shape, 128, 3, &kv, NULL), AKUNU_OK);
    ck_assert_int_eq(ak_session_kv_sequence_new(&kv), 0);
    ck_assert_int_eq(ak_session_kv_sequence_new(&kv), 1);
    ak_session_kv_sequence_free(&kv, 0);
    ck_assert_ptr_null(ak_session_kv_sequence(&kv, 0));
    ck_assert_ptr_null(ak_session_kv_sequence(&kv, -1));
    ck_assert_ptr_null(ak_session_kv_sequence(&kv, 3));
    ck_assert_int_eq(ak_session_kv_sequence_new(&kv), 0);
    ak_session_kv_extend(&kv, 0, tokens, 70);
    /* no page for the 6 tokens of the last one */
    ck_assert_int_eq(ak_session_kv_fork(&kv, 0, 70), -1);
    ck_assert_int_eq(ak_session_kv_fork(&kv, 0, 64), 2);
    ck_assert_int_eq(ak_session_kv_fork(&kv, 0, 0), -1); /* no sequence */
    ck_assert_int_eq(ak_session_kv_sequence_new(&kv), -1);
    ak_session_kv_clear(&kv);
    ck_assert_uint_eq(backend.allocated, 0);

    backend.refuse_alloc = true;
    struct ak_error error = { 0 };
    ck_assert_int_eq(ak_session_kv_create(&backend.base, &shape, 128, 3, &kv, &error),
                     AKUNU_ERROR_MEMORY);
    ck_assert_ptr_null(kv.sequences); /* nothing is left of it */
    ak_session_kv_clear(&kv);
    backend.refuse_alloc = false;
    shape.n_pages = UINT32_MAX; /* a page has a size, and all of them have none */
    shape.head_dim = shape.n_kv_heads = 1u << 13;
    ck_assert_uint_ne(ak_kv_page_bytes(&shape), 0);
    shape.n_layers = 1u << 10;
    ck_assert_int_eq(ak_session_kv_create(&backend.base, &shape, 128, 3, &kv, &error),
                     AKUNU_ERROR_MEMORY);
    ck_assert_uint_eq(backend.allocated, 0);
    shape.head_dim = shape.n_layers = shape.n_kv_heads = UINT32_MAX;
    ck_assert_int_eq(ak_session_kv_create(&backend.base, &shape, 128, 3, &kv, &error),
                     AKUNU_ERROR_MEMORY);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kv");
    TCase *tests = tcase_create("kv");
    tcase_add_loop_test(tests, random_life, 0, 8);
    tcase_add_test(tests, dropped_pages);
    tcase_add_test(tests, pages_suffice);
    tcase_add_test(tests, stale_states);
    tcase_add_test(tests, sequences_run_out);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
