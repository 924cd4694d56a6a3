/* A pickle machine that makes data and calls nothing. It has the opcodes of protocol 2 that
 * torch.save() writes. REDUCE knows some callables by name: an empty collections.OrderedDict, and
 * the functions of torch._utils that make tensors, of which it makes descriptions. What any other
 * callable would return is a value without contents.
 *
 * Each opcode makes at most one value and refers to others by index, and no value is walked into,
 * so neither memos nor cycles can make more of a pickle than its bytes. */
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "files/weights/torch/torch.h"
#include "base/array.h"

#define MARK UINT32_MAX /* on the stack, in place of a value */

enum { PROTOCOL = 2, GLOBAL_BYTES_MAX = 128 };

enum global {
    ORDERED_DICT,
    REBUILD_TENSOR,
    REBUILD_OLD_TENSOR,
    REBUILD_PARAMETER,
    REBUILD_PARAMETER_WITH_STATE,
    FLOAT_STORAGE,
    HALF_STORAGE,
    BFLOAT16_STORAGE,
    UNKNOWN_GLOBAL
};

static const struct {
    const char *module, *name;
} globals[] = {
    [ORDERED_DICT] = { "collections", "OrderedDict" },
    [REBUILD_TENSOR] = { "torch._utils", "_rebuild_tensor_v2" },
    [REBUILD_OLD_TENSOR] = { "torch._utils", "_rebuild_tensor" },
    [REBUILD_PARAMETER] = { "torch._utils", "_rebuild_parameter" },
    [REBUILD_PARAMETER_WITH_STATE] = { "torch._utils", "_rebuild_parameter_with_state" },
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

static ak_status fail_pickle(const struct machine *m, const char *what)
{
    return ak_fail(m->error, AKUNU_ERROR_FORMAT, "pickle: byte %llu, opcode 0x%02llx: %s",
                   (unsigned long long)m->at, (unsigned long long)m->opcode, what);
}

static ak_status fail_end(const struct machine *m)
{
    return fail_pickle(m, "the pickle ends inside it");
}

static ak_status grow_list(void **list, size_t *capacity, size_t n, size_t size,
                           struct ak_error *error)
{
    return ak_reserve_size(list, capacity, n, 1, size) ?
               AKUNU_OK :
               ak_fail_memory(error, "a pickle's values", 0);
}

/* ---- Stack -------------------------------------------------------------- */
static ak_status push(struct machine *m, uint32_t value)
{
    AK_TRY(
        grow_list((void **)&m->stack, &m->stack_capacity, m->n_stack, sizeof *m->stack, m->error));
    m->stack[m->n_stack++] = value;
    return AKUNU_OK;
}

static ak_status push_new(struct machine *m, struct ak_pickle_value value)
{
    struct ak_pickle *p = m->p;
    AK_TRY(grow_list((void **)&p->values, &p->values_capacity, p->n_values, sizeof *p->values,
                     m->error));
    if (p->n_values >= MARK - 1)
        return fail_pickle(m, "too many values");
    value.at = m->at;
    p->values[p->n_values++] = value;
    return push(m, (uint32_t)(p->n_values - 1));
}

static ak_status push_int(struct machine *m, enum ak_pickle_kind kind, int64_t value)
{
    return push_new(m, (struct ak_pickle_value){ .kind = kind, .as.integer = value });
}

static ak_status push_other(struct machine *m, const char *what)
{
    return push_new(m, (struct ak_pickle_value){ .kind = AK_PICKLE_OTHER, .as.what = what });
}

static ak_status pop(struct machine *m, uint32_t *out)
{
    if (m->n_stack == 0 || m->stack[m->n_stack - 1] == MARK)
        return fail_pickle(m, "the stack has no value for it");
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
        return fail_pickle(m, "the stack has no mark for it");
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
        return push_other(m, "an integer of more than 64 bits");
    for (int i = 0; i < n; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    if (n > 0 && n < 8 && bytes[n - 1] & 0x80)
        value |= UINT64_MAX << (8 * n);
    return push_int(m, AK_PICKLE_INT, (int64_t)value);
}

/* Skips n bytes of a value that no tensor needs. */
static ak_status skip(struct machine *m, uint64_t n, const char *what)
{
    const uint8_t *bytes;
    return ak_cursor_read_bytes(&m->c, n, &bytes) ? push_other(m, what) : fail_end(m);
}

/* Skips bytes after their number, of one byte or four. */
static ak_status skip_counted(struct machine *m, bool is_short, const char *what)
{
    uint8_t small = 0;
    uint32_t large = 0;
    if (is_short ? !ak_cursor_read_u8(&m->c, &small) : !ak_cursor_read_u32(&m->c, &large))
        return fail_end(m);
    return skip(m, is_short ? small : large, what);
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
        return fail_pickle(m, "too many values");
    for (size_t i = 0; i < n; i++) {
        AK_TRY(grow_list((void **)&p->children, &p->children_capacity, p->n_children,
                         sizeof *p->children, m->error));
        p->children[p->n_children++] = m->stack[first + i];
    }
    return push_new(m, value);
}

static ak_status make_short_tuple(struct machine *m, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (m->n_stack <= i || m->stack[m->n_stack - 1 - i] == MARK)
            return fail_pickle(m, "the stack has too few values for it");
    m->n_stack -= n;
    return make_tuple(m, m->n_stack, n);
}

/* The value on top of the stack; NULL: there is none. */
static struct ak_pickle_value *top(const struct machine *m)
{
    return m->n_stack == 0 || m->stack[m->n_stack - 1] == MARK ?
               NULL :
               &m->p->values[m->stack[m->n_stack - 1]];
}

/* Elements for the list on top of the stack, which drops them. */
static ak_status append_items(const struct machine *m)
{
    const struct ak_pickle_value *list = top(m);
    return list && list->kind == AK_PICKLE_OTHER ? AKUNU_OK :
                                                   fail_pickle(m, "elements for what is no list");
}

/* Adds the pairs of values from stack[first] on to the dict on top of the stack. */
static ak_status set_items(struct machine *m, size_t first, size_t n)
{
    struct ak_pickle *p = m->p;
    const struct ak_pickle_value *dict = top(m);
    if (!dict || (dict->kind != AK_PICKLE_DICT && dict->kind != AK_PICKLE_OBJECT &&
                  dict->kind != AK_PICKLE_OTHER))
        return fail_pickle(m, "items for what is no dict");
    if (n % 2 != 0)
        return fail_pickle(m, "a key without a value");
    if (dict->kind != AK_PICKLE_DICT)
        return AKUNU_OK; /* of a class that is not loaded */
    for (size_t i = 0; i < n; i += 2) {
        AK_TRY(grow_list((void **)&p->items, &p->items_capacity, p->n_items, sizeof *p->items,
                         m->error));
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
        return fail_pickle(m, "the stack has no value for it");
    if (index > m->n_memo)
        return fail_pickle(m, "a memo's index is beyond the next one");
    if (index == m->n_memo) {
        AK_TRY(
            grow_list((void **)&m->memo, &m->memo_capacity, m->n_memo, sizeof *m->memo, m->error));
        m->n_memo++;
    }
    m->memo[index] = m->stack[m->n_stack - 1];
    return AKUNU_OK;
}

static ak_status get_memo(struct machine *m, uint64_t index)
{
    return index < m->n_memo ? push(m, m->memo[index]) : fail_pickle(m, "no memo has this index");
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
    return fail_pickle(m, "the name of a global is too long");
}

static bool equals(const char *bytes, size_t n, const char *text)
{
    return strlen(text) == n && memcmp(bytes, text, n) == 0;
}

static ak_status read_global(struct machine *m)
{
    const char *module, *name;
    size_t n_module, n_name;
    AK_TRY(read_line(m, &module, &n_module));
    AK_TRY(read_line(m, &name, &n_name));
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (equals(module, n_module, globals[i].module) && equals(name, n_name, globals[i].name))
            return push_int(m, AK_PICKLE_GLOBAL, (int64_t)i);
    return push_int(m, AK_PICKLE_GLOBAL, UNKNOWN_GLOBAL);
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
        return fail_pickle(m, "a persistent id that is no storage");
    if (type->as.integer == UNKNOWN_GLOBAL)
        return push_other(m, "a tensor of other numbers than floats of 16 and 32 bits");
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

/* Copies the sizes. False: one is negative, or the product overflows. */
static bool set_shape(const struct machine *m, const struct ak_pickle_value *sizes,
                      struct ak_pickle_value *out, uint64_t *n)
{
    *n = 1;
    out->as.tensor.n_dims = sizes->as.tuple.n;
    for (uint32_t d = 0; d < sizes->as.tuple.n; d++) {
        int64_t size = int_of(m, sizes, d);
        if (size < 0 || !ak_mul_u64(*n, (uint64_t)size, n) || *n > INT64_MAX)
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

/* What keeps a tensor with these sizes from being read; NULL: nothing. */
static const char *find_obstacle(const struct machine *m, const struct ak_pickle_value *strides,
                                 uint64_t n, struct ak_pickle_value *t)
{
    if (n == 0)
        return "a tensor without elements";
    t->as.tensor.is_transposed = !is_contiguous(m, strides, t);
    return t->as.tensor.is_transposed && !is_transposed(m, strides, t) ?
               "a tensor with gaps; expected rows or columns one after another" :
               NULL;
}

/* (storage, first element, sizes, strides), of later versions with requires_grad, hooks and
 * metadata after them */
static ak_status make_tensor(struct machine *m, const struct ak_pickle_value *args)
{
    const struct ak_pickle_value *other = get_element(m, args, 0, AK_PICKLE_OTHER);
    if (other)
        return push_other(m, other->as.what);
    const struct ak_pickle_value *storage = get_element(m, args, 0, AK_PICKLE_STORAGE),
                                 *first = get_element(m, args, 1, AK_PICKLE_INT),
                                 *sizes = get_element(m, args, 2, AK_PICKLE_TUPLE),
                                 *strides = get_element(m, args, 3, AK_PICKLE_TUPLE);
    struct ak_pickle_value value = { .kind = AK_PICKLE_TENSOR };
    uint64_t n;
    if (!storage || !first || !sizes || !strides || args->as.tuple.n < 4 || first->as.integer < 0)
        return fail_pickle(m, "a tensor of other than a storage, an offset, sizes and strides");
    if (sizes->as.tuple.n != strides->as.tuple.n)
        return fail_pickle(m, "a tensor with other numbers of sizes and of strides");
    if (sizes->as.tuple.n > AK_PICKLE_DIMS_MAX)
        return push_other(m, "a tensor of more than 4 dimensions");
    if (!set_shape(m, sizes, &value, &n))
        return fail_pickle(m, "a tensor of a negative size, or of more than 2^63 elements");
    const char *obstacle = find_obstacle(m, strides, n, &value);
    if (obstacle)
        return push_other(m, obstacle);
    value.as.tensor.storage = m->p->children[args->as.tuple.first];
    value.as.tensor.first = (uint64_t)first->as.integer;
    if (value.as.tensor.first > storage->as.storage.n ||
        n > storage->as.storage.n - value.as.tensor.first)
        return fail_pickle(m, "a tensor that leaves its storage");
    return push_new(m, value);
}

static ak_status reduce(struct machine *m)
{
    uint32_t args = 0, callable = 0;
    AK_TRY(pop(m, &args));
    AK_TRY(pop(m, &callable));
    const struct ak_pickle_value *f = value_of(m, callable), *a = value_of(m, args);
    if ((f->kind != AK_PICKLE_GLOBAL && f->kind != AK_PICKLE_OTHER) || a->kind != AK_PICKLE_TUPLE)
        return fail_pickle(m, "a call of something else than a global, or without arguments");
    switch (f->kind == AK_PICKLE_GLOBAL ? f->as.integer : UNKNOWN_GLOBAL) {
    case REBUILD_TENSOR:
    case REBUILD_OLD_TENSOR: return make_tensor(m, a);
    case REBUILD_PARAMETER:
    case REBUILD_PARAMETER_WITH_STATE: /* (its tensor, requires_grad, hooks[, attributes]) */
        return a->as.tuple.n > 0 ? push(m, m->p->children[a->as.tuple.first]) :
                                   fail_pickle(m, "a parameter without a tensor");
    case ORDERED_DICT:
        if (a->as.tuple.n == 0)
            return push_new(m, (struct ak_pickle_value){ .kind = AK_PICKLE_DICT });
        break;
    default: break;
    }
    return push_other(m, "what a function would return, which is not called");
}

/* An object of a class that is not loaded. */
static ak_status make_object(struct machine *m)
{
    uint32_t args = 0, class = 0;
    AK_TRY(pop(m, &args));
    AK_TRY(pop(m, &class));
    return push_new(
        m, (struct ak_pickle_value){ .kind = AK_PICKLE_OBJECT, .as.state = AK_PICKLE_NO_STATE });
}

/* The attributes of an object. Those of an ordered dict, which modules keep their versions in, are
 * dropped. */
static ak_status build(struct machine *m)
{
    uint32_t state = 0;
    AK_TRY(pop(m, &state));
    struct ak_pickle_value *object = top(m);
    if (!object || (object->kind != AK_PICKLE_DICT && object->kind != AK_PICKLE_OBJECT &&
                    object->kind != AK_PICKLE_OTHER))
        return fail_pickle(m, "a state of what is no object");
    if (object->kind == AK_PICKLE_OBJECT)
        object->as.state = state;
    return AKUNU_OK;
}

/* POP, which also takes a mark off. */
static ak_status drop(struct machine *m)
{
    if (m->n_stack == 0)
        return fail_pickle(m, "the stack has no value for it");
    m->n_stack--;
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
    return m->n_stack == 0 ? AKUNU_OK : fail_pickle(m, "values are left on the stack");
}

static ak_status run_marked(struct machine *m)
{
    size_t first = 0, n = 0;
    AK_TRY(pop_to_mark(m, &first, &n));
    switch (m->opcode) {
    case 't': return make_tuple(m, first, n);
    case 'u': return set_items(m, first, n);
    case 'e': return append_items(m);
    default: return AKUNU_OK; /* POP_MARK */
    }
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
    case ']': return push_other(m, "a list");
    case '0': return drop(m);
    case 't':
    case 'u':
    case 'e':
    case '1': return run_marked(m);
    case 'a': AK_TRY(pop(m, &(uint32_t){ 0 })); return append_items(m);
    case 'G': return skip(m, 8, "a real number");
    case 'U': return skip_counted(m, true, "bytes");
    case 'T': return skip_counted(m, false, "bytes");
    case 0x8b: return skip_counted(m, false, "an integer of more than 64 bits");
    case 0x81: return make_object(m);
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

static ak_status run_opcodes(struct machine *m)
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
    ak_status status = run_opcodes(&m);
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
