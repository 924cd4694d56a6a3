/* Sampling parameters, logit bias and DRY breakers from flags, and log-probabilities as JSON. */
#include "apps/common/sampling.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "apps/common/input.h"
#include "apps/common/message.h"
#include "apps/common/output.h"

/* A random seed short enough to type. */
static int64_t make_random_seed(void)
{
    uint32_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        seed = (uint32_t)getpid();
    return seed;
}

/* "15043+1", "15043-0.5", "15043-inf", "15043=false" */
static bool parse_bias(const char *text, struct akunu_logit_bias *out)
{
    char id[12];
    size_t n = strspn(text, "0123456789");
    const char *value = text + n;
    int64_t token;
    double bias;
    if (n == 0 || n >= sizeof id)
        return false;
    memcpy(id, text, n);
    id[n] = '\0';
    if (!app_parse_int(id, &token) || token > INT32_MAX)
        return false;
    out->token = (akunu_token)token;
    if (strcmp(value, "-inf") == 0 || strcmp(value, "=false") == 0)
        out->bias = -INFINITY;
    else if (strcmp(value, "+inf") == 0)
        out->bias = INFINITY;
    else if ((*value == '+' || *value == '-') && app_parse_real(value, &bias))
        out->bias = (float)bias;
    else
        return false;
    return true;
}

static int set_bias(const struct app_options *o, struct app_sampling *s)
{
    for (size_t i = 0; i < o->text.logit_bias.n; i++)
        if (!parse_bias(o->text.logit_bias.values[i], &s->bias[i]))
            return app_fail_usage("--logit-bias %s: expected a token's id and what is added to its "
                                  "logit: 15043+1, 15043-0.5, 15043-inf (never), "
                                  "15043+inf (always)",
                                  o->text.logit_bias.values[i]);
    s->params.logit_bias = s->bias;
    s->params.n_logit_bias = o->text.logit_bias.n;
    return APP_EXIT_OK;
}

/* "none" drops those before it and the defaults. */
static int set_breakers(const struct app_options *o, struct app_sampling *s)
{
    size_t n = 0;
    if (o->text.dry_sequence_breakers.n == 0)
        return APP_EXIT_OK;
    for (size_t i = 0; i < o->text.dry_sequence_breakers.n; i++) {
        const char *text = o->text.dry_sequence_breakers.values[i];
        if (strcmp(text, "none") == 0) {
            n = 0;
            continue;
        }
        if (strlen(text) >= APP_BREAKER_BYTES)
            return app_fail_usage("--dry-sequence-breaker %s: expected 1 to 40 bytes", text);
        strcpy(s->breakers[n], text);
        app_unescape(s->breakers[n]);
        s->breaker_list[n] = s->breakers[n];
        n++;
    }
    s->breaker_list[n] = NULL;
    s->params.dry_sequence_breakers = s->breaker_list;
    return APP_EXIT_OK;
}

int app_sampling(const struct app_options *o, struct app_sampling *s)
{
    struct akunu_sampling_params *p = &s->params;
    *p = o->sampling;
    p->seed = (uint64_t)(o->text.seed >= 0 ? o->text.seed : make_random_seed());
    int code = set_bias(o, s);
    if (code == APP_EXIT_OK)
        code = set_breakers(o, s);
    if (code == APP_EXIT_OK && akunu_sampling_check(p) != AKUNU_OK)
        return app_fail_usage("%s", akunu_last_error());
    return code;
}

int app_check_bias(const struct app_sampling *s, const struct akunu_model *model)
{
    struct akunu_model_info info;
    akunu_model_get_info(model, &info, sizeof info);
    for (size_t i = 0; i < s->params.n_logit_bias; i++) {
        int code = app_check_ids("--logit-bias", &s->bias[i].token, 1, info.vocab_size);
        if (code != APP_EXIT_OK)
            return code;
    }
    return APP_EXIT_OK;
}

int app_check_stops(const struct app_options *o)
{
    for (size_t i = 0; i < o->text.stops.n; i++)
        if (!*o->text.stops.values[i])
            return app_fail_usage(
                "-r \"\": an empty text would end every answer; expected what the "
                "text is to end before");
    return APP_EXIT_OK;
}

struct akunu_generation_params app_generation(const struct app_options *o,
                                              const struct app_sampling *sampling)
{
    struct akunu_generation_params generation = o->generation;
    generation.stops = o->text.stops.values;
    generation.n_stops = o->text.stops.n;
    generation.sampling = &sampling->params;
    return generation;
}

static json_t *token_text(const struct akunu_tokenizer *tokenizer, akunu_token token)
{
    size_t n;
    char *bytes = app_token_bytes(tokenizer, token, AKUNU_CONTINUE, &n);
    json_t *text = bytes ? app_json_text(bytes, n) : NULL;
    free(bytes);
    return text;
}

json_t *app_json_logprobs(const struct akunu_tokenizer *tokenizer, akunu_token token, float logprob,
                          const struct akunu_logprob *top, size_t n_top)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n_top && top[i].token >= 0; i++) {
        json_t *one = json_pack("{s:i, s:o, s:o}", "id", (int)top[i].token, "text",
                                token_text(tokenizer, top[i].token), "logprob",
                                app_json_real((double)top[i].logprob));
        if (json_array_append_new(list, one) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return json_pack("{s:i, s:o, s:o, s:o}", "id", (int)token, "text", token_text(tokenizer, token),
                     "logprob", app_json_real((double)logprob), "top_logprobs", list);
}

/* ---- Members ------------------------------------------------------------ */
enum { IS_REAL_f32 = true, IS_REAL_i32 = false };
#define AKUNU_SAMPLING(type, member, initial, low, high, ...)                                      \
    { #member, offsetof(struct akunu_sampling_params, member), IS_REAL_##type, low, high },
const struct app_sampling_member app_sampling_members[] = {
#include "akunu/sampling.def"
};
const size_t app_n_sampling_members = sizeof app_sampling_members / sizeof *app_sampling_members;

double app_sampling_get(const struct akunu_sampling_params *p, const struct app_sampling_member *m)
{
    const void *at = (const char *)p + m->offset;
    return m->is_real ? (double)*(const float *)at : *(const int32_t *)at;
}

void app_sampling_set(struct akunu_sampling_params *p, const struct app_sampling_member *m,
                      double value)
{
    void *at = (char *)p + m->offset;
    if (m->is_real)
        *(float *)at = (float)value;
    else
        *(int32_t *)at = (int32_t)value;
}

bool app_sampling_list(const struct akunu_sampling_params *p, json_t *object)
{
    bool good = object != NULL;
    for (size_t i = 0; good && i < app_n_sampling_members; i++) {
        const struct app_sampling_member *m = &app_sampling_members[i];
        double value = app_sampling_get(p, m);
        good = json_object_set_new(object, m->name,
                                   m->is_real ? app_json_real(value) :
                                                json_integer((json_int_t)value)) == 0;
    }
    return good;
}
