/* models: prints the formats, architectures and types that this build reads, from the library's own
 * registries (docs/models.md is its output). Also --list-devices. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/message.h"
#include "cli/options.h"
#include "cli/output.h"

/* Where tables go, and whether as Markdown. */
struct table {
    struct cli_output *out;
    bool markdown;
};

static void print_section(const struct table *t, const char *title, const char *about,
                          const char *columns, const char *rule)
{
    if (t->markdown)
        cli_output_format(t->out, "\n## %s\n\n%s\n\n%s\n%s\n", title, about, columns, rule);
    else
        cli_output_format(t->out, "%s\n", title);
}

/* All names except the first one, which is printed already. */
static void format_other_names(const struct akunu_architecture_info *a, char *out, size_t capacity)
{
    size_t n = 0;
    out[0] = '\0';
    for (const char *const *name = a->names; *name && n < capacity; name++)
        if (strcmp(*name, a->name) != 0)
            n += (size_t)snprintf(out + n, capacity - n, "%s%s", n ? ", " : "", *name);
}

static void put_formats(const struct table *t)
{
    struct akunu_format_info f;
    print_section(t, "Formats", "What a file is follows from its content, never from its name.",
                  "| format | what files these are |", "|---|---|");
    for (size_t i = 0; akunu_format_at(i, &f, sizeof f) == AKUNU_OK; i++)
        cli_output_format(t->out, t->markdown ? "| `%s` | %s |\n" : "  %-14s %s\n", f.name,
                          f.about);
}

static void put_architectures(const struct table *t)
{
    struct akunu_architecture_info a;
    char others[256];
    print_section(t, "Architectures",
                  "`general.architecture` of GGUF, and the other names that files have for it: "
                  "`model_type` of config.json.",
                  "| architecture | models | other names |", "|---|---|---|");
    for (size_t i = 0; akunu_architecture_at(i, &a, sizeof a) == AKUNU_OK; i++) {
        format_other_names(&a, others, sizeof others);
        if (t->markdown)
            cli_output_format(t->out, "| `%s` | %s | %s |\n", a.name, a.about, others);
        else
            cli_output_format(t->out, "  %-14s %s%s%s%s\n", a.name, a.about, others[0] ? " (" : "",
                              others, others[0] ? ")" : "");
    }
}

static void put_quantizations(const struct table *t)
{
    struct akunu_quantization_info q;
    print_section(
        t, "Quantised folders",
        "What `quantization_config` of a config.json calls it in `quant_method`; MLX's is "
        "under `quantization`. "
        "Their weights run as they are: packed as the types A4, A5, A8, Q4_0, Q4_1, Q5_1, Q8_0 "
        "or MXFP4, or as rows of F8 or F16.",
        "| method | what is read |", "|---|---|");
    for (size_t i = 0; akunu_quantization_at(i, &q, sizeof q) == AKUNU_OK; i++)
        cli_output_format(t->out, t->markdown ? "| `%s` | %s |\n" : "  %-18s %s\n", q.name,
                          q.about);
}

static void put_types(const struct table *t)
{
    struct akunu_type_info y;
    print_section(
        t, "Types of weights",
        "Packed types are repacked for the kernels once, into the cache of packed weights; the "
        "others are used in place. Products are of 8-bit integers, exact within a block, or of "
        "floats.",
        "| type | bits per weight | block | products | packed |", "|---|---|---|---|---|");
    for (size_t i = 0; akunu_type_at(i, &y, sizeof y) == AKUNU_OK; i++) {
        double bits = 8.0 * y.block_bytes / y.block_elems;
        const char *products = y.integers ? "integers" : "floats";
        if (t->markdown)
            cli_output_format(t->out, "| `%s` | %.4g | %u | %s | %s |\n", y.name, bits,
                              y.block_elems, products, y.packed ? "yes" : "no");
        else
            cli_output_format(t->out, "  %-14s %6.4g bits per weight, products of %s%s\n", y.name,
                              bits, products, y.packed ? ", packed" : "");
    }
}

static void put_tables(const struct table *t)
{
    if (t->markdown)
        cli_output_text(t->out, "# What akunu reads\n\nMade by `akunu-cli models --markdown`, from "
                                "the library's registries.\n");
    put_formats(t);
    if (!t->markdown)
        cli_output_text(t->out, "\n");
    put_architectures(t);
    if (!t->markdown)
        cli_output_text(t->out, "\n");
    put_types(t);
    if (!t->markdown)
        cli_output_text(t->out, "\n");
    put_quantizations(t);
}

/* ---- JSON --------------------------------------------------------------- */
static json_t *names_of(const struct akunu_architecture_info *a)
{
    json_t *names = json_array();
    for (const char *const *name = a->names; *name; name++)
        json_array_append_new(names, json_string(*name));
    return names;
}

static json_t *make_json(void)
{
    json_t *formats = json_array(), *architectures = json_array(), *types = json_array(),
           *quantizations = json_array();
    struct akunu_quantization_info q;
    struct akunu_format_info f;
    struct akunu_architecture_info a;
    struct akunu_type_info y;
    for (size_t i = 0; akunu_format_at(i, &f, sizeof f) == AKUNU_OK; i++)
        json_array_append_new(formats, json_pack("{s:s, s:s}", "name", f.name, "about", f.about));
    for (size_t i = 0; akunu_architecture_at(i, &a, sizeof a) == AKUNU_OK; i++)
        json_array_append_new(architectures,
                              json_pack("{s:s, s:s, s:o, s:b}", "name", a.name, "about", a.about,
                                        "names", names_of(&a), "experts", a.experts));
    for (size_t i = 0; akunu_type_at(i, &y, sizeof y) == AKUNU_OK; i++)
        json_array_append_new(types,
                              json_pack("{s:s, s:i, s:i, s:b, s:b}", "name", y.name, "block_elems",
                                        (int)y.block_elems, "block_bytes", (int)y.block_bytes,
                                        "integers", y.integers, "packed", y.packed));
    for (size_t i = 0; akunu_quantization_at(i, &q, sizeof q) == AKUNU_OK; i++)
        json_array_append_new(quantizations,
                              json_pack("{s:s, s:s}", "name", q.name, "about", q.about));
    return json_pack("{s:o, s:o, s:o, s:o}", "formats", formats, "architectures", architectures,
                     "types", types, "quantizations", quantizations);
}

static int put_json(struct cli_output *out)
{
    json_t *all = make_json();
    char *text = all ? json_dumps(all, JSON_INDENT(2)) : NULL;
    json_decref(all);
    if (!text)
        return cli_fail_memory();
    cli_output_format(out, "%s\n", text);
    free(text);
    return CLI_EXIT_OK;
}

int cli_models(const struct cli_options *o)
{
    struct cli_output out = cli_output_stdout();
    const struct table table = { &out, o->markdown };
    int code = CLI_EXIT_OK;
    if (o->json)
        code = put_json(&out);
    else
        put_tables(&table);
    return cli_output_end(&out, code);
}

/* ---- Devices ------------------------------------------------------------ */
int cli_list_devices(void)
{
    struct akunu_device_info d;
    struct cli_output out = cli_output_stdout();
    enum akunu_status status;
    size_t i = 0;
    for (; (status = akunu_device_at(i, &d, sizeof d)) == AKUNU_OK; i++) {
        cli_output_format(&out, "%zu  %s (%s)%s\n", i, d.name, d.backend,
                          d.usable ? "" : ", not usable");
        cli_output_format(&out, "   %s, driver %s, %s\n", d.vendor, d.driver, d.version);
        cli_output_format(&out, "   memory %.1f GB, %.1f GB in one piece; %u units, %u MHz; %s\n",
                          (double)d.memory / 1e9, (double)d.max_allocation / 1e9, d.units, d.mhz,
                          d.features);
    }
    if (i == 0)
        cli_output_format(&out, "no OpenCL device: %s\n", akunu_last_error());
    return cli_output_end(&out, CLI_EXIT_OK);
}
