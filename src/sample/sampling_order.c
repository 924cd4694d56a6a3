#include "sample/sampling_order.h"

#include <ctype.h>
#include <string.h>

/* In the order of enum ak_sampling_step. Names are compared without '_' and '-'. */
static const struct {
    char letter;
    const char *name, *plain, *other;
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

static const char default_order[] = "edskypmxt";

static ak_status add(struct ak_sampling_order *order, int step, const char *field,
                     struct ak_error *error)
{
    if (order->n == AK_SAMPLING_MOST_STEPS)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%s has more than %d samplers", field,
                       AK_SAMPLING_MOST_STEPS);
    order->steps[order->n++] = (enum ak_sampling_step)step;
    return AKUNU_OK;
}

static ak_status from_letters(const char *letters, struct ak_sampling_order *out,
                              struct ak_error *error)
{
    for (const char *p = letters; *p; p++) {
        int step = 0;
        while (step < N_SAMPLERS && samplers[step].letter != *p)
            step++;
        if (step == N_SAMPLERS)
            return ak_fail(
                error, AKUNU_ERROR_ARGUMENT,
                "sampler_seq is '%s', and its letter '%c' is none of e (penalties), d (dry), s "
                "(top_n_sigma), k (top_k), "
                "y (typ_p), p (top_p), m (min_p), x (xtc), t (temperature), a (adaptive_p)",
                letters, *p);
        AK_TRY(add(out, step, "sampler_seq", error));
    }
    return AKUNU_OK;
}

/* The name in the n bytes at `name`, without '_' and '-' and in small letters. */
static int named(const char *name, size_t n)
{
    char plain[16];
    size_t length = 0;
    for (size_t i = 0; i < n; i++) {
        if (name[i] == '_' || name[i] == '-')
            continue;
        if (length + 1 == sizeof plain)
            return N_SAMPLERS;
        plain[length++] = (char)tolower((unsigned char)name[i]);
    }
    plain[length] = '\0';
    int step = 0;
    while (step < N_SAMPLERS && strcmp(plain, samplers[step].plain) != 0 &&
           (!samplers[step].other || strcmp(plain, samplers[step].other) != 0))
        step++;
    return step;
}

static ak_status from_names(const char *names, struct ak_sampling_order *out,
                            struct ak_error *error)
{
    for (const char *p = names; *p;) {
        size_t n = strcspn(p, ";");
        int step = named(p, n);
        if (step == N_SAMPLERS)
            return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                           "samplers is '%s', and its '%.*s' is none of penalties, dry, "
                           "top_n_sigma, top_k, typ_p, top_p, min_p, xtc, "
                           "temperature, adaptive_p (with ';' between)",
                           names, (int)(n < 64 ? n : 64), p);
        AK_TRY(add(out, step, "samplers", error));
        p += n;
        p += *p == ';';
    }
    return AKUNU_OK;
}

ak_status ak_sampling_order(const struct akunu_sampling *sampling, struct ak_sampling_order *out,
                            struct ak_error *error)
{
    out->n = 0;
    if (sampling->samplers && sampling->sampler_seq)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "samplers is '%s' and sampler_seq is '%s': only one of them can be given",
                       sampling->samplers, sampling->sampler_seq);
    if (sampling->samplers)
        return from_names(sampling->samplers, out, error);
    return from_letters(sampling->sampler_seq ? sampling->sampler_seq : default_order, out, error);
}
