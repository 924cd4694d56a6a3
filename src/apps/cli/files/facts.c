/* Collects what a model's file says of the model. */
#include "apps/cli/files/facts.h"

#include <string.h>

#include "apps/common/input.h"
#include "apps/common/message.h"
#include "apps/common/output.h"

enum { MAX_TYPES = 64 };

const char *cli_find_meta(const struct akunu_file *file, const char *key, size_t *n)
{
    struct akunu_meta m;
    for (size_t i = 0; akunu_file_get_meta(file, i, &m, sizeof m) == AKUNU_OK; i++)
        if (m.type == AKUNU_META_STRING && strcmp(m.key, key) == 0) {
            *n = (size_t)m.n;
            return m.string;
        }
    return NULL;
}

/* Numbers that GGUF and config.json call differently. */
static void read_sizes(const struct akunu_file *file, struct cli_facts *out)
{
    struct akunu_meta m;
    for (size_t i = 0; i < out->info.n_metadata; i++) {
        if (akunu_file_get_meta(file, i, &m, sizeof m) != AKUNU_OK)
            return;
        uint64_t value = m.type == AKUNU_META_UINT                 ? m.unsigned_integer :
                         m.type == AKUNU_META_INT && m.integer > 0 ? (uint64_t)m.integer :
                                                                     0;
        if (app_ends_with(m.key, ".context_length") ||
            app_ends_with(m.key, "max_position_embeddings"))
            out->context = value;
        if (app_ends_with(m.key, ".embedding_length") || strcmp(m.key, "hidden_size") == 0)
            out->width = value;
    }
}

int cli_read_facts(const struct akunu_file *file, struct cli_facts *out)
{
    struct {
        const char *name;
        uint64_t bytes;
    } types[MAX_TYPES] = { { "", 0 } };
    size_t n_types = 0, best = 0;
    *out = (struct cli_facts){ .type = "" };
    if (akunu_file_get_info(file, &out->info, sizeof out->info) != AKUNU_OK)
        return app_fail_library();
    for (size_t i = 0; i < out->info.n_tensors; i++) {
        struct akunu_tensor_info t;
        uint64_t n = 1;
        size_t k = 0;
        if (akunu_file_get_tensor(file, i, &t, sizeof t) != AKUNU_OK)
            return app_fail_library();
        for (unsigned d = 0; d < t.n_dims; d++)
            n *= t.shape[d];
        if (strcmp(out->info.format, "gguf") == 0)
            out->n_parameters += n;
        while (k < n_types && strcmp(types[k].name, t.type) != 0)
            k++;
        if (k == n_types && n_types < MAX_TYPES)
            types[n_types++].name = t.type;
        if (k < n_types)
            types[k].bytes += t.bytes;
        if (k < n_types && types[k].bytes > types[best].bytes)
            best = k;
    }
    out->type = types[best].name;
    read_sizes(file, out);
    return APP_EXIT_OK;
}

json_t *cli_json_known(uint64_t value)
{
    return value ? app_json_unsigned(value) : json_null();
}

json_t *cli_facts_json(const struct cli_facts *f, const char *path)
{
    return json_pack("{s:o, s:s, s:s, s:s, s:o, s:o, s:o}", "path",
                     app_json_text(path, strlen(path)), "format", f->info.format, "architecture",
                     f->info.architecture, "type", f->type, "bytes",
                     app_json_unsigned(f->info.bytes), "n_parameters",
                     cli_json_known(f->n_parameters), "context", cli_json_known(f->context));
}
