/* Every sampler and several orders of them. Goldens: a reference in numpy, which was
 * compared with llama.cpp, tests/golden/samplers.py. */
#include "tests/test.h"
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/sample/sampler_state.h"

enum { TOKENS_MAX = 1000, TABLES_MAX = 8, TEXTS_MAX = 8 };

/* ---- Goldens ------------------------------------------------------------ */
struct table {
    char name[16];
    uint32_t n;
    float logits[TOKENS_MAX];
};

struct golden {
    char name[32];
    const struct table *table;
    struct akunu_sampling_params params;
    struct akunu_logit_bias bias[TEXTS_MAX];
    char text[128], breakers[TEXTS_MAX][64];
    const char *breaker_list[TEXTS_MAX + 1];
    uint32_t n_accepted, n_left, n_cells;
    int32_t accepted[128];
    double p[TOKENS_MAX]; /* by token */
    bool exact;
    double limit;
};

struct reader {
    FILE *file;
    char *line;
    size_t capacity;
    struct table tables[TABLES_MAX];
    uint32_t n_tables;
};

static const char *data_path(const char *name)
{
    static char path[4096];
    const char *data = getenv("AK_TEST_DATA");
    ck_assert_ptr_nonnull(data);
    snprintf(path, sizeof path, "%s/%s", data, name);
    return path;
}

static bool next_line(struct reader *r)
{
    ssize_t n = getline(&r->line, &r->capacity, r->file);
    if (n > 0 && r->line[n - 1] == '\n')
        r->line[n - 1] = '\0';
    return n > 0;
}

/* The next number at *p, which is moved behind it. */
static double number(char **p)
{
    char *end;
    double x = strtod(*p, &end);
    ck_assert_msg(end != *p, "no number at '%.40s'", *p);
    *p = end;
    return x;
}

static struct akunu_sampling_params off(void)
{
    return (struct akunu_sampling_params){ .size = sizeof(struct akunu_sampling_params),
                                           .temperature = 1.0f,
                                           .top_p = 1.0f,
                                           .repeat_penalty = 1.0f,
                                           .repeat_last_n = 64,
                                           .seed = 4711,
                                           .dynatemp_exponent = 1.0f,
                                           .typical_p = 1.0f,
                                           .top_n_sigma = -1.0f,
                                           .xtc_threshold = 0.1f,
                                           .dry_base = 1.75f,
                                           .dry_allowed_length = 2,
                                           .dry_penalty_last_n = 64,
                                           .mirostat_tau = 5.0f,
                                           .mirostat_eta = 0.1f,
                                           .adaptive_target = -1.0f,
                                           .adaptive_decay = 0.9f };
}

static void set(struct akunu_sampling_params *params, char *text, const char *field,
                const char *value)
{
    static const struct {
        const char *name;
        size_t offset;
        bool integer;
    } fields[] = {
#define FLOAT(name) { #name, offsetof(struct akunu_sampling_params, name), false }
#define INTEGER(name)                                                                              \
    {                                                                                              \
#name, offsetof(struct akunu_sampling_params, name), true                                  \
    }
        FLOAT(temperature),
        FLOAT(top_p),
        FLOAT(min_p),
        FLOAT(repeat_penalty),
        FLOAT(presence_penalty),
        FLOAT(frequency_penalty),
        FLOAT(dynatemp_range),
        FLOAT(dynatemp_exponent),
        FLOAT(typical_p),
        FLOAT(top_n_sigma),
        FLOAT(xtc_probability),
        FLOAT(xtc_threshold),
        FLOAT(dry_multiplier),
        FLOAT(dry_base),
        FLOAT(mirostat_tau),
        FLOAT(mirostat_eta),
        FLOAT(adaptive_target),
        FLOAT(adaptive_decay),
        INTEGER(top_k),
        INTEGER(repeat_last_n),
        INTEGER(dry_allowed_length),
        INTEGER(dry_penalty_last_n),
        INTEGER(mirostat),
    };
    if (strncmp(field, "sampler", 7) == 0) {
        ck_assert_uint_lt(strlen(value), 128);
        strcpy(text, value);
        *(strcmp(field, "samplers") == 0 ? &params->samplers : &params->sampler_seq) = text;
        return;
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(fields[i].name, field) == 0) {
            void *member = (char *)params + fields[i].offset;
            if (fields[i].integer)
                *(int32_t *)member = (int32_t)strtol(value, NULL, 10);
            else
                *(float *)member = strtof(value, NULL);
            return;
        }
    ck_abort_msg("no field %s", field);
}

static void read_table(struct reader *r)
{
    struct table *t = &r->tables[r->n_tables++];
    ck_assert_uint_le(r->n_tables, TABLES_MAX);
    ck_assert_int_eq(sscanf(r->line, "logits %15s %u", t->name, &t->n), 2);
    ck_assert_uint_le(t->n, TOKENS_MAX);
    ck_assert(next_line(r));
    char *p = r->line;
    for (uint32_t i = 0; i < t->n; i++)
        t->logits[i] = (float)number(&p);
}

static const struct table *table_named(const struct reader *r, const char *name)
{
    for (uint32_t i = 0; i < r->n_tables; i++)
        if (strcmp(r->tables[i].name, name) == 0)
            return &r->tables[i];
    ck_abort_msg("no logits %s", name);
    return NULL;
}

/* A line of a case that is not a `set`; false after the last one. */
static bool read_case_line(struct golden *c, const char *word, char *p)
{
    uint32_t n_breakers = 0;
    if (strcmp(word, "bias") == 0) {
        struct akunu_logit_bias *bias = &c->bias[c->params.n_logit_bias++];
        ck_assert_uint_le(c->params.n_logit_bias, TEXTS_MAX);
        bias->token = (int32_t)number(&p);
        bias->bias = (float)number(&p);
    } else if (strcmp(word, "breaker") == 0) {
        while (c->breaker_list[n_breakers])
            n_breakers++;
        ck_assert_uint_lt(n_breakers, TEXTS_MAX);
        for (int i = 0; p[1 + 2 * i] && p[1] != '-'; i++) {
            char hex[3] = { p[1 + 2 * i], p[2 + 2 * i], '\0' };
            c->breakers[n_breakers][i] = (char)strtol(hex, NULL, 16);
            c->breaker_list[n_breakers] = c->breakers[n_breakers];
        }
    } else if (strcmp(word, "accepted") == 0) {
        c->n_accepted = (uint32_t)number(&p);
        ck_assert_uint_le(c->n_accepted, 128);
        for (uint32_t i = 0; i < c->n_accepted; i++)
            c->accepted[i] = (int32_t)number(&p);
    } else if (strcmp(word, "left") == 0) {
        c->n_left = (uint32_t)number(&p);
        for (uint32_t i = 0; i < c->n_left; i++) {
            uint32_t token = (uint32_t)number(&p);
            ck_assert_uint_lt(token, c->table->n);
            c->p[token] = number(&p);
        }
    } else if (strcmp(word, "exact") == 0) {
        c->exact = number(&p) != 0.0;
    } else {
        ck_assert_str_eq(word, "chi2");
        c->n_cells = (uint32_t)number(&p);
        c->limit = number(&p);
        return false;
    }
    return true;
}

/* The case whose first line was read. */
static void read_case(struct reader *r, struct golden *c)
{
    char table[16], word[16], field[24];
    bool more = true;
    memset(c, 0, sizeof *c);
    c->params = off();
    ck_assert_int_eq(sscanf(r->line, "case %31s %15s", c->name, table), 2);
    c->table = table_named(r, table);
    c->params.logit_bias = c->bias;
    c->params.dry_sequence_breakers = c->breaker_list;
    while (more) {
        int n_word, n_field;
        ck_assert(next_line(r));
        ck_assert_int_eq(sscanf(r->line, "%15s%n", word, &n_word), 1);
        if (strcmp(word, "set") != 0) {
            more = read_case_line(c, word, r->line + n_word);
            continue;
        }
        ck_assert_int_eq(sscanf(r->line, "set %23s%n", field, &n_field), 1);
        set(&c->params, c->text, field, r->line + n_field + (r->line[n_field] == ' '));
    }
}

static void open_reader(struct reader *r)
{
    memset(r, 0, sizeof *r);
    r->file = fopen(data_path("samplers.txt"), "r");
    ck_assert_ptr_nonnull(r->file);
}

static void close_reader(struct reader *r)
{
    fclose(r->file);
    free(r->line);
}

/* ---- What is left, and how often ---------------------------------------- */
/* of tests/data/model.gguf, as the reference's breakers are */
static struct ak_tokenizer *tokenizer;

static void open_tokenizer(void)
{
    struct ak_error error = { 0 };
    struct ak_provider *provider;
    ck_assert_msg(ak_provider_open(data_path("model.gguf"), &provider, &error) == AKUNU_OK, "%s",
                  error.message);
    ck_assert_msg(ak_tok_open(provider, &tokenizer, &error) == AKUNU_OK, "%s", error.message);
    ak_provider_close(provider);
}

static void close_tokenizer(void)
{
    ak_tok_free(tokenizer);
}

static struct ak_sampler *new_sampler(const struct golden *c)
{
    struct ak_error error = { 0 };
    struct ak_sampler *s;
    ck_assert_msg(ak_sample_create(&c->params, c->table->n, tokenizer, &s, &error) == AKUNU_OK,
                  "%s: %s", c->name, error.message);
    for (uint32_t i = 0; i < c->n_accepted; i++)
        ak_sample_accept(s, c->accepted[i]);
    return s;
}

static int32_t sample_token(struct ak_sampler *s, const float *logits)
{
    struct ak_error error = { 0 };
    int32_t token = -1;
    if (ak_sample_token(s, logits, &token, &error) !=
        AKUNU_OK) /* an assertion that holds is slower than a sample */
        ck_abort_msg("%s", error.message);
    return token;
}

/* The candidates of a sample and their weights are those of the reference. */
static void check_left(const struct golden *c, const struct ak_sampler *s)
{
    const struct ak_sample_candidates *left = &s->candidates;
    double total = 0.0;
    ck_assert_msg(left->n == c->n_left, "%s: %u tokens are left instead of %u", c->name, left->n,
                  c->n_left);
    for (uint32_t i = 0; i < left->n; i++)
        total += (double)left->weights[i];
    for (uint32_t i = 0; i < left->n; i++) {
        double p = (double)left->weights[i] / total, expected = c->p[left->items[i].token];
        ck_assert_msg(fabs(p - expected) <= 1e-5 * expected + 1e-30,
                      "%s: token %d has %.9g instead of %.9g", c->name, (int)left->items[i].token,
                      p, expected);
    }
}

/* Pearson's chi-squared over tokens that are expected ten times or more, the rest taken
 * together. Seeds are fixed, so a sampler passes always or never. 4,000 samples notice a wrong
 * sampler; the limits of the goldens, for AKUNU_TEST_FULL, are of 100,000. */
static void check_samples(const struct golden *c, struct ak_sampler *s)
{
    bool full = test_is_full();
    uint32_t n_samples = full ? 100000 : 4000, seen[TOKENS_MAX] = { 0 }, n_cells = 0,
             rest = n_samples;
    double sum = 0.0, rest_expected = n_samples;
    for (uint32_t i = 0; i < n_samples; i++)
        seen[sample_token(s, c->table->logits)]++;
    for (uint32_t i = 0; i < c->table->n; i++) {
        double expected = c->p[i] * n_samples, d = (double)seen[i] - expected;
        if (c->p[i] == 0.0 && seen[i] > 0)
            ck_abort_msg("%s: token %u is sampled", c->name, i);
        if (expected < 10.0)
            continue;
        sum += d * d / expected;
        rest -= seen[i];
        rest_expected -= expected;
        n_cells++;
    }
    if (rest_expected >= 10.0) {
        sum += ((double)rest - rest_expected) * ((double)rest - rest_expected) / rest_expected;
        n_cells++;
    }
    ck_assert(!full || n_cells == c->n_cells);
    double freedom = n_cells > 1 ? n_cells - 1 : 1,
           limit = full ? c->limit : freedom + 5.0 * sqrt(2.0 * freedom);
    ck_assert_msg(sum < limit, "%s: chi-squared is %.1f and the limit %.1f for %u cells", c->name,
                  sum, limit, n_cells);
}

/* Tokens that are not allowed count as though their logits were minus infinity. */
static void check_mask(const struct golden *c)
{
    float logits[TOKENS_MAX];
    uint32_t allowed[TOKENS_MAX / 32 + 1] = { 0 };
    struct ak_sampler *masked = new_sampler(c), *without = new_sampler(c);
    for (uint32_t i = 0; i < c->table->n; i++) {
        bool in = i % 3 != 1;
        allowed[i / 32] |= (uint32_t)in << (i % 32);
        logits[i] = in ? c->table->logits[i] : -INFINITY;
    }
    /* past the vocabulary: no heed is taken */
    allowed[c->table->n / 32] |= ~0u << (c->table->n % 32);
    for (int i = 0; i < 200; i++) {
        struct ak_error error = { 0 };
        int32_t token = -1;
        ck_assert_int_eq(ak_sample_token_masked(masked, c->table->logits, allowed, &token, &error),
                         AKUNU_OK);
        ck_assert_msg(token == sample_token(without, logits), "%s: sample %d", c->name, i);
    }
    ak_sample_free(masked);
    ak_sample_free(without);
}

START_TEST(equals_the_reference)
{
    static struct reader r;
    static struct golden c;
    int n_cases = 0;
    open_reader(&r);
    while (next_line(&r)) {
        if (strncmp(r.line, "logits", 6) == 0)
            read_table(&r);
        if (strncmp(r.line, "case", 4) != 0)
            continue;
        read_case(&r, &c);
        struct ak_sampler *s = new_sampler(&c);
        sample_token(s, c.table->logits);
        if (c.exact)
            check_left(&c, s);
        check_samples(&c, s);
        check_mask(&c);
        ak_sample_free(s);
        n_cases++;
    }
    ck_assert_int_eq(n_cases, 58);
    close_reader(&r);
}
END_TEST

/* ---- What is learnt ----------------------------------------------------- */
/* One step of a trace: from what was learnt before to what is learnt now. */
static void check_step(struct ak_sampler *s, bool mirostat, const struct table *t, char *line)
{
    struct ak_sample_candidates *c = &s->candidates;
    double unit = number(&line);
    int32_t expected = (int32_t)number(&line);
    ak_sample_collect(c, t->logits, t->n, 0);
    uint32_t at = mirostat ? ak_sample_with_mirostat(&s->mirostat, c, unit) :
                             ak_sample_with_adaptive_p(&s->adaptive_p, c, 1.0f, unit, s->logits);
    ck_assert_int_eq(c->items[at].token, expected);
    ak_sample_accept(s, expected);
    double learnt = number(&line);
    ck_assert_double_eq_tol(mirostat ? s->mirostat.mu : s->adaptive_p.sum, learnt, 1e-5);
    if (!mirostat)
        ck_assert_double_eq_tol(s->adaptive_p.weight, number(&line), 1e-9);
}

START_TEST(learns_as_the_reference)
{
    static struct reader r;
    int n_traces = 0;
    open_reader(&r);
    while (next_line(&r)) {
        char kind[16], table[16], field[24];
        int n_field, n_steps;
        struct golden c = { .name = "trace", .params = off() };
        if (strncmp(r.line, "logits", 6) == 0)
            read_table(&r);
        if (sscanf(r.line, "trace %15s %15s", kind, table) != 2)
            continue;
        c.table = table_named(&r, table);
        while (next_line(&r) && sscanf(r.line, "set %23s%n", field, &n_field) == 1)
            set(&c.params, c.text, field, r.line + n_field);
        if (strcmp(kind, "adaptive") == 0)
            c.params.sampler_seq = "a";
        ck_assert_str_eq(r.line, "steps");
        ck_assert(next_line(&r));
        n_steps = atoi(r.line);
        struct ak_sampler *s = new_sampler(&c);
        for (int i = 0; i < n_steps; i++) {
            ck_assert(next_line(&r));
            check_step(s, strcmp(kind, "mirostat") == 0, c.table, r.line);
        }
        ak_sample_free(s);
        n_traces++;
    }
    ck_assert_int_eq(n_traces, 5);
    close_reader(&r);
}
END_TEST

/* A sampled token that is not accepted changes no state. */
START_TEST(learns_only_from_what_is_taken)
{
    float logits[] = { 1.0f, 0.5f, 0.0f, -0.5f };
    struct table t = { .n = 4 };
    struct golden c = { .name = "refused", .table = &t, .params = off() };
    c.params.sampler_seq = "a";
    c.params.adaptive_target = 0.2f;
    struct ak_sampler *s = new_sampler(&c);
    double sum = s->adaptive_p.sum;
    int32_t token = sample_token(s, logits);
    ak_sample_accept(s, (token + 1) % 4);
    ck_assert_double_eq(s->adaptive_p.sum, sum);
    token = sample_token(s, logits);
    ak_sample_accept(s, token);
    ck_assert_double_ne(s->adaptive_p.sum, sum);
    ak_sample_free(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("samplers");
    TCase *tests = tcase_create("samplers");
    tcase_set_timeout(tests, 300);
    tcase_add_unchecked_fixture(tests, open_tokenizer, close_tokenizer);
    tcase_add_test(tests, equals_the_reference);
    tcase_add_test(tests, learns_as_the_reference);
    tcase_add_test(tests, learns_only_from_what_is_taken);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
