#include "grammar/machine.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* MOST_EXPANDED: frames looked at for one byte. An object of as many members as a schema may
 * have takes three a member. */
enum { FIRST_HEADS = 1024, MOST_FRAMES = 1 << 23, MOST_EXPANDED = 1 << 15 };

static uint32_t mix(uint32_t a, uint32_t b)
{
    uint64_t x = ((uint64_t)a << 32 | b) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(x >> 32) ^ (uint32_t)x;
}

bool ak_machine_room(struct ak_machine *m, void *array, uint32_t *room, uint32_t n, size_t more,
                     size_t size)
{
    void **at = array, *grown;
    if (*room - n >= more)
        return true;
    size_t wanted = ((size_t)n + more) * 2 + 16;
    grown = wanted < UINT32_MAX / 2 ? ak_realloc(*at, wanted, size) : NULL;
    if (!grown) {
        m->failed = true;
        return false;
    }
    *at = grown;
    *room = (uint32_t)wanted;
    return true;
}

bool ak_machine_init(struct ak_machine *m, const struct ak_grammar *g, const int32_t *token_ids,
                     uint32_t longest)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < g->n_members; i++)
        most = g->members[i].n > most ? g->members[i].n : most;
    *m = (struct ak_machine){ .g = g, .token_ids = token_ids, .longest = longest };
    m->frame_mask = m->place_mask = m->seen_mask = FIRST_HEADS - 1;
    m->frame_heads = ak_alloc(FIRST_HEADS, sizeof *m->frame_heads);
    m->place_heads = ak_alloc(FIRST_HEADS, sizeof *m->place_heads);
    m->seen_heads = ak_alloc(FIRST_HEADS, sizeof *m->seen_heads);
    m->word_scratch = ak_alloc(2 + most / 64, sizeof *m->word_scratch);
    if (!m->frame_heads || !m->place_heads || !m->seen_heads || !m->word_scratch ||
        !ak_machine_room(m, &m->frames, &m->room_frames, 0, 2, sizeof *m->frames) ||
        !ak_machine_room(m, &m->places, &m->room_places, 0, 1, sizeof *m->places) ||
        !ak_machine_room(m, &m->seen, &m->room_seen, 0, 1, sizeof *m->seen))
        return false;
    m->frames[AK_FRAME_NONE] = m->frames[AK_FRAME_END] = (struct ak_frame){ 0 };
    m->places[AK_PLACE_NOWHERE] =
        (struct ak_place){ .like = { AK_PLACE_NOWHERE, AK_PLACE_NOWHERE } };
    m->seen[0] = (struct ak_seen){ 0 };
    m->n_frames = 2;
    m->n_places = m->n_seen = 1;
    return true;
}

void ak_machine_free(struct ak_machine *m)
{
    for (uint32_t i = 0; i < m->n_places; i++) {
        ak_free(m->places[i].step);
        ak_free(m->places[i].step_near);
    }
    ak_free(m->frames);
    ak_free(m->frame_heads);
    ak_free(m->places);
    ak_free(m->place_heads);
    ak_free(m->pool);
    ak_free(m->seen);
    ak_free(m->seen_heads);
    ak_free(m->words);
    ak_free(m->word_scratch);
    ak_free(m->work);
    ak_free(m->set);
    *m = (struct ak_machine){ 0 };
}

/* ---- frames ------------------------------------------------------------- */
static uint32_t frame_hash(const struct ak_machine *m, uint32_t part, uint32_t at, uint32_t rest)
{
    return mix(mix(part, at), rest) & m->frame_mask;
}

static uint32_t find_frame(const struct ak_machine *m, uint32_t part, uint32_t at, uint32_t rest)
{
    uint32_t i = m->frame_heads[frame_hash(m, part, at, rest)];
    while (i && (m->frames[i].part != part || m->frames[i].at != at || m->frames[i].rest != rest))
        i = m->frames[i].next;
    return i;
}

/* Twice as many chains; fewer would do as well, so a failure is none. */
static void rehash_frames(struct ak_machine *m)
{
    uint32_t *heads = ak_alloc(((size_t)m->frame_mask + 1) * 2, sizeof *heads);
    if (!heads)
        return;
    ak_free(m->frame_heads);
    m->frame_heads = heads;
    m->frame_mask = m->frame_mask * 2 + 1;
    for (uint32_t i = 2; i < m->n_frames; i++) {
        struct ak_frame *f = &m->frames[i];
        uint32_t *head = &heads[frame_hash(m, f->part, f->at, f->rest)];
        f->next = *head;
        *head = i;
    }
}

uint32_t ak_machine_frame(struct ak_machine *m, uint32_t part, uint32_t at, uint32_t rest)
{
    uint32_t found = find_frame(m, part, at, rest);
    if (found || rest == AK_FRAME_NONE)
        return found;
    uint32_t depth = m->frames[rest].depth + 1;
    if (depth > AK_GRAMMAR_MOST_DEPTH)
        return AK_FRAME_NONE;
    if (m->n_frames == MOST_FRAMES) {
        m->crowded = true;
        return AK_FRAME_NONE;
    }
    if (!ak_machine_room(m, &m->frames, &m->room_frames, m->n_frames, 1, sizeof *m->frames))
        return AK_FRAME_NONE;
    if (m->n_frames > m->frame_mask)
        rehash_frames(m);
    uint32_t *head = &m->frame_heads[frame_hash(m, part, at, rest)];
    m->frames[m->n_frames] =
        (struct ak_frame){ .part = part, .at = at, .rest = rest, .depth = depth, .next = *head };
    *head = m->n_frames;
    return m->n_frames++;
}

/* ---- closures ----------------------------------------------------------- */
void ak_machine_open(struct ak_machine *m)
{
    if (++m->epoch == 0) { /* after 2^32 closures marks would lie */
        for (uint32_t i = 0; i < m->n_frames; i++)
            m->frames[i].mark = 0;
        m->epoch = 1;
    }
    m->n_set = m->n_work = m->n_expanded = 0;
    m->may_end = m->failed = m->crowded = false;
}

void ak_machine_enter(struct ak_machine *m, uint32_t frame)
{
    if (frame == AK_FRAME_NONE || m->frames[frame].mark == m->epoch)
        return;
    m->frames[frame].mark = m->epoch;
    if (ak_machine_room(m, &m->work, &m->room_work, m->n_work, 1, sizeof *m->work))
        m->work[m->n_work++] = frame;
}

static void keep(struct ak_machine *m, uint32_t frame)
{
    if (m->n_set == AK_GRAMMAR_MOST_CONFIGURATIONS)
        m->crowded = true;
    else if (ak_machine_room(m, &m->set, &m->room_set, m->n_set, 1, sizeof *m->set))
        m->set[m->n_set++] = frame;
}

static void enter_part(struct ak_machine *m, uint32_t part, uint32_t rest)
{
    if (m->g->parts[part].possible)
        ak_machine_enter(m, ak_machine_frame(m, part, 0, rest));
}

/* A repetition that was taken `at` times. Where the part may be empty, so may any number
 * of them, and a turn that took nothing leads nowhere new: what it could do can be done
 * from the turn before, which was in this closure. */
static void expand_repeat(struct ak_machine *m, struct ak_frame f, const struct ak_part *p)
{
    bool nullable = m->g->parts[p->a].nullable;
    uint32_t low = nullable ? 0 : p->b, at = f.at;
    if (nullable && at > 0) {
        uint32_t before = find_frame(m, f.part, at - 1, f.rest);
        if (before && m->frames[before].mark == m->epoch)
            return;
    }
    if (at >= low)
        ak_machine_enter(m, f.rest);
    if (at >= p->c)
        return;
    uint32_t after = p->c == AK_MANY && at >= low ? low : at + 1;
    if (m->g->parts[p->a].possible)
        enter_part(m, p->a, ak_machine_frame(m, f.part, after, f.rest));
}

/* What comes after an item of a sequence, which is at f.at: the last item is a frame of its own, so
 * that sequences that end alike are alike. */
static uint32_t after_item(struct ak_machine *m, struct ak_frame f, const struct ak_part *p)
{
    if (f.at + 1 == p->b)
        return f.rest;
    if (f.at + 2 == p->b)
        return ak_machine_frame(m, m->g->lists[p->a + f.at + 1], 0, f.rest);
    return ak_machine_frame(m, f.part, f.at + 1, f.rest);
}

static void expand(struct ak_machine *m, uint32_t frame)
{
    const struct ak_grammar *g = m->g;
    struct ak_frame f = m->frames[frame];
    const struct ak_part *p = &g->parts[f.part];

    if (frame == AK_FRAME_END) {
        m->may_end = true;
        return;
    }
    switch ((enum ak_part_kind)p->kind) {
    case AK_PART_NOTHING: break;
    case AK_PART_EMPTY: ak_machine_enter(m, f.rest); break;
    case AK_PART_BYTES:
    case AK_PART_LITERAL: keep(m, frame); break;
    case AK_PART_TOKEN:
        if (m->token_ids)
            keep(m, frame);
        else
            enter_part(m, g->tokens[p->a].literal, f.rest);
        break;
    case AK_PART_UNTIL:
        keep(m, frame);
        if (p->b)
            ak_machine_enter(m, f.rest);
        break;
    case AK_PART_SEQUENCE:
        if (p->possible)
            enter_part(m, g->lists[p->a + f.at], after_item(m, f, p));
        break;
    case AK_PART_CHOICE:
        for (uint32_t i = 0; i < p->b; i++)
            enter_part(m, g->lists[p->a + i], f.rest);
        break;
    case AK_PART_REPEAT: expand_repeat(m, f, p); break;
    case AK_PART_RULE: enter_part(m, g->rules[p->a].part, f.rest); break;
    case AK_PART_MEMBERS: ak_machine_enter_members(m, frame); break;
    }
}

void ak_machine_enter_place(struct ak_machine *m, uint32_t place)
{
    m->may_end = m->may_end || m->places[place].may_end;
    for (uint32_t i = 0; i < m->places[place].n; i++) {
        uint32_t frame = m->pool[m->places[place].first + i];
        if (m->frames[frame].mark != m->epoch) {
            m->frames[frame].mark = m->epoch;
            keep(m, frame);
        }
    }
}

/* ---- places ------------------------------------------------------------- */
static int rising(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void sort(uint32_t *set, uint32_t n)
{
    if (n > 32) {
        qsort(set, n, sizeof *set, rising);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        uint32_t x = set[i], j = i;
        for (; j > 0 && set[j - 1] > x; j--)
            set[j] = set[j - 1];
        set[j] = x;
    }
}

static void rehash_places(struct ak_machine *m)
{
    uint32_t *heads = ak_alloc(((size_t)m->place_mask + 1) * 2, sizeof *heads);
    if (!heads)
        return;
    ak_free(m->place_heads);
    m->place_heads = heads;
    m->place_mask = m->place_mask * 2 + 1;
    for (uint32_t i = 1; i < m->n_places; i++) {
        uint32_t *head = &heads[m->places[i].hash & m->place_mask];
        m->places[i].next = *head;
        *head = i;
    }
}

static bool same(const struct ak_machine *m, const struct ak_place *p,
                 const struct ak_place *wanted, const uint32_t *set)
{
    return p->hash == wanted->hash && p->n == wanted->n && p->may_end == wanted->may_end &&
           p->is_entry == wanted->is_entry &&
           (p->n == 0 || memcmp(m->pool + p->first, set, p->n * sizeof *set) == 0);
}

/* The place of these frames, of which there is at least one or an end. */
static uint32_t intern(struct ak_machine *m, const uint32_t *set, uint32_t n, bool may_end,
                       bool is_entry)
{
    struct ak_place fresh = { .n = n,
                              .hash = (uint32_t)may_end | (uint32_t)is_entry << 1,
                              .may_end = may_end,
                              .is_entry = is_entry,
                              .closed = AK_PLACE_UNKNOWN,
                              .like = { AK_PLACE_UNKNOWN, AK_PLACE_UNKNOWN } };
    for (uint32_t i = 0; i < n; i++)
        fresh.hash = mix(fresh.hash, set[i]);
    for (uint32_t i = m->place_heads[fresh.hash & m->place_mask]; i; i = m->places[i].next)
        if (same(m, &m->places[i], &fresh, set))
            return i;
    if (!ak_machine_room(m, &m->places, &m->room_places, m->n_places, 1, sizeof *m->places) ||
        !ak_machine_room(m, &m->pool, &m->room_pool, m->n_pool, n, sizeof *m->pool))
        return AK_PLACE_UNKNOWN;
    if (m->n_places > m->place_mask)
        rehash_places(m);
    uint32_t *head = &m->place_heads[fresh.hash & m->place_mask];
    fresh.first = m->n_pool;
    fresh.next = *head;
    m->places[m->n_places] = fresh;
    if (n > 0)
        memcpy(m->pool + m->n_pool, set, n * sizeof *set);
    m->n_pool += n;
    *head = m->n_places;
    return m->n_places++;
}

/* Looks behind the frames that were entered, until all wait. */
static uint32_t close_set(struct ak_machine *m)
{
    while (m->n_work > 0 && !m->failed && !m->crowded) {
        m->crowded = ++m->n_expanded > MOST_EXPANDED;
        expand(m, m->work[--m->n_work]);
    }
    if (m->failed || m->crowded)
        return AK_PLACE_UNKNOWN;
    if (m->n_set == 0 && !m->may_end)
        return AK_PLACE_NOWHERE;
    sort(m->set, m->n_set);
    return intern(m, m->set, m->n_set, m->may_end, false);
}

/* Many steps enter the same frames: each letter of a class, the last byte of each character. */
uint32_t ak_machine_close(struct ak_machine *m)
{
    if (m->failed || m->crowded)
        return AK_PLACE_UNKNOWN;
    if (m->n_work == 0 || m->n_set > 0 || m->may_end)
        return close_set(m);
    uint32_t entry = intern(m, m->work, m->n_work, false, true);
    if (entry != AK_PLACE_UNKNOWN && m->places[entry].closed == AK_PLACE_UNKNOWN) {
        uint32_t place = close_set(m);
        m->places[entry].closed = place;
    }
    return entry == AK_PLACE_UNKNOWN ? entry : m->places[entry].closed;
}

/* ---- steps -------------------------------------------------------------- */
bool ak_words_go_on(const struct ak_grammar *g, const struct ak_words *w, uint32_t state)
{
    return state < w->n || g->parts[g->lists[w->thens + state - w->n]].possible;
}

void ak_machine_enter_until(struct ak_machine *m, uint32_t frame, uint32_t state)
{
    const struct ak_grammar *g = m->g;
    struct ak_frame f = m->frames[frame];
    const struct ak_words *w = &g->words[g->parts[f.part].a];
    if (state < w->n)
        ak_machine_enter(m, ak_machine_frame(m, f.part, state, f.rest));
    else if (ak_words_go_on(g, w, state))
        ak_machine_enter(m, ak_machine_frame(m, g->lists[w->thens + state - w->n], 0, f.rest));
}

static void step_frame(struct ak_machine *m, uint32_t frame, unsigned char byte)
{
    const struct ak_grammar *g = m->g;
    struct ak_frame f = m->frames[frame];
    const struct ak_part *p = &g->parts[f.part];
    if (p->kind == AK_PART_BYTES) {
        if (ak_byte_set_has(&g->sets[p->a], byte))
            ak_machine_enter(m, f.rest);
    } else if (p->kind == AK_PART_LITERAL) {
        if ((unsigned char)g->bytes[p->a + f.at] == byte)
            ak_machine_enter(m, f.at + 1 < p->b ? ak_machine_frame(m, f.part, f.at + 1, f.rest) :
                                                  f.rest);
    } else if (p->kind == AK_PART_UNTIL) {
        ak_machine_enter_until(m, frame, g->words[p->a].next[f.at][byte]);
    }
}

/* Where a byte leads from here, in one of the place's tables. */
static uint32_t note(struct ak_machine *m, uint32_t **table, unsigned char byte, uint32_t to)
{
    if (!*table) {
        uint32_t *fresh = ak_alloc(256, sizeof *fresh);
        if (!fresh) {
            m->failed = true;
            return AK_PLACE_UNKNOWN;
        }
        memset(fresh, 0xff, 256 * sizeof *fresh);
        *table = fresh;
        m->n_steps++;
    }
    return (*table)[byte] = to;
}

uint32_t ak_machine_find_step(struct ak_machine *m, uint32_t place, unsigned char byte)
{
    ak_machine_open(m);
    for (uint32_t i = 0; i < m->places[place].n; i++)
        step_frame(m, m->pool[m->places[place].first + i], byte);
    uint32_t to = ak_machine_close(m);
    return note(m, &m->places[place].step, byte, to);
}

uint32_t ak_machine_find_step_near(struct ak_machine *m, uint32_t place, unsigned char byte)
{
    uint32_t to = ak_machine_step(m, place, byte);
    if (to != AK_PLACE_UNKNOWN)
        to = ak_machine_like(m, to, AK_LOOK_NEAR);
    return note(m, &m->places[place].step_near, byte, to);
}

/* ---- places with the same mask ------------------------------------------ */
/* A token can bring a count at most as far nearer to its bounds as masks look; beyond that
 * all counts are alike. */
static uint32_t like_count(const struct ak_machine *m, const struct ak_part *p, uint32_t at,
                           uint32_t far)
{
    uint32_t low = m->g->parts[p->a].nullable ? 0 : p->b;
    if (m->g->parts[p->a].nullable)
        return at;
    if (low > far && at < low - far)
        return low - far;
    if (at >= low && p->c != AK_MANY && p->c - at >= far)
        return low;
    return at;
}

/* The frame itself, but for what comes after it. */
static struct ak_frame like_one(const struct ak_machine *m, struct ak_frame f, enum ak_look look)
{
    const struct ak_part *p = &m->g->parts[f.part];
    if (p->kind == AK_PART_REPEAT)
        f.at = like_count(m, p, f.at, 1 + (look == AK_LOOK_NEAR ? AK_NEAR_BYTES : m->longest));
    else if (p->kind == AK_PART_RULE && p->b > 0 && look == AK_LOOK_NEAR)
        f.part = p->b;
    return f;
}

static uint32_t like_frame(struct ak_machine *m, uint32_t frame, enum ak_look look)
{
    /* down to what is known, then up again */
    m->n_work = 0;
    uint32_t at = frame;
    for (; at > AK_FRAME_END && !m->frames[at].like[look]; at = m->frames[at].rest) {
        if (!ak_machine_room(m, &m->work, &m->room_work, m->n_work, 1, sizeof *m->work))
            return AK_FRAME_NONE;
        m->work[m->n_work++] = at;
    }
    uint32_t like = at > AK_FRAME_END ? m->frames[at].like[look] : at;
    while (m->n_work > 0) {
        uint32_t one = m->work[--m->n_work];
        struct ak_frame f = like_one(m, m->frames[one], look);
        like = ak_machine_frame(m, f.part, f.at, like);
        m->frames[one].like[look] = like;
    }
    return like;
}

uint32_t ak_machine_like(struct ak_machine *m, uint32_t place, enum ak_look look)
{
    if (m->places[place].like[look] != AK_PLACE_UNKNOWN)
        return m->places[place].like[look];
    ak_machine_open(m);
    m->may_end = m->places[place].may_end;
    for (uint32_t i = 0; i < m->places[place].n && !m->failed; i++) {
        uint32_t like = like_frame(m, m->pool[m->places[place].first + i], look);
        if (like != AK_FRAME_NONE && m->frames[like].mark != m->epoch) {
            m->frames[like].mark = m->epoch;
            keep(m, like);
        }
    }
    uint32_t like = ak_machine_close(m);
    m->places[place].like[look] = like;
    return like;
}
