/* Benchmark of grammar-constrained decoding.
 *
 *   masks      CPU time of each token mask along a text: for a state's first mask (worst,
 *              median), for a state seen before, and for accepting a token
 *   generate   tokens per second of a model, free and held to a schema, in turns; same
 *              sampling, no speculation */
#include <time.h>

#include "measure.h"

#include "akunu/akunu.h"
#include "text/grammar/matcher.h"
#include "text/grammar/schema/schema.h"
#include "files/weights/provider.h"

static const char usage[] = "bench/grammar -m MODEL [--generate] [--rounds N]\n"
                            "       (5 rounds; without a model nothing is measured)";

enum { TOKENS_MAX = 4096 };

static const char person[] =
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":1,"
    "\"maxLength\":80},\"age\":{\"type\":\"integer\",\"minimum\":0,"
    "\"maximum\":130},\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"maxLength\":40}"
    ",\"minItems\":1,\"maxItems\":8},\"born\":{\"type\":"
    "\"string\",\"format\":\"date\"},\"about\":{\"type\":\"string\"}},\"required\":[\"name\","
    "\"age\",\"tags\",\"born\",\"about\"],\"additionalProperties\":false}";
static const char person_text[] =
    "{\"name\": \"Ada Lovelace\", \"age\": 36, \"tags\": [\"mathematics\", \"the analytical "
    "engine\", \"poetry\"], \"born\": \"1815-12-10\", "
    "\"about\": \"She wrote notes on Babbage\\u2019s machine – \\\"Note G\\\" has what is called "
    "the first program. Her father was a poet.\"}";
static const char any_text[] = "{\n  \"a\": [1, 2.5, -3e10, true, null, \"text\"],\n  \"b\": "
                               "{\"c\": [[], {}], \"d\": \"löwe 漢字 😀\"}\n}";
static const char prose[] =
    "root ::= sentence (\" \" sentence)*\nsentence ::= [A-Z] [^.!?\\n]{1,300} [.!?]\n";
static const char prose_text[] = "The keeper climbed the stairs. Was the lamp lit? It was not! He "
                                 "sat down and waited for the morning.";
static const char pattern[] =
    "{\"type\":\"string\",\"pattern\":\"^(\\\\p{L}+[ ,.]?)+[0-9]*x?$\",\"maxLength\":120}";
static const char pattern_text[] = "\"Größe und Länge sind zwei verschiedene Dinge sagte er.12x\"";

static void must(ak_status status, const struct ak_error *error)
{
    if (status == AKUNU_OK)
        return;
    fprintf(stderr, "%s\n", error->message);
    exit(1);
}

/* CPU time of this thread only, so that other programs do not count. */
static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare_f64(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void masks(const char *name, struct ak_grammar *g, const struct ak_grammar_token_trie *trie,
                  const struct ak_tokenizer *t, const char *text)
{
    static int32_t ids[TOKENS_MAX];
    static double cold[TOKENS_MAX];
    struct ak_error error = { 0 };
    struct ak_grammar_matcher *m;
    const uint32_t *mask;
    double sum = 0, warm = 0, taking = 0;
    size_t n;
    bool allowed = true;
    must(ak_grammar_matcher_create(g, trie, &m, &error), &error);
    must(ak_tok_encode(t, text, strlen(text), 0, ids, TOKENS_MAX, &n, &error), &error);
    for (int round = 0; round < 2; round++) {
        must(ak_grammar_matcher_reset(m, &error), &error);
        for (size_t i = 0; i < n; i++) {
            double begin = cpu_seconds();
            must(ak_grammar_matcher_get_mask(m, &mask, &error), &error);
            double masked = cpu_seconds();
            must(ak_grammar_matcher_accept_token(m, ids[i], &allowed, &error), &error);
            if (!allowed) {
                fprintf(stderr, "%s: token %zu is not allowed\n", name, i);
                exit(1);
            }
            if (round == 0) {
                cold[i] = masked - begin;
                sum += masked - begin;
            } else {
                warm += masked - begin;
                taking += cpu_seconds() - masked;
            }
        }
    }
    qsort(cold, n, sizeof *cold, compare_f64);
    printf("%-10s %6zu %10.1f %10.1f %10.1f %10.2f %10.2f\n", name, n, cold[n - 1] * 1e6,
           cold[n / 2] * 1e6, sum / (double)n * 1e6, warm / (double)n * 1e6,
           taking / (double)n * 1e6);
    ak_grammar_matcher_free(m);
}

static void all_masks(const char *path)
{
    struct ak_error error = { 0 };
    struct ak_provider *p;
    struct ak_tokenizer *t;
    struct ak_grammar_token_trie *trie;
    struct ak_grammar *g;
    struct ak_schema_options writing = { .form = AK_SCHEMA_WRITING },
                             reading = { .form = AK_SCHEMA_READING };
    must(ak_provider_open(path, &p, &error), &error);
    must(ak_tok_open(p, &t, &error), &error);
    double begin = cpu_seconds();
    must(ak_grammar_token_trie_create(t, (uint32_t)ak_tok_n_tokens(t), &trie, &error), &error);
    printf("%zu tokens; their trie: %.1f ms, %.1f MiB\n", ak_tok_n_tokens(t),
           (cpu_seconds() - begin) * 1e3, (double)ak_grammar_token_trie_bytes(trie) / (1 << 20));
    printf("%-10s %6s %10s %10s %10s %10s %10s   µs\n", "", "tokens", "worst", "median", "mean",
           "again", "take");
    const struct {
        const char *name, *schema, *gbnf, *text;
        const struct ak_schema_options *options;
    } cases[] = {
        { "person", person, NULL, person_text, &writing },
        { "any JSON", "{}", NULL, any_text, &writing },
        { "reading", "{}", NULL, any_text, &reading },
        { "pattern", pattern, NULL, pattern_text, &writing },
        { "prose", NULL, prose, prose_text, NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].schema)
            must(ak_grammar_from_schema_text(cases[i].schema, strlen(cases[i].schema),
                                             cases[i].options, &g, &error),
                 &error);
        else
            must(ak_grammar_from_gbnf(cases[i].gbnf, strlen(cases[i].gbnf), "root", &g, &error),
                 &error);
        masks(cases[i].name, g, trie, t, cases[i].text);
        ak_grammar_free(g);
    }
    ak_grammar_token_trie_free(trie);
    ak_tok_free(t);
    ak_provider_close(p);
}

static double speed(struct akunu_session *session, const struct akunu_grammar *g)
{
    static const akunu_token prompt[] = { 504, 3575, 282, 4649 };
    struct akunu_generation_params generation;
    struct akunu_sampling_params sampling;
    struct akunu_result result = { .size = sizeof result };
    akunu_generation_params_default(&generation, sizeof generation);
    akunu_sampling_params_default(&sampling, sizeof sampling);
    generation.sampling = &sampling;
    generation.max_tokens = 200;
    generation.speculation = AKUNU_SPECULATION_NONE;
    sampling.seed = 4;
    sampling.grammar = g;
    akunu_sequence sequence = akunu_sequence_new(session);
    if (akunu_session_generate(session, sequence, &(struct akunu_ids){ prompt, 4 }, &generation,
                               &result) != AKUNU_OK) {
        fprintf(stderr, "%s\n", akunu_last_error());
        exit(1);
    }
    akunu_sequence_free(session, sequence);
    return (double)result.n_generated / result.generate_seconds;
}

static void generate(const char *path, long rounds)
{
    /* only the beginning is forced, and no text ends early */
    static const char schema[] = "{\"type\":\"object\",\"properties\":{\"lines\":{\"type\":"
                                 "\"array\",\"items\":{\"type\":\"string\",\"minLength\":20,"
                                 "\"maxLength\":400},\"minItems\":60}},\"required\":[\"lines\"]}";
    struct akunu_grammar *g = akunu_grammar_from_schema(schema, strlen(schema), NULL);
    struct akunu_model *model = akunu_model_load(path, NULL);
    struct akunu_session *session = model ? akunu_session_new(model, NULL) : NULL;
    if (!g || !session) {
        fprintf(stderr, "%s\n", akunu_last_error());
        exit(1);
    }
    speed(session, NULL);
    speed(session, g);
    for (long i = 0; i < rounds; i++) {
        double free_speed = speed(session, NULL), held = speed(session, g);
        printf("free %8.1f tok/s, held to a schema %8.1f tok/s: %+.1f %%\n", free_speed, held,
               (free_speed / held - 1) * 100);
    }
    akunu_session_free(session);
    akunu_model_free(model);
    akunu_grammar_free(g);
}

int main(int argc, char **argv)
{
    const char *model = NULL;
    bool generates = false;
    long rounds = 5;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-m") == 0 && i + 1 < argc) {
            model = argv[++i];
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            rounds = strtol(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--generate") == 0) {
            generates = true;
        } else {
            fprintf(stderr, "usage: %s\n", usage);
            return 2;
        }
    }
    if (!model) {
        printf("no model is given: %s\n", usage);
        return 0;
    }
    all_masks(model);
    if (generates)
        generate(model, rounds);
    return 0;
}
