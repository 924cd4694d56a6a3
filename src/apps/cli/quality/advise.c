/* advise: which type of a model fits into memory and is fast enough on this machine, what each
 * costs in quality, and the commands that make the recommended one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/files/facts.h"
#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/common/options.h"
#include "apps/common/output.h"
#include "apps/common/remote.h"

enum { CONTEXT = 4096, MAX_ROWS = 64, MAX_NAME = 64 };

static const double gigabyte = 1e9;
/* Nobody notices divergences below this one, nor two that differ by less than this factor: among
 * such types speed decides. */
static const double divergence_unnoticed = 0.003, divergence_factor = 1.25;
/* An importance matrix is worth its making if it lowers the divergence so much. */
static const double importance_gain = 0.95;

/* Why a type is no candidate. */
enum reason { KEPT, TOO_LARGE, TOO_SLOW, NOT_SMALLER, FEW_LEVELS, FOR_EXPERTS };
static const char *const reason_names[] = { NULL, "memory", "speed", "size", "levels", "experts" };

struct row {
    struct akunu_advice advice;
    bool is_source; /* the model as it is */
    bool uses_importance;
    double divergence; /* with an importance matrix if that helps; infinite: not known */
    enum reason reason;
};

struct work {
    const struct app_options *o;
    const char *path, *shown; /* of the model, for reading and in commands */
    struct cli_facts facts;
    struct akunu_advisor *advisor;
    uint64_t memory;
    bool has_experts;
    struct row rows[MAX_ROWS]; /* best quality first */
    size_t n;
    const struct row *chosen; /* NULL: none fits */
};

/* ---- Rows --------------------------------------------------------------- */
static void rate(struct row *row)
{
    const struct akunu_advice *a = &row->advice;
    double plain = a->divergence < 0.0 ? INFINITY : a->divergence,
           helped = a->importance_divergence < 0.0 ? INFINITY : a->importance_divergence;
    row->uses_importance = a->needs_importance || helped < plain * importance_gain;
    row->divergence = row->is_source ? 0.0 : row->uses_importance ? helped : plain;
}

static bool is_one_of(const char *type, const char *const *names)
{
    while (*names && strcmp(type, *names) != 0)
        names++;
    return *names != NULL;
}

static enum reason choose_reason(const struct work *work, const struct row *row)
{
    static const char *const few_levels[] = { "TQ1_0", "TQ2_0", "Q1_0", "Q2_0", NULL };
    const struct akunu_advice *a = &row->advice;
    if (!row->is_source && is_one_of(a->type, few_levels))
        return FEW_LEVELS;
    if (!row->is_source && strcmp(a->type, "MXFP4_MOE") == 0 && !work->has_experts)
        return FOR_EXPERTS;
    if (!row->is_source && a->file_bytes >= work->facts.info.bytes)
        return NOT_SMALLER;
    if (a->memory_bytes > work->memory)
        return TOO_LARGE;
    if (a->tokens_per_second > 0.0 && a->tokens_per_second < (double)work->o->quantize.min_speed)
        return TOO_SLOW;
    return KEPT;
}

static int add_row(struct work *work, const char *type)
{
    struct row *row = &work->rows[work->n];
    *row = (struct row){ .is_source = !type };
    if (work->n == MAX_ROWS)
        return APP_EXIT_OK;
    if (akunu_advisor_get_advice(work->advisor, type, &row->advice, sizeof row->advice) != AKUNU_OK)
        return app_fail_library();
    rate(row);
    row->reason = choose_reason(work, row);
    work->n++;
    return APP_EXIT_OK;
}

/* Best quality first, then the smaller one. */
static int compare_candidates(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->divergence != y->divergence)
        return x->divergence < y->divergence ? -1 : 1;
    if (isinf(x->divergence)) /* not known: more bits are better */
        return x->advice.file_bytes > y->advice.file_bytes ? -1 : 1;
    return x->advice.file_bytes < y->advice.file_bytes ? -1 : 1;
}

static int make_rows(struct work *work)
{
    struct app_progress progress = app_progress_begin();
    const char *type;
    int code = add_row(work, NULL);
    for (size_t i = 0; code == APP_EXIT_OK && (type = akunu_quantize_type_name(i)) != NULL; i++) {
        app_progress_show(&progress, "planning", (double)i / 32.0);
        code = app_is_interrupted() ? APP_EXIT_INTERRUPTED : add_row(work, type);
    }
    app_progress_end(&progress);
    qsort(work->rows, work->n, sizeof *work->rows, compare_candidates);
    return code;
}

/* Of the best type that is left, and those that are as good, the fastest. */
static void choose_type(struct work *work)
{
    const struct row *best = NULL;
    for (size_t i = 0; i < work->n; i++) {
        const struct row *row = &work->rows[i];
        if (row->reason != KEPT)
            continue;
        if (!best)
            work->chosen = best = row;
        double limit = fmax(best->divergence * divergence_factor, divergence_unnoticed);
        bool as_good = row == best || (row->divergence <= limit && !row->advice.requantizes);
        if (as_good && row->advice.tokens_per_second > work->chosen->advice.tokens_per_second)
            work->chosen = row;
    }
}

/* ---- Commands ----------------------------------------------------------- */
/* A word of a shell command, quoted if it has to be; to be freed. */
static char *quote(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=./:,@%";
    size_t n = strlen(text);
    char *out = malloc(4 * n + 3), *to = out;
    if (!out)
        return NULL;
    if (n > 0 && strspn(text, plain) == n)
        return strcpy(out, text);
    *to++ = '\'';
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\'')
            to = stpcpy(to, "'\\'");
        *to++ = text[i];
    }
    strcpy(to, "'");
    return out;
}

/* Name of the model without folder, extension, and the name of its own type: "qwen-bf16.gguf"
 * becomes "qwen". */
static void make_stem(const struct work *work, char out[MAX_NAME])
{
    static const char *const endings[] = { ".gguf", "-bf16", "-f16", "-f32",
                                           "-BF16", "-F16",  "-F32", NULL };
    size_t n = strlen(work->shown);
    while (n > 1 && work->shown[n - 1] == '/')
        n--;
    size_t at = n;
    while (at > 0 && work->shown[at - 1] != '/' && work->shown[at - 1] != ':')
        at--;
    snprintf(out, MAX_NAME, "%.*s", (int)(n - at), work->shown + at);
    for (size_t i = 0; endings[i]; i++) {
        size_t all = strlen(out), end = strlen(endings[i]);
        if (all > end && strcmp(out + all - end, endings[i]) == 0)
            out[all - end] = '\0';
    }
    if (!*out)
        snprintf(out, MAX_NAME, "model");
}

/* The commands that make the chosen type, as a list of texts; NULL: out of memory. */
static json_t *make_commands(const struct work *work)
{
    const struct row *row = work->chosen;
    json_t *commands = json_array();
    char stem[MAX_NAME], *type = NULL, *source = quote(work->shown), *text = NULL, *matrix = NULL,
                         *target = NULL, *raw = NULL;
    if (!row || row->is_source || !source)
        goto done;
    make_stem(work, stem);
    type = strdup(row->advice.type);
    for (char *p = type; p && *p; p++)
        *p = (char)(*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p);
    text = quote(work->o->prompt.file ? work->o->prompt.file : "");
    if (asprintf(&raw, "%s.imatrix.gguf", stem) < 0)
        raw = NULL;
    matrix = work->o->quantize.importance ? quote(work->o->quantize.importance) :
             raw                          ? quote(raw) :
                                            NULL;
    free(raw);
    if (asprintf(&raw, "%s-%s.gguf", stem, type ? type : "") < 0)
        raw = NULL;
    target = raw ? quote(raw) : NULL;
    if (!type || !text || !matrix || !target)
        goto done;
    if (row->uses_importance && !work->o->quantize.importance)
        json_array_append_new(commands, json_sprintf("akunu-cli imatrix -m %s %s%s -o %s", source,
                                                     work->o->prompt.file ? "-f " : "--own-text",
                                                     work->o->prompt.file ? text : "", matrix));
    json_array_append_new(commands,
                          json_sprintf("akunu-cli quantize %s %s --type %s%s%s%s", source, target,
                                       row->advice.type, row->uses_importance ? " --imatrix " : "",
                                       row->uses_importance ? matrix : "",
                                       row->advice.requantizes ? " --allow-requantize" : ""));
done:
    free(type);
    free(source);
    free(text);
    free(matrix);
    free(target);
    free(raw);
    return commands;
}

/* ---- Text --------------------------------------------------------------- */
static const char *show_size(double bytes, char out[32])
{
    if (bytes < 1e7)
        snprintf(out, 32, "%.2f MB", bytes / 1e6);
    else if (bytes < gigabyte)
        snprintf(out, 32, "%.0f MB", bytes / 1e6);
    else
        snprintf(out, 32, "%.2f GB", bytes / gigabyte);
    return out;
}

static void print_divergence(struct app_output *out, double value)
{
    if (value < 0.0 || isinf(value))
        app_output_format(out, " %10s", "-");
    else
        app_output_format(out, " %10.4f", value);
}

static void print_row(const struct work *work, const struct row *row, struct app_output *out)
{
    const struct akunu_advice *a = &row->advice;
    char name[MAX_NAME], size[32], memory[32], speed[32];
    snprintf(name, sizeof name, "%s%s", a->type, row->is_source ? " as it is" : "");
    if (a->tokens_per_second > 0.0)
        snprintf(speed, sizeof speed, "%.1f … %.1f", a->tokens_per_second,
                 a->end_tokens_per_second);
    else
        snprintf(speed, sizeof speed, "-");
    /* the ellipsis has three bytes and one column */
    int width = strchr(speed, '-') ? 15 : 17;
    app_output_format(out, "%s %-16s %9s %9s %*s", row == work->chosen ? "*" : " ", name,
                      show_size((double)a->file_bytes, size),
                      show_size((double)a->memory_bytes, memory), width, speed);
    print_divergence(out, a->needs_importance ? -1.0 : a->divergence);
    print_divergence(out, a->importance_divergence);
    app_output_text(out, "\n");
}

static void print_left_out(const struct work *work, enum reason reason, struct app_output *out)
{
    char shown[32];
    bool any = false;
    for (size_t i = 0; i < work->n; i++) {
        const struct row *row = &work->rows[i];
        if (row->reason != reason)
            continue;
        if (!any && reason == TOO_LARGE)
            app_output_format(out,
                              "more than %s of memory: ", show_size((double)work->memory, shown));
        else if (!any && reason == TOO_SLOW)
            app_output_format(out,
                              "slower than %g tokens/s: ", (double)work->o->quantize.min_speed);
        else if (!any)
            app_output_text(out, reason == NOT_SMALLER ? "not smaller than the model as it is: " :
                                 reason == FEW_LEVELS  ? "for models trained with as few levels: " :
                                                         "for mixtures of experts: ");
        app_output_format(out, "%s%s", any ? ", " : "", row->advice.type);
        if (row->is_source)
            app_output_text(out, " as it is");
        if (reason == TOO_LARGE)
            app_output_format(out, " (%s)", show_size((double)row->advice.memory_bytes, shown));
        if (reason == TOO_SLOW)
            app_output_format(out, " (%.1f)", row->advice.tokens_per_second);
        any = true;
    }
    if (any)
        app_output_text(out, "\n");
}

static void print_commands(const struct work *work, struct app_output *out)
{
    const struct akunu_advice *a = &work->chosen->advice;
    json_t *commands = make_commands(work);
    char shown[32];
    if (work->chosen->is_source)
        app_output_text(out, "\nThe model as it is: nothing is to be made.\n");
    else
        app_output_text(out, "\n");
    for (size_t i = 0; i < json_array_size(commands); i++)
        app_output_format(out, "%s\n", json_string_value(json_array_get(commands, i)));
    json_decref(commands);
    if (!work->chosen->is_source && work->chosen->uses_importance &&
        !work->o->quantize.importance) {
        uint64_t source = 0;
        for (size_t i = 0; i < work->n; i++)
            source = work->rows[i].is_source ? work->rows[i].advice.memory_bytes : source;
        app_aside("the importance matrix is measured with the model as it is, which takes %s of "
                  "memory; best on a text like those that the model is for (-f)",
                  show_size((double)source, shown));
    }
    if (a->requantizes)
        app_warn("the model is quantized already: quantizing it again loses more than the table "
                 "says; take a source in floats if there is one");
}

static void print_text(const struct work *work, struct app_output *out)
{
    const struct akunu_advice *any = &work->rows[0].advice;
    char memory[32], kv[32], scratch[32];
    app_output_format(out,
                      "up to %s of memory; context of %u tokens: KV cache %s, passes and "
                      "vocabulary %s\n\n",
                      show_size((double)work->memory, memory), (unsigned)any->context,
                      show_size((double)any->kv_bytes, kv),
                      show_size((double)any->scratch_bytes, scratch));
    app_output_format(out, "  %-16s %9s %9s %15s %10s %10s\n", "type", "file", "memory", "tokens/s",
                      "KL", "KL imatrix");
    for (size_t i = 0; i < work->n; i++)
        if (work->rows[i].reason == KEPT)
            print_row(work, &work->rows[i], out);
    app_output_text(out, "\n");
    for (int reason = TOO_LARGE; reason <= FOR_EXPERTS; reason++)
        print_left_out(work, (enum reason)reason, out);
    print_commands(work, out);
}

/* ---- JSON --------------------------------------------------------------- */
static json_t *real_or_null(double value)
{
    return value < 0.0 || isinf(value) ? json_null() : app_json_real(value);
}

static json_t *row_json(const struct row *row)
{
    const struct akunu_advice *a = &row->advice;
    return json_pack(
        "{s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o}", "type",
        a->type, "as_it_is", row->is_source, "file_bytes", app_json_unsigned(a->file_bytes),
        "memory_bytes", app_json_unsigned(a->memory_bytes), "weight_bytes",
        app_json_unsigned(a->weight_bytes), "kv_bytes", app_json_unsigned(a->kv_bytes),
        "scratch_bytes", app_json_unsigned(a->scratch_bytes), "token_weight_bytes",
        app_json_unsigned(a->token_weight_bytes), "tokens_per_second",
        a->tokens_per_second > 0.0 ? app_json_real(a->tokens_per_second) : json_null(),
        "end_tokens_per_second",
        a->tokens_per_second > 0.0 ? app_json_real(a->end_tokens_per_second) : json_null(),
        "divergence", a->needs_importance ? json_null() : real_or_null(a->divergence),
        "importance_divergence", real_or_null(a->importance_divergence), "needs_importance",
        a->needs_importance, "requantizes", a->requantizes, "left_out",
        row->reason == KEPT ? json_null() : json_string(reason_names[row->reason]));
}

static void print_advice_json(const struct work *work, struct app_output *out)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < work->n; i++)
        json_array_append_new(rows, row_json(&work->rows[i]));
    json_t *value = json_pack(
        "{s:o, s:o, s:i, s:s, s:s, s:o, s:o, s:o, s:o}", "model",
        app_json_text(work->shown, strlen(work->shown)), "memory", app_json_unsigned(work->memory),
        "context", (int)work->rows[0].advice.context, "type_k",
        app_kv_type_name(work->o->session.k_type), "type_v",
        app_kv_type_name(work->o->session.v_type), "min_speed",
        work->o->quantize.min_speed > 0.0f ? app_json_real((double)work->o->quantize.min_speed) :
                                             json_null(),
        "recommended", work->chosen ? json_string(work->chosen->advice.type) : json_null(), "types",
        rows, "commands", make_commands(work));
    if (app_json_print(out, value))
        app_output_text(out, "\n");
}

/* ---- The command -------------------------------------------------------- */
/* Says what comes nearest. */
static int fail_none(const struct work *work)
{
    const struct row *smallest = NULL, *fastest = NULL;
    char needed[32], memory[32], weights[32], kv[32];
    for (size_t i = 0; i < work->n; i++) {
        const struct row *row = &work->rows[i];
        if ((row->reason == TOO_LARGE || row->reason == TOO_SLOW) &&
            (!smallest || row->advice.memory_bytes < smallest->advice.memory_bytes))
            smallest = row;
        if (row->reason == TOO_SLOW &&
            (!fastest || row->advice.tokens_per_second > fastest->advice.tokens_per_second))
            fastest = row;
    }
    show_size((double)work->memory, memory);
    if (fastest)
        return app_fail("no type that fits into %s is expected to reach %g tokens/s: the fastest, "
                        "%s, reaches %.1f",
                        memory, (double)work->o->quantize.min_speed, fastest->advice.type,
                        fastest->advice.tokens_per_second);
    if (!smallest)
        return app_fail("no type makes this model smaller");
    return app_fail(
        "nothing fits into %s: the smallest, %s, needs %s (weights %s, KV cache of %u "
        "tokens %s; -c, -ctk and -ctv make it smaller)",
        memory, smallest->advice.type, show_size((double)smallest->advice.memory_bytes, needed),
        show_size((double)smallest->advice.weight_bytes, weights),
        (unsigned)smallest->advice.context, show_size((double)smallest->advice.kv_bytes, kv));
}

static int read_facts(struct work *work)
{
    struct akunu_meta m;
    struct akunu_chip chip;
    struct akunu_file *file = akunu_file_open_with(work->path, work->o->model.override_kv.values);
    int code = file ? cli_read_facts(file, &work->facts) : app_fail_library();
    for (size_t i = 0; code == APP_EXIT_OK && i < work->facts.info.n_metadata; i++)
        if (akunu_file_get_meta(file, i, &m, sizeof m) == AKUNU_OK &&
            (strstr(m.key, "expert_count") || strstr(m.key, "num_experts") ||
             strstr(m.key, "num_local_experts")))
            work->has_experts = true;
    akunu_file_free(file);
    work->facts.type = NULL; /* the file's */
    work->memory = work->o->model.memory;
    if (work->memory == 0 && akunu_get_chip(&chip, sizeof chip) == AKUNU_OK)
        work->memory = chip.memory_bytes / 5 * 4;
    return code;
}

static int print_advice(struct work *work, struct app_output *out)
{
    struct akunu_advisor_params params;
    struct akunu_session_params session = work->o->session;
    int code = read_facts(work);
    if (code != APP_EXIT_OK)
        return code;
    if (session.context == 0)
        session.context = work->facts.context > 0 && work->facts.context < CONTEXT ?
                              (uint32_t)work->facts.context :
                              CONTEXT;
    akunu_advisor_params_default(&params, sizeof params);
    params.session = &session;
    params.override_kv = work->o->model.override_kv.values;
    params.ignore_keys = work->o->model.ignore_keys.values;
    params.cpu = work->o->load.cpu;
    work->advisor = akunu_advisor_new(work->path, &params);
    code = work->advisor ? make_rows(work) : app_fail_library();
    if (code == APP_EXIT_OK) {
        choose_type(work);
        if (work->o->output.json)
            print_advice_json(work, out);
        else if (work->chosen)
            print_text(work, out);
        if (!work->chosen)
            code = fail_none(work);
    }
    akunu_advisor_free(work->advisor);
    return code;
}

int cli_advise(const struct app_options *o)
{
    struct app_output out = app_output_stdout();
    struct app_remote_header header = { 0 };
    struct work *work = calloc(1, sizeof *work);
    char *path = NULL;
    int code = work ? APP_EXIT_OK : app_fail_memory();
    if (code == APP_EXIT_OK && o->model.name && app_is_remote(o->model.name))
        code = app_remote_header(o, o->model.name, &header);
    if (code == APP_EXIT_OK && !header.path)
        code = app_model_path(o, o->model.name, &path);
    if (code == APP_EXIT_OK) {
        work->o = o;
        work->path = header.path ? header.path : path;
        work->shown = header.path ? o->model.name : path;
        code = print_advice(work, &out);
    }
    app_remote_header_free(&header);
    free(path);
    free(work);
    return app_output_end(&out, code);
}
