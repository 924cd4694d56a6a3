/* infill: the texts before and after a gap, and the prompt after which the model fills it. The rest
 * is as in run.c. */
#include <stdlib.h>
#include <string.h>

#include "apps/cli/run/run.h"

/* Reads a text as it is: a newline at the end of a file is a part of the code. */
static int read_part(const char *text, const char *flag, const char *file, struct app_text *out)
{
    if (file)
        return app_read_file(flag, file, out);
    out->n = text ? strlen(text) : 0;
    out->bytes = strdup(text ? text : "");
    return out->bytes ? APP_EXIT_OK : app_fail_memory();
}

int cli_infill_read(struct cli_run *run)
{
    const struct app_options *o = run->options;
    if (!o->prompt.in_prefix && !o->prompt.in_prefix_file && !o->prompt.in_suffix &&
        !o->prompt.in_suffix_file)
        return app_fail_usage("nothing around the gap: give the text before it with --in-prefix "
                              "TEXT or --in-prefix-file FILE, and the text after it with "
                              "--in-suffix TEXT or --in-suffix-file FILE");
    if (o->prompt.in_prefix_file && o->prompt.in_suffix_file &&
        strcmp(o->prompt.in_prefix_file, "-") == 0 && strcmp(o->prompt.in_suffix_file, "-") == 0)
        return app_fail_usage("--in-prefix-file - and --in-suffix-file -: only one of them can be "
                              "standard input");
    int code =
        read_part(o->prompt.in_prefix, "--in-prefix-file", o->prompt.in_prefix_file, &run->prompt);
    if (code == APP_EXIT_OK)
        code = read_part(o->prompt.in_suffix, "--in-suffix-file", o->prompt.in_suffix_file,
                         &run->suffix);
    if (code == APP_EXIT_OK && run->prompt.n == 0 && run->suffix.n == 0)
        return app_fail_usage("the texts before and after the gap are both empty");
    return code;
}

/* Tokens of the context that stay free for the middle: those of -n, at most half of the context;
 * without -n a quarter. */
static size_t count_reserved(int64_t max_tokens, uint32_t context)
{
    if (max_tokens < 0)
        return context / 4;
    return max_tokens < context / 2 ? (size_t)max_tokens : context / 2;
}

int cli_infill_tokenize(struct cli_run *run)
{
    struct akunu_infill infill;
    uint32_t context = akunu_session_context(run->loaded.session);
    size_t capacity = context;
    akunu_infill_default(&infill, sizeof infill);
    infill.prefix = run->prompt.bytes;
    infill.n_prefix_bytes = run->prompt.n;
    infill.suffix = run->suffix.bytes;
    infill.n_suffix_bytes = run->suffix.n;
    infill.suffix_first = run->options->prompt.spm_infill;
    infill.max_tokens = context - count_reserved(run->options->generation.max_tokens, context);
    run->ids = malloc(capacity * sizeof *run->ids);
    if (!run->ids)
        return app_fail_memory();
    int64_t n = akunu_tokenizer_encode_infill(run->loaded.tokenizer, &infill, run->ids, capacity);
    if (n < 0)
        return app_fail_library();
    run->n_ids = (size_t)n;
    if (infill.n_prefix_dropped > 0 || infill.n_suffix_dropped > 0)
        app_warn("the context holds %u tokens: left out are the first %zu of the text before the "
                 "gap and the last %zu of the text after it (-c sets its size)",
                 context, infill.n_prefix_dropped, infill.n_suffix_dropped);
    return APP_EXIT_OK;
}
