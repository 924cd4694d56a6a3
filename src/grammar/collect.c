/* Forgets places that nobody is at, and frames that are in none. */
#include "base/mem.h"
#include "grammar/machine.h"

enum { MOST_BYTES = 64 << 20 };

static uint64_t bytes(const struct ak_machine *m)
{
    return (uint64_t)m->n_frames * sizeof *m->frames + (uint64_t)m->n_places * sizeof *m->places +
           (uint64_t)m->n_pool * sizeof *m->pool + (uint64_t)m->n_words * sizeof *m->words +
           (uint64_t)m->n_steps * 256 * sizeof(uint32_t);
}

bool ak_machine_is_full(const struct ak_machine *m)
{
    return bytes(m) > MOST_BYTES;
}

/* The frame in the new machine; a moved frame's mark is its new number. */
static uint32_t move(struct ak_machine *from, struct ak_machine *to, uint32_t frame)
{
    uint32_t n = 0, at = frame, moved;
    for (; at > AK_FRAME_END && !from->frames[at].mark; at = from->frames[at].rest) {
        if (!ak_machine_room(from, &from->work, &from->room_work, n, 1, sizeof *from->work))
            return AK_FRAME_NONE;
        from->work[n++] = at;
    }
    moved = at > AK_FRAME_END ? from->frames[at].mark : at;
    while (n > 0) {
        struct ak_frame *f = &from->frames[from->work[--n]];
        uint32_t state = f->at;
        if (from->g->parts[f->part].kind == AK_PART_MEMBERS && state > 0)
            state = ak_machine_see(to, from->words + from->seen[state].first, from->seen[state].n);
        moved = f->mark = ak_machine_frame(to, f->part, state, moved);
    }
    return moved;
}

static uint32_t move_place(struct ak_machine *from, struct ak_machine *to, uint32_t place)
{
    const struct ak_place *p = &from->places[place];
    if (place == AK_PLACE_NOWHERE)
        return place;
    ak_machine_open(to);
    to->may_end = p->may_end;
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t frame = move(from, to, from->pool[p->first + i]);
        if (frame == AK_FRAME_NONE ||
            !ak_machine_room(to, &to->set, &to->room_set, to->n_set, 1, sizeof *to->set))
            return AK_PLACE_UNKNOWN;
        to->set[to->n_set++] = frame;
    }
    return ak_machine_close(to);
}

void ak_machine_collect(struct ak_machine *m, uint32_t *const *roots, size_t n)
{
    struct ak_machine fresh;
    uint32_t *moved = ak_alloc(n, sizeof *moved);
    bool ok = ak_machine_init(&fresh, m->g, m->token_ids, m->longest) && moved;
    for (uint32_t i = 0; i < m->n_frames; i++)
        m->frames[i].mark = 0;
    for (size_t i = 0; ok && i < n; i++) {
        moved[i] = move_place(m, &fresh, *roots[i]);
        ok = moved[i] != AK_PLACE_UNKNOWN;
    }
    for (size_t i = 0; ok && i < n; i++)
        *roots[i] = moved[i];
    if (ok) {
        struct ak_machine old = *m;
        *m = fresh;
        fresh = old;
    } else {
        for (uint32_t i = 0; i < m->n_frames; i++)
            m->frames[i].mark = 0;
        m->epoch = 0;
    }
    ak_machine_free(&fresh);
    ak_free(moved);
}
