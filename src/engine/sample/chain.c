/* Parses sampler chains, written as names ("top_k;temperature") or letters ("kt"). Names and
 * letters are llama.cpp's, so its command lines work unchanged. */
#include "engine/sample/sampler_state.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* In the order of enum ak_sample_kind. Names are compared without '_' and '-'. */
static const struct {
    char letter;
    const char *name, *folded, *alias;
} samplers[] = {
    { 'e', "penalties", "penalties", NULL },
    { 'd', "dry", "dry", NULL },
    { 's', "top_n_sigma", "topnsigma", NULL },
    { 'k', "top_k", "topk", NULL },
    { 'y', "typ_p", "typp", "typ" },
    { 'p', "top_p", "topp", "nucleus" },
    { 'm', "min_p", "minp", NULL },
    { 'x', "xtc", "xtc", NULL },
    { 't', "temperature", "temperature", "temp" },
    { 'a', "adaptive_p", "adaptivep", NULL },
};

enum { N_SAMPLERS = sizeof samplers / sizeof *samplers };

enum { LIST_BYTES = 256 };

/* "e (penalties), d (dry), …" */
static const char *list_letters(char out[LIST_BYTES])
{
    size_t n = 0;
    for (int i = 0; i < N_SAMPLERS; i++)
        n += (size_t)snprintf(out + n, LIST_BYTES - n, "%s%c (%s)", i ? ", " : "",
                              samplers[i].letter, samplers[i].name);
    return out;
}

/* "penalties, dry, …" */
static const char *list_names(char out[LIST_BYTES])
{
    size_t n = 0;
    for (int i = 0; i < N_SAMPLERS; i++)
        n += (size_t)snprintf(out + n, LIST_BYTES - n, "%s%s", i ? ", " : "", samplers[i].name);
    return out;
}

static ak_status add_kind(struct ak_sample_chain *chain, int kind, const char *field,
                          struct ak_error *error)
{
    if (chain->n == AK_SAMPLE_CHAIN_MAX)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%s has more than %d samplers", field,
                       AK_SAMPLE_CHAIN_MAX);
    chain->kinds[chain->n++] = (enum ak_sample_kind)kind;
    return AKUNU_OK;
}

static ak_status parse_letters(const char *letters, struct ak_sample_chain *out,
                               struct ak_error *error)
{
    char known[LIST_BYTES];
    for (const char *p = letters; *p; p++) {
        int kind = 0;
        while (kind < N_SAMPLERS && samplers[kind].letter != *p)
            kind++;
        if (kind == N_SAMPLERS)
            return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                           "sampler_seq is '%s', and its letter '%c' is none of %s", letters, *p,
                           list_letters(known));
        AK_TRY(add_kind(out, kind, "sampler_seq", error));
    }
    return AKUNU_OK;
}

/* Kind of the sampler named by n bytes, N_SAMPLERS if unknown. '_', '-' and case are ignored. */
static int find_kind(const char *name, size_t n)
{
    char folded[16];
    size_t length = 0;
    for (size_t i = 0; i < n; i++) {
        if (name[i] == '_' || name[i] == '-')
            continue;
        if (length + 1 == sizeof folded)
            return N_SAMPLERS;
        folded[length++] = (char)tolower((unsigned char)name[i]);
    }
    folded[length] = '\0';
    int kind = 0;
    while (kind < N_SAMPLERS && strcmp(folded, samplers[kind].folded) != 0 &&
           (!samplers[kind].alias || strcmp(folded, samplers[kind].alias) != 0))
        kind++;
    return kind;
}

static ak_status parse_names(const char *names, struct ak_sample_chain *out, struct ak_error *error)
{
    char known[LIST_BYTES];
    for (const char *p = names; *p;) {
        size_t n = strcspn(p, ";");
        int kind = find_kind(p, n);
        if (kind == N_SAMPLERS)
            return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                           "samplers is '%s', and its '%.*s' is none of %s (with ';' between)",
                           names, (int)(n < 64 ? n : 64), p, list_names(known));
        AK_TRY(add_kind(out, kind, "samplers", error));
        p += n;
        p += *p == ';';
    }
    return AKUNU_OK;
}

ak_status ak_sample_parse_chain(const struct akunu_sampling_params *sampling,
                                struct ak_sample_chain *out, struct ak_error *error)
{
    out->n = 0;
    if (sampling->samplers && sampling->sampler_seq)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "samplers is '%s' and sampler_seq is '%s': only one of them can be given",
                       sampling->samplers, sampling->sampler_seq);
    if (sampling->sampler_seq)
        return parse_letters(sampling->sampler_seq, out, error);
    return parse_names(sampling->samplers ? sampling->samplers : AKUNU_SAMPLERS, out, error);
}
