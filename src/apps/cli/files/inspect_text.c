/* Prints a model file's description for people. */
#include "apps/cli/files/inspect.h"

#include <stdio.h>
#include <string.h>

#include "apps/common/message.h"

enum { SHOWN_BYTES = 100, SHOWN_ELEMENTS = 6 }; /* shown of a long string, of a long array */

static void print_string(const struct akunu_meta *m, struct app_output *out)
{
    size_t n = m->n > SHOWN_BYTES ? SHOWN_BYTES : (size_t)m->n;
    if (n < m->n) /* do not split a UTF-8 character */
        for (int i = 0; i < 3 && ((unsigned char)m->string[n] & 0xc0) == 0x80; i++)
            n--;
    app_output_text(out, "\"");
    app_output_escaped(out, m->string, n);
    app_output_text(out, n < m->n ? "…\"" : "\"");
    if (n < m->n)
        app_output_format(out, " (%llu bytes)", (unsigned long long)m->n);
}

static void print_scalar(const struct akunu_meta *m, struct app_output *out)
{
    switch (m->type) {
    case AKUNU_META_BOOL: app_output_text(out, m->boolean ? "true" : "false"); break;
    case AKUNU_META_INT: app_output_format(out, "%lld", (long long)m->integer); break;
    case AKUNU_META_UINT:
        app_output_format(out, "%llu", (unsigned long long)m->unsigned_integer);
        break;
    case AKUNU_META_FLOAT: app_output_format(out, "%.8g", m->number); break;
    case AKUNU_META_STRING: print_string(m, out); break;
    case AKUNU_META_ARRAY: app_output_text(out, "[…]"); break;
    }
}

static int print_value(const struct akunu_file *file, size_t i, const struct akunu_meta *m,
                       struct app_output *out)
{
    if (m->type != AKUNU_META_ARRAY) {
        print_scalar(m, out);
        return APP_EXIT_OK;
    }
    app_output_text(out, "[");
    for (uint64_t j = 0; j < m->n && j < SHOWN_ELEMENTS; j++) {
        struct akunu_meta element;
        if (akunu_file_get_meta_element(file, i, j, &element, sizeof element) != AKUNU_OK)
            return app_fail_library();
        app_output_text(out, j ? ", " : "");
        print_scalar(&element, out);
    }
    if (m->n > SHOWN_ELEMENTS)
        app_output_format(out, ", … %llu in all", (unsigned long long)m->n);
    app_output_text(out, "]");
    return APP_EXIT_OK;
}

static int print_metadata(const struct akunu_file *file, size_t n, struct app_output *out)
{
    size_t width = 0;
    struct akunu_meta m;
    for (size_t i = 0; i < n; i++)
        if (akunu_file_get_meta(file, i, &m, sizeof m) == AKUNU_OK && strlen(m.key) > width &&
            strlen(m.key) <= 48)
            width = strlen(m.key);

    app_output_format(out, "\nMetadata (%zu)\n", n);
    for (size_t i = 0; i < n && out->error == 0; i++) {
        if (akunu_file_get_meta(file, i, &m, sizeof m) != AKUNU_OK)
            return app_fail_library();
        size_t n_key = strlen(m.key);
        app_output_text(out, "  ");
        app_output_escaped(out, m.key, n_key);
        app_output_format(out, "%*s", n_key < width ? (int)(width - n_key) + 2 : 2, "");
        int code = print_value(file, i, &m, out);
        if (code != APP_EXIT_OK)
            return code;
        app_output_text(out, "\n");
    }
    return APP_EXIT_OK;
}

/* "[576, 1536]" */
static void shape_of(const struct akunu_tensor_info *t, char *out, size_t capacity)
{
    size_t n = 0;
    for (unsigned d = 0; d < t->n_dims && n < capacity; d++)
        n += (size_t)snprintf(out + n, capacity - n, "%s%llu", d ? ", " : "[",
                              (unsigned long long)t->shape[d]);
    if (n < capacity)
        snprintf(out + n, capacity - n, "%s", t->n_dims ? "]" : "[]");
}

static int print_tensors(const struct akunu_file *file, size_t n, bool hashes,
                         struct app_output *out)
{
    struct akunu_tensor_info t;
    size_t width = 4, type_width = 6;
    for (size_t i = 0; i < n; i++) {
        if (akunu_file_get_tensor(file, i, &t, sizeof t) != AKUNU_OK)
            continue;
        size_t n_name = strlen(t.name), n_type = strlen(t.type);
        width = n_name > width && n_name <= 48 ? n_name : width;
        type_width = n_type > type_width ? n_type : type_width;
    }

    app_output_format(out, "\nTensors (%zu)\n", n);
    if (n > 0)
        app_output_format(out, "  %-*s  %-*s %-18s %14s %14s  %s\n", (int)width, "name",
                          (int)type_width, "type", "shape", "bytes", "offset", "canonical name");
    for (size_t i = 0; i < n && out->error == 0; i++) {
        char shape[96], hash[65];
        if (akunu_file_get_tensor(file, i, &t, sizeof t) != AKUNU_OK)
            return app_fail_library();
        int code = cli_tensor_hash(file, i, hashes, hash);
        if (code != APP_EXIT_OK)
            return code;
        shape_of(&t, shape, sizeof shape);
        size_t n_name = strlen(t.name);
        app_output_text(out, "  ");
        app_output_escaped(out, t.name, n_name);
        app_output_format(out, "%*s  %-*s %-18s %14llu %14llu  %s%s%s\n",
                          n_name < width ? (int)(width - n_name) : 0, "", (int)type_width, t.type,
                          shape, (unsigned long long)t.bytes, (unsigned long long)t.offset,
                          t.canonical ? t.canonical : "-", hashes ? "  " : "", hash);
    }
    return APP_EXIT_OK;
}

static void print_totals(const struct akunu_file *file, size_t n_tensors, struct app_output *out)
{
    struct cli_type_total totals[CLI_MAX_TYPES];
    size_t n = cli_type_totals(file, n_tensors, totals), width = 6;
    for (size_t i = 0; i < n; i++)
        width = strlen(totals[i].type) > width ? strlen(totals[i].type) : width;
    if (n > 0)
        app_output_text(out, "\nTotals by type\n");
    for (size_t i = 0; i < n; i++)
        app_output_format(out, "  %-*s %6llu tensors %12.1f M values %12.1f MB\n", (int)width,
                          totals[i].type, (unsigned long long)totals[i].n_tensors,
                          (double)totals[i].n_values / 1e6, (double)totals[i].bytes / 1e6);
}

int cli_inspect_text(const struct akunu_file *file, const char *path, bool hashes,
                     struct app_output *out)
{
    struct akunu_file_info info;
    if (akunu_file_get_info(file, &info, sizeof info) != AKUNU_OK)
        return app_fail_library();
    app_output_escaped(out, path, strlen(path));
    app_output_format(out, "\n  format        %s\n  architecture  ", info.format);
    app_output_escaped(out, info.architecture, strlen(info.architecture));
    app_output_format(out, "\n  size          %.1f MB\n", (double)info.bytes / 1e6);
    int code = print_metadata(file, info.n_metadata, out);
    if (code == APP_EXIT_OK)
        code = print_tensors(file, info.n_tensors, hashes, out);
    if (code == APP_EXIT_OK)
        print_totals(file, info.n_tensors, out);
    return code;
}
