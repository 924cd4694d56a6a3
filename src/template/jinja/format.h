/* What "%-08.3f" and "{:>8,.2f}" ask for. */
#ifndef AK_TEMPLATE_JINJA_FORMAT_H
#define AK_TEMPLATE_JINJA_FORMAT_H

#include "template/jinja/exec.h"

enum { AK_J_WIDTH_MAX = 1 << 20, AK_J_PRECISION_MAX = 512 };

struct ak_jspec {
    uint32_t fill;  /* 0: a blank, or what goes with align */
    char align;     /* '<' '>' '=' '^', 0: the kind's own */
    char sign;      /* '+' ' ', 0: only a minus */
    bool alternate; /* # */
    bool upper;
    char grouping; /* ',' '_' or 0 */
    int64_t width;
    int64_t precision; /* -1: none */
    char conversion;   /* d, s, f …; 0: none */
};

/* A number or a text, filled up to its width. */
void ak_j_put_formatted_int(struct ak_jenv *j, struct ak_jout *out, int64_t value,
                            const struct ak_jspec *spec);
void ak_j_put_formatted_float(struct ak_jenv *j, struct ak_jout *out, double value,
                              const struct ak_jspec *spec);
void ak_j_put_formatted_text(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *text,
                             const struct ak_jspec *spec);

/* Digits of a width or precision at *at, which is moved; fails where they go beyond `max`. */
int64_t ak_j_read_width(struct ak_jenv *j, const struct ak_jstr *s, size_t *at, int64_t max);

#endif
