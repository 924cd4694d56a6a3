/* Programs and libraries of different versions. This program is compiled with headers whose sized
 * structs lack their last members (older_header.awk), and linked with the library as it is. Each
 * struct ends at a page that must not be touched. */
#include "tests/test.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "akunu/akunu.h"

#ifndef AKUNU_IS_OLDER
#error "compile with the headers of older_header.awk before those of the library"
#endif

/* n bytes of 0xa5 that end where a page begins that faults. */
static void *before_guard(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    ck_assert_uint_le(n, page);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(pages, MAP_FAILED);
    ck_assert_int_eq(mprotect(pages + page, page, PROT_NONE), 0);
    memset(pages, 0xa5, page);
    return pages + page - n;
}

#define FILLED_BY_LIBRARY(type, name) struct akunu_##type *name = before_guard(sizeof *name)
#define WITH_DEFAULTS(type, name)                                                                  \
    FILLED_BY_LIBRARY(type, name);                                                                 \
    akunu_##type##_default(name, sizeof *name);                                                    \
    ck_assert_uint_eq(name->size, sizeof *name)

static const char *model_path(char path[4096])
{
    const char *data = getenv("AK_TEST_DATA");
    ck_assert_ptr_nonnull(data);
    snprintf(path, 4096, "%s/model.gguf", data);
    return path;
}

static struct akunu_model *load(void)
{
    char path[4096];
    WITH_DEFAULTS(load_params, params);
    ck_assert(!params->strict && !params->cpu);
    params->n_threads = 1;
    struct akunu_model *model = akunu_model_load(model_path(path), params);
    ck_assert_msg(model != NULL, "%s", akunu_last_error());
    return model;
}

static bool count_piece(size_t index, akunu_token token, const char *text, size_t n_bytes,
                        void *user)
{
    (void)index, (void)token, (void)text, (void)n_bytes;
    ++*(int *)user;
    return true;
}

static bool stop_at_once(size_t index, akunu_token token, const char *text, size_t n_bytes,
                         void *user)
{
    count_piece(index, token, text, n_bytes, user);
    return false;
}

START_TEST(generating)
{
    const akunu_token ids[] = { 5, 6, 7 };
    const struct akunu_ids text = { ids, 3 };
    int n_pieces = 0;
    struct akunu_model *model = load();
    WITH_DEFAULTS(session_params, params);
    params->context = 128;
    struct akunu_session *session = akunu_session_new(model, params);
    ck_assert_msg(session != NULL, "%s", akunu_last_error());
    akunu_sequence sequence = akunu_sequence_new(session);

    WITH_DEFAULTS(sampling_params, sampling);
    ck_assert(sampling->temperature == 0.8f && sampling->top_k == 40);
    ck_assert_int_eq(akunu_sampling_check(sampling), AKUNU_OK);
    struct akunu_sampler *sampler = akunu_sampler_new(model, sampling);
    ck_assert_ptr_nonnull(sampler);
    akunu_sampler_free(sampler);
    WITH_DEFAULTS(generation_params, generation);
    ck_assert(generation->max_tokens == -1 && !generation->sampling);
    generation->max_tokens = 4;
    generation->sampling = sampling;
    FILLED_BY_LIBRARY(result, result);
    result->size = sizeof *result;
    generation->on_piece = count_piece;
    generation->user = &n_pieces;
    ck_assert_msg(akunu_session_generate(session, sequence, &(struct akunu_ids){ ids, 3 },
                                         generation, result) == AKUNU_OK,
                  "%s", akunu_last_error());
    ck_assert_uint_eq(result->size, sizeof *result);
    ck_assert_uint_eq(result->n_prompt, 3);
    ck_assert_int_ge(n_pieces, (int)result->n_generated);

    WITH_DEFAULTS(completion_params, completion);
    ck_assert(completion->form == AKUNU_PROMPT_AUTO && !completion->generation);
    n_pieces = 0;
    completion->generation = generation;
    generation->on_piece = stop_at_once;
    ck_assert_msg(akunu_session_complete(session, sequence, "a", 1, completion, result) == AKUNU_OK,
                  "%s", akunu_last_error());
    ck_assert(n_pieces == 1 && result->n_generated == 1);

    WITH_DEFAULTS(embedding_params, embedding);
    FILLED_BY_LIBRARY(model_info, info);
    ck_assert_int_eq(akunu_model_get_info(model, info, sizeof *info), AKUNU_OK);
    ck_assert_str_eq(info->format, "gguf");
    float *vector = calloc(info->width, sizeof *vector);
    akunu_sequence_free(session, sequence);
    ck_assert_msg(akunu_session_embed(session, &text, 1, embedding, vector) == AKUNU_OK, "%s",
                  akunu_last_error());
    free(vector);

    FILLED_BY_LIBRARY(memory, memory);
    ck_assert_int_eq(akunu_model_get_memory(model, session, memory, sizeof *memory), AKUNU_OK);
    ck_assert_uint_gt(memory->kv, 0);
    FILLED_BY_LIBRARY(counters, counters);
    ck_assert_int_eq(akunu_session_get_counters(session, counters, sizeof *counters), AKUNU_OK);
    ck_assert_uint_gt(counters->passes, 0);

    size_t n_restored;
    WITH_DEFAULTS(prompt_cache, cache);
    cache->dir = "/nonexistent";
    sequence = akunu_sequence_new(session);
    ck_assert_int_eq(akunu_sequence_restore(session, sequence, &(struct akunu_ids){ ids, 3 }, cache,
                                            &n_restored),
                     AKUNU_OK);
    ck_assert_uint_eq(n_restored, 0);
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

/* Results in a row are as far apart as the program's struct is long. */
START_TEST(parallel_results)
{
    enum { N = 3 };
    const akunu_token ids[] = { 5, 6, 7 };
    struct akunu_model *model = load();
    WITH_DEFAULTS(session_params, params);
    params->context = 512;
    params->max_sequences = N;
    struct akunu_session *session = akunu_session_new(model, params);
    akunu_sequence sequences[N] = { akunu_sequence_new(session) };
    WITH_DEFAULTS(generation_params, generation);
    generation->max_tokens = 2;
    struct akunu_result *results = before_guard(N * sizeof *results);
    results->size = sizeof *results;
    ck_assert_msg(akunu_session_generate_parallel(session, sequences, N,
                                                  &(struct akunu_ids){ ids, 3 }, generation,
                                                  results) == AKUNU_OK,
                  "%s", akunu_last_error());
    for (size_t i = 0; i < N; i++) {
        ck_assert_uint_eq(results[i].size, sizeof *results);
        ck_assert_uint_eq(results[i].n_prompt, 3);
        ck_assert_uint_le(results[i].n_generated, 2);
    }
    akunu_session_free(session);
    akunu_model_free(model);
}
END_TEST

START_TEST(text_and_replies)
{
    const char *schema = "{\"type\": \"string\"}";
    WITH_DEFAULTS(schema_params, lax);
    struct akunu_grammar *grammar = akunu_grammar_from_schema(schema, strlen(schema), lax);
    ck_assert_msg(grammar != NULL, "%s", akunu_last_error());
    akunu_grammar_free(grammar);

    WITH_DEFAULTS(chat, chat);
    chat->messages = "[{\"role\": \"user\", \"content\": \"Hi\"}]";
    struct akunu_template *template = akunu_template_parse("{{ messages[0].content }}", 25, NULL);
    ck_assert_ptr_nonnull(template);
    char *prompt = akunu_template_render(template, chat, NULL);
    ck_assert_msg(prompt && strcmp(prompt, "Hi") == 0, "%s", akunu_last_error());
    akunu_text_free(prompt);
    akunu_template_free(template);

    WITH_DEFAULTS(reply_params, params);
    params->format = "hermes";
    struct akunu_reply *reply = akunu_reply_new(params, NULL, NULL);
    ck_assert_msg(reply != NULL, "%s", akunu_last_error());
    ck_assert_int_eq(akunu_reply_push(reply, "x<tool_call>", 12), AKUNU_OK);
    ck_assert_int_eq(akunu_reply_end(reply), AKUNU_OK);
    akunu_reply_free(reply);
    WITH_DEFAULTS(tool_grammar_params, calls);
    calls->choice = "none";
    ck_assert_int_eq(akunu_grammar_from_tools(params, calls, &grammar), AKUNU_OK);
    ck_assert_ptr_null(grammar);
}
END_TEST

START_TEST(files)
{
    char path[4096];
    struct akunu_file *file = akunu_file_open(model_path(path));
    FILLED_BY_LIBRARY(file_info, info);
    FILLED_BY_LIBRARY(tensor_info, tensor);
    FILLED_BY_LIBRARY(meta, meta);
    ck_assert_int_eq(akunu_file_get_info(file, info, sizeof *info), AKUNU_OK);
    ck_assert_int_eq(akunu_file_get_tensor(file, 0, tensor, sizeof *tensor), AKUNU_OK);
    ck_assert_int_eq(akunu_file_get_meta(file, 0, meta, sizeof *meta), AKUNU_OK);
    ck_assert(info->format && tensor->name && meta->key);
    akunu_file_free(file);

    FILLED_BY_LIBRARY(format_info, format);
    FILLED_BY_LIBRARY(architecture_info, architecture);
    FILLED_BY_LIBRARY(type_info, type);
    FILLED_BY_LIBRARY(quantization_info, quantization);
    FILLED_BY_LIBRARY(device_info, device);
    ck_assert_int_eq(akunu_get_format(0, format, sizeof *format), AKUNU_OK);
    ck_assert_int_eq(akunu_get_architecture(0, architecture, sizeof *architecture), AKUNU_OK);
    ck_assert_int_eq(akunu_get_type(0, type, sizeof *type), AKUNU_OK);
    ck_assert_int_eq(akunu_get_quantization(0, quantization, sizeof *quantization), AKUNU_OK);
    akunu_get_device(0, device, sizeof *device); /* if there is one */

    WITH_DEFAULTS(convert_params, convert);
    convert->type = "Q0";
    ck_assert_int_ne(akunu_convert(path, "/nonexistent/x.gguf", convert), AKUNU_OK);
    WITH_DEFAULTS(quantize_params, quantize);
    ck_assert_str_eq(quantize->type, "Q4_K_M");
    ck_assert_int_ne(akunu_quantize(path, "/nonexistent/x.gguf", quantize), AKUNU_OK);
    WITH_DEFAULTS(compress_params, compress);
    ck_assert_str_eq(compress->encoding, "int8");
    FILLED_BY_LIBRARY(compress_result, compressed);
    ck_assert_int_ne(
        akunu_compress(path, "/nonexistent/x", compress, compressed, sizeof *compressed), AKUNU_OK);
    ck_assert_uint_gt(compressed->n_matrices, 0);
}
END_TEST

START_TEST(measuring)
{
    FILLED_BY_LIBRARY(chip, chip);
    ck_assert_int_eq(akunu_get_chip(chip, sizeof *chip), AKUNU_OK);
    ck_assert_uint_gt(chip->cores, 0);
    FILLED_BY_LIBRARY(roofline, roofline);
    ck_assert_int_eq(
        akunu_roofline_measure("scalar", 1, AKUNU_MEASURE_F32, roofline, sizeof *roofline),
        AKUNU_OK);
    ck_assert(roofline->f32_ops_per_second > 0.0);
    WITH_DEFAULTS(profile, profile);
    ck_assert_uint_eq(profile->threads, 0);
    ck_assert_int_eq(akunu_profile_write(profile, "/nonexistent/p.yaml"), AKUNU_ERROR_IO);
}
END_TEST

/* A newer program: what this library does not know is 0, and is ignored. */
START_TEST(newer_program)
{
    struct {
        struct akunu_sampling_params known;
        char more[200]; /* an older sampling and then more than the library's own */
    } *sampling = before_guard(sizeof *sampling);
    struct {
        struct akunu_chip known;
        char more[200];
    } *chip = before_guard(sizeof *chip);
    akunu_sampling_params_default(&sampling->known, sizeof *sampling);
    ck_assert_uint_eq(sampling->known.size, sizeof *sampling);
    ck_assert_int_eq(sampling->more[sizeof sampling->more - 1], 0);
    memset(sampling->more + sizeof sampling->more - 8, 1, 8);
    ck_assert_msg(akunu_sampling_check(&sampling->known) == AKUNU_OK, "%s", akunu_last_error());
    ck_assert_int_eq(akunu_get_chip(&chip->known, sizeof *chip), AKUNU_OK);
    ck_assert_int_eq(chip->more[sizeof chip->more - 1], 0);
    akunu_sampling_params_default(NULL, sizeof *sampling); /* nothing to fill */
    akunu_sampling_params_default(&sampling->known, 4);
    ck_assert_uint_eq(sampling->known.size, sizeof *sampling);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sizes");
    TCase *tests = tcase_create("sizes");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, generating);
    tcase_add_test(tests, parallel_results);
    tcase_add_test(tests, text_and_replies);
    tcase_add_test(tests, files);
    tcase_add_test(tests, measuring);
    tcase_add_test(tests, newer_program);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
