/* A pickle machine that makes data and calls nothing. It has the opcodes of protocol 2 that
 * torch.save() writes for a dict of tensors. REDUCE knows two callables by name: an empty
 * collections.OrderedDict, and torch._utils._rebuild_tensor_v2, which makes a tensor's description.
 *
 * Each opcode makes at most one value and refers to others by index, and no value is walked into,
 * so neither memos nor cycles can make more of a pickle than its bytes. */
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "weights/torch/torch.h"

#define MARK UINT32_MAX /* on the stack, in place of a value */

enum { PROTOCOL = 2, GLOBAL_BYTES_MAX = 128 };

enum global { ORDERED_DICT, REBUILD_TENSOR, FLOAT_STORAGE, HALF_STORAGE, BFLOAT16_STORAGE };

static const struct {
    const char *module, *name;
} globals[] = {
    [ORDERED_DICT] = { "collections", "OrderedDict" },
    [REBUILD_TENSOR] = { "torch._utils", "_rebuild_tensor_v2" },
    [FLOAT_STORAGE] = { "torch", "FloatStorage" },
    [HALF_STORAGE] = { "torch", "HalfStorage" },
    [BFLOAT16_STORAGE] = { "torch", "BFloat16Storage" },
};

struct machine {
    struct ak_pickle *p;
    struct ak_cursor c;
    uint64_t at;     /* offset of the current opcode */
    uint64_t opcode; /* for messages */
    uint32_t *stack, *memo;
    size_t n_stack, n_memo, stack_capacity, memo_capacity;
    bool is_done;
    struct ak_error *error;
};

static ak_status fail(const struct machine *m, const char *what)
{
    return ak_fail(m->error, AKUNU_ERROR_FORMAT, "pickle: byte %llu, opcode 0x%02llx: %s",
                   (unsigned long long)m->at, (unsigned long long)m->opcode, what);
}

static ak_status fail_end(const struct machine *m)
{
    return fail(m, "the pickle ends inside it");
}

static ak_status grow(void **list, size_t *capacity, size_t n, size_t size, struct ak_error *error)
{
    if (n < *capacity)
        return AKUNU_OK;
    size_t wanted = *capacity ? 2 * *capacity : 256;
    void *grown = ak_realloc(*list, wanted, size);
    if (!grown)
        return ak_fail_memory(error, "a pickle's values", wanted * size);
    *list = grown;
    *capacity = wanted;
    return AKUNU_OK;
}

/* ---- Stack -------------------------------------------------------------- */
static ak_status push(struct machine *m, uint32_t value)
{
    AK_TRY(grow((void **)&m->stack, &m->stack_capacity, m->n_stack, sizeof *m->stack, m->error));
    m->stack[m->n_stack++] = value;
    return AKUNU_OK;
}

static ak_status push_new(struct machine *m, struct ak_pickle_value value)
{
    struct ak_pickle *p = m->p;
    AK_TRY(
        grow((void **)&p->values, &p->values_capacity, p->n_values, sizeof *p->values, m->error));
    if (p->n_values >= MARK - 1)
        return fail(m, "too many values");
    value.at = m->at;
    p->values[p->n_values++] = value;
    return push(m, (uint32_t)(p->n_values - 1));
}

static ak_status push_int(struct machine *m, enum ak_pickle_kind kind, int64_t value)
{
    return push_new(m, (struct ak_pickle_value){ .kind = kind, .as.integer = value });
}

static ak_status pop(struct machine *m, uint32_t *out)
{
    if (m->n_stack == 0 || m->stack[m->n_stack - 1] == MARK)
        return fail(m, "the stack has no value for it");
    *out = m->stack[--m->n_stack];
    return AKUNU_OK;
}

/* Values above the topmost mark: sets where they begin, and takes them and the mark off. They
 * stay readable until the next push. */
static ak_status pop_to_mark(struct machine *m, size_t *first, size_t *n)
{
    size_t at = m->n_stack;
    while (at > 0 && m->stack[at - 1] != MARK)
        at--;
    if (at == 0)
        return fail(m, "the stack has no mark for it");
    *first = at;
    *n = m->n_stack - at;
    m->n_stack = at - 1;
    return AKUNU_OK;
}

static const struct ak_pickle_value *value_of(const struct machine *m, uint32_t i)
{
    return &m->p->values[i];
}

/* ---- Plain data --------------------------------------------------------- */
static ak_status read_int(struct machine *m, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        uint8_t byte;
        if (!ak_cursor_read_u8(&m->c, &byte))
            return fail_end(m);
        value |= (uint64_t)byte << (8 * i);
    }
    /* BININT is signed, the shorter ones are not */
    return push_int(m, AK_PICKLE_INT, bytes == 4 ? (int64_t)(int32_t)value : (int64_t)value);
}

/* LONG1: at most 8 bytes of two's complement. */
static ak_status read_long(struct machine *m)
{
    uint8_t n;
    const uint8_t *bytes;
    uint64_t value = 0;
    if (!ak_cursor_read_u8(&m->c, &n) || !ak_cursor_read_bytes(&m->c, n, &bytes))
        return fail_end(m);
    if (n > sizeof value)
        return fail(m, "an integer of more than 64 bits");
    for (int i = 0; i < n; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    if (n > 0 && n < 8 && bytes[n - 1] & 0x80)
        value |= UINT64_MAX << (8 * n);
    return push_int(m, AK_PICKLE_INT, (int64_t)value);
}

static ak_status read_string(struct machine *m)
{
    uint32_t n;
    const uint8_t *bytes;
    if (!ak_cursor_read_u32(&m->c, &n) || !ak_cursor_read_bytes(&m->c, n, &bytes))
        return fail_end(m);
    return push_new(m, (struct ak_pickle_value){ .kind = AK_PICKLE_STRING,
                                                 .as.string = { (const char *)bytes, n } });
}

static ak_status make_tuple(struct machine *m, size_t first, size_t n)
{
    struct ak_pickle *p = m->p;
    struct ak_pickle_value value = { .kind = AK_PICKLE_TUPLE,
                                     .as.tuple = { (uint32_t)p->n_children, (uint32_t)n } };
    if (p->n_children + n >= MARK)
        return fail(m, "too many values");
    for (size_t i = 0; i < n; i++) {
        AK_TRY(grow((void **)&p->children, &p->children_capacity, p->n_children,
                    sizeof *p->children, m->error));
        p->children[p->n_children++] = m->stack[first + i];
    }
    return push_new(m, value);
}

static ak_status make_short_tuple(struct machine *m, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (m->n_stack <= i || m->stack[m->n_stack - 1 - i] == MARK)
            return fail(m, "the stack has too few values for it");
    m->n_stack -= n;
    return make_tuple(m, m->n_stack, n);
}

/* Adds the pairs of values from stack[first] on to the dict on top of the stack. */
static ak_status set_items(struct machine *m, size_t first, size_t n)
{
    struct ak_pickle *p = m->p;
    if (m->n_stack == 0 || m->stack[m->n_stack - 1] == MARK ||
        value_of(m, m->stack[m->n_stack - 1])->kind != AK_PICKLE_DICT)
        return fail(m, "items for what is no dict");
    if (n % 2 != 0)
        return fail(m, "a key without a value");
    for (size_t i = 0; i < n; i += 2) {
        AK_TRY(
            grow((void **)&p->items, &p->items_capacity, p->n_items, sizeof *p->items, m->error));
        p->items[p->n_items++] =
            (struct ak_pickle_item){ m->stack[m->n_stack - 1], m->stack[first + i],
                                     m->stack[first + i + 1] };
    }
    return AKUNU_OK;
}

static ak_status set_item(struct machine *m)
{
    uint32_t unused;
    AK_TRY(pop(m, &unused));
    AK_TRY(pop(m, &unused));
    return set_items(m, m->n_stack, 2);
}

/* ---- Memo --------------------------------------------------------------- */
/* Picklers number their memos one by one, so an index far beyond them is no pickler's. */
static ak_status put_memo(struct machine *m, uint64_t index)
{
    if (m->n_stack == 0 || m->stack[m->n_stack - 1] == MARK)
        return fail(m, "the stack has no value for it");
    if (index > m->n_memo)
        return fail(m, "a memo's index is beyond the next one");
    if (index == m->n_memo) {
        AK_TRY(grow((void **)&m->memo, &m->memo_capacity, m->n_memo, sizeof *m->memo, m->error));
        m->n_memo++;
    }
    m->memo[index] = m->stack[m->n_stack - 1];
    return AKUNU_OK;
}

static ak_status get_memo(struct machine *m, uint64_t index)
{
    return index < m->n_memo ? push(m, m->memo[index]) : fail(m, "no memo has this index");
}

static ak_status use_memo(struct machine *m, int bytes, bool puts)
{
    uint8_t small = 0;
    uint32_t large = 0;
    if (bytes == 1 ? !ak_cursor_read_u8(&m->c, &small) : !ak_cursor_read_u32(&m->c, &large))
        return fail_end(m);
    uint64_t index = bytes == 1 ? small : large;
    return puts ? put_memo(m, index) : get_memo(m, index);
}

/* ---- Globals, storages, tensors ----------------------------------------- */
static ak_status read_line(struct machine *m, const char **out, size_t *n)
{
    uint8_t byte = 0;
    *out = (const char *)m->c.next;
    for (*n = 0; *n < GLOBAL_BYTES_MAX; ++*n) {
        if (!ak_cursor_read_u8(&m->c, &byte))
            return fail_end(m);
        if (byte == '\n')
            return AKUNU_OK;
    }
    return fail(m, "the name of a global is too long");
}

static bool equals(const char *bytes, size_t n, const char *text)
{
    return strlen(text) == n && memcmp(bytes, text, n) == 0;
}

static ak_status read_global(struct machine *m)
{
    const char *module, *name;
    size_t n_module, n_name;
    char shown_module[AK_SHOW_BYTES], shown_name[AK_SHOW_BYTES];
    AK_TRY(read_line(m, &module, &n_module));
    AK_TRY(read_line(m, &name, &n_name));
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (equals(module, n_module, globals[i].module) && equals(name, n_name, globals[i].name))
            return push_int(m, AK_PICKLE_GLOBAL, (int64_t)i);
    return ak_fail(m->error, AKUNU_ERROR_UNSUPPORTED,
                   "pickle: byte %llu: the global %s.%s is none of a Whisper checkpoint's; nothing "
                   "in it was executed",
                   (unsigned long long)m->at, ak_show(module, n_module, shown_module),
                   ak_show(name, n_name, shown_name));
}

/* The i-th element of a tuple, if it has this kind; else NULL. */
static const struct ak_pickle_value *get_element(const struct machine *m,
                                                 const struct ak_pickle_value *tuple, uint32_t i,
                                                 enum ak_pickle_kind kind)
{
    if (tuple->kind != AK_PICKLE_TUPLE || i >= tuple->as.tuple.n)
        return NULL;
    const struct ak_pickle_value *value = value_of(m, m->p->children[tuple->as.tuple.first + i]);
    return value->kind == kind ? value : NULL;
}

/* ("storage", its type, the entry's name, a device, elements) */
static ak_status make_storage(struct machine *m)
{
    static const enum ak_quant_type types[] = { [FLOAT_STORAGE] = AK_QUANT_F32,
                                                [HALF_STORAGE] = AK_QUANT_F16,
                                                [BFLOAT16_STORAGE] = AK_QUANT_BF16 };
    uint32_t id = 0;
    AK_TRY(pop(m, &id));
    const struct ak_pickle_value *tuple = value_of(m, id),
                                 *word = get_element(m, tuple, 0, AK_PICKLE_STRING),
                                 *type = get_element(m, tuple, 1, AK_PICKLE_GLOBAL),
                                 *key = get_element(m, tuple, 2, AK_PICKLE_STRING),
                                 *n = get_element(m, tuple, 4, AK_PICKLE_INT);
    if (!word || !equals(word->as.string.bytes, word->as.string.n, "storage") || !type ||
        type->as.integer < FLOAT_STORAGE || !key || !n || n->as.integer < 0 ||
        tuple->as.tuple.n != 5)
        return fail(m, "a persistent id that is no storage of floats");
    struct ak_pickle_value value = { .kind = AK_PICKLE_STORAGE };
    value.as.storage.type = types[type->as.integer];
    value.as.storage.key = m->p->children[tuple->as.tuple.first + 2];
    value.as.storage.n = (uint64_t)n->as.integer;
    return push_new(m, value);
}

static int64_t int_of(const struct machine *m, const struct ak_pickle_value *tuple, uint32_t i)
{
    const struct ak_pickle_value *value = get_element(m, tuple, i, AK_PICKLE_INT);
    return value ? value->as.integer : -1;
}

/* Copies the sizes. False: one is not positive, or the product overflows. */
static bool set_shape(const struct machine *m, const struct ak_pickle_value *sizes,
                      struct ak_pickle_value *out, uint64_t *n)
{
    *n = 1;
    out->as.tensor.n_dims = sizes->as.tuple.n;
    for (uint32_t d = 0; d < sizes->as.tuple.n; d++) {
        int64_t size = int_of(m, sizes, d);
        if (size < 1 || !ak_mul_u64(*n, (uint64_t)size, n) || *n > INT64_MAX)
            return false;
        out->as.tensor.shape[d] = (uint64_t)size;
    }
    return true;
}

/* Whether the strides are those of rows one after another; those of dimensions of 1 may be any. */
static bool is_contiguous(const struct machine *m, const struct ak_pickle_value *strides,
                          const struct ak_pickle_value *t)
{
    uint64_t n = 1;
    for (uint32_t d = t->as.tensor.n_dims; d-- > 0; n *= t->as.tensor.shape[d])
        if (t->as.tensor.shape[d] > 1 && int_of(m, strides, d) != (int64_t)n)
            return false;
    return true;
}

/* Or those of columns one after another, as OpenAI's checkpoints have them. */
static bool is_transposed(const struct machine *m, const struct ak_pickle_value *strides,
                          const struct ak_pickle_value *t)
{
    return t->as.tensor.n_dims == 2 && int_of(m, strides, 0) == 1 &&
           int_of(m, strides, 1) == (int64_t)t->as.tensor.shape[0];
}

/* (storage, first element, sizes, strides, requires_grad, hooks) */
static ak_status make_tensor(struct machine *m, const struct ak_pickle_value *args)
{
    const struct ak_pickle_value *storage = get_element(m, args, 0, AK_PICKLE_STORAGE),
                                 *first = get_element(m, args, 1, AK_PICKLE_INT),
                                 *sizes = get_element(m, args, 2, AK_PICKLE_TUPLE),
                                 *strides = get_element(m, args, 3, AK_PICKLE_TUPLE);
    struct ak_pickle_value value = { .kind = AK_PICKLE_TENSOR };
    uint64_t n;
    if (!storage || !first || !sizes || !strides || args->as.tuple.n != 6 || first->as.integer < 0)
        return fail(m, "a tensor of other than a storage, an offset, sizes and strides");
    if (sizes->as.tuple.n < 1 || sizes->as.tuple.n > AK_PICKLE_DIMS_MAX ||
        sizes->as.tuple.n != strides->as.tuple.n)
        return fail(m, "a tensor of no or of more than 4 dimensions");
    if (!set_shape(m, sizes, &value, &n))
        return fail(m, "a tensor without elements, or of more than 2^63");
    value.as.tensor.is_transposed = !is_contiguous(m, strides, &value);
    if (value.as.tensor.is_transposed && !is_transposed(m, strides, &value))
        return fail(m, "a tensor with gaps; expected rows or columns one after another");
    value.as.tensor.storage = m->p->children[args->as.tuple.first];
    value.as.tensor.first = (uint64_t)first->as.integer;
    if (value.as.tensor.first > storage->as.storage.n ||
        n > storage->as.storage.n - value.as.tensor.first)
        return fail(m, "a tensor that leaves its storage");
    return push_new(m, value);
}

static ak_status reduce(struct machine *m)
{
    uint32_t args = 0, callable = 0;
    AK_TRY(pop(m, &args));
    AK_TRY(pop(m, &callable));
    const struct ak_pickle_value *f = value_of(m, callable), *a = value_of(m, args);
    if (f->kind == AK_PICKLE_GLOBAL && a->kind == AK_PICKLE_TUPLE) {
        if (f->as.integer == REBUILD_TENSOR)
            return make_tensor(m, a);
        if (f->as.integer == ORDERED_DICT && a->as.tuple.n == 0)
            return push_new(m, (struct ak_pickle_value){ .kind = AK_PICKLE_DICT });
    }
    return fail(m, "a call of something else than a tensor's or an empty dict's making");
}

/* The attributes of an ordered dict, which modules keep their versions in: dropped. */
static ak_status build(struct machine *m)
{
    uint32_t state = 0;
    AK_TRY(pop(m, &state));
    if (value_of(m, state)->kind != AK_PICKLE_DICT || m->n_stack == 0 ||
        m->stack[m->n_stack - 1] == MARK ||
        value_of(m, m->stack[m->n_stack - 1])->kind != AK_PICKLE_DICT)
        return fail(m, "a state of other than an ordered dict");
    return AKUNU_OK;
}

/* ---- Opcodes ------------------------------------------------------------ */
static ak_status read_protocol(struct machine *m)
{
    uint8_t version;
    if (!ak_cursor_read_u8(&m->c, &version))
        return fail_end(m);
    return version == PROTOCOL ? AKUNU_OK :
                                 ak_fail(m->error, AKUNU_ERROR_UNSUPPORTED,
                                         "pickle: protocol %u; torch.save() writes 2", version);
}

static ak_status stop(struct machine *m)
{
    AK_TRY(pop(m, &m->p->root));
    m->is_done = true;
    return m->n_stack == 0 ? AKUNU_OK : fail(m, "values are left on the stack");
}

static ak_status run_marked(struct machine *m)
{
    size_t first = 0, n = 0;
    AK_TRY(pop_to_mark(m, &first, &n));
    return m->opcode == 't' ? make_tuple(m, first, n) : set_items(m, first, n);
}

static ak_status run_opcode(struct machine *m)
{
    switch (m->opcode) {
    case 0x80: return read_protocol(m);
    case '.': return stop(m);
    case '(': return push(m, MARK);
    case '}': return push_new(m, (struct ak_pickle_value){ .kind = AK_PICKLE_DICT });
    case ')': return make_tuple(m, m->n_stack, 0);
    case 0x85: return make_short_tuple(m, 1);
    case 0x86: return make_short_tuple(m, 2);
    case 0x87: return make_short_tuple(m, 3);
    case 't':
    case 'u': return run_marked(m);
    case 's': return set_item(m);
    case 'N': return push_int(m, AK_PICKLE_NONE, 0);
    case 0x88: return push_int(m, AK_PICKLE_BOOL, 1);
    case 0x89: return push_int(m, AK_PICKLE_BOOL, 0);
    case 'K': return read_int(m, 1);
    case 'M': return read_int(m, 2);
    case 'J': return read_int(m, 4);
    case 0x8a: return read_long(m);
    case 'X': return read_string(m);
    case 'q': return use_memo(m, 1, true);
    case 'r': return use_memo(m, 4, true);
    case 'h': return use_memo(m, 1, false);
    case 'j': return use_memo(m, 4, false);
    case 'c': return read_global(m);
    case 'Q': return make_storage(m);
    case 'R': return reduce(m);
    case 'b': return build(m);
    default:
        return ak_fail(m->error, AKUNU_ERROR_UNSUPPORTED,
                       "pickle: byte %llu: opcode 0x%02llx is none of a Whisper checkpoint's",
                       (unsigned long long)m->at, (unsigned long long)m->opcode);
    }
}

static ak_status run(struct machine *m)
{
    while (!m->is_done) {
        uint8_t opcode;
        m->at = ak_cursor_offset(&m->c);
        if (!ak_cursor_read_u8(&m->c, &opcode))
            return ak_fail(m->error, AKUNU_ERROR_FORMAT,
                           "pickle: the end (byte %llu) comes before the opcode STOP",
                           (unsigned long long)m->at);
        m->opcode = opcode;
        AK_TRY(run_opcode(m));
    }
    return AKUNU_OK;
}

ak_status ak_pickle_read(const uint8_t *data, uint64_t n, struct ak_pickle *out,
                         struct ak_error *error)
{
    struct machine m = { .p = out, .c = ak_cursor_init(data, n), .error = error };
    *out = (struct ak_pickle){ .root = 0 };
    ak_status status = run(&m);
    ak_free(m.stack);
    ak_free(m.memo);
    return status;
}

void ak_pickle_free(struct ak_pickle *p)
{
    ak_free(p->values);
    ak_free(p->items);
    ak_free(p->children);
    *p = (struct ak_pickle){ .root = 0 };
}

const struct ak_pickle_value *ak_pickle_get(const struct ak_pickle *p, uint32_t dict,
                                            const char *key)
{
    for (size_t i = p->n_items; i-- > 0;) {
        const struct ak_pickle_value *name = &p->values[p->items[i].key];
        if (p->items[i].dict == dict && name->kind == AK_PICKLE_STRING &&
            equals(name->as.string.bytes, name->as.string.n, key))
            return &p->values[p->items[i].value];
    }
    return NULL;
}
