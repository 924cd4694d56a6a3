/* What the matcher is made of: frames, places, and the step from place to place by a byte.
 *
 * A frame is a part, how far it has come, and the frame of what comes after it; equal
 * ones are the same frame. A place is a set of frames whose parts wait for a byte or a
 * token: the only thing that there is to know about the text so far. */
#ifndef AK_TEXT_GRAMMAR_MACHINE_H
#define AK_TEXT_GRAMMAR_MACHINE_H

#include "grammar/matcher.h"

struct ak_frame {
    uint32_t part;
    /* parts of a sequence, bytes of a literal, repetitions, state of members or of words */
    uint32_t at;
    uint32_t rest; /* a frame */
    uint32_t depth;
    uint32_t mark;    /* the last closure that it was in */
    uint32_t next;    /* of the same hash */
    uint32_t like[2]; /* by how far is looked, a frame with the same masks; 0: not looked for yet */
};

enum {
    AK_FRAME_NONE = 0, /* too deep: nothing comes of it */
    AK_FRAME_END = 1,  /* the text is complete */
    AK_PLACE_NOWHERE = 0,
};
#define AK_PLACE_UNKNOWN UINT32_MAX

struct ak_place {
    uint32_t first, n; /* its frames in the pool, rising */
    uint32_t hash, next;
    /* Of 256 bytes, AK_PLACE_UNKNOWN where none was looked for; NULL: none was at all. The one
     * to places, the other to their likes by AK_LOOK_NEAR. */
    uint32_t *step, *step_near;
    /* by how far is looked, the place that has its mask; AK_PLACE_UNKNOWN: not looked for */
    uint32_t like[2];
    uint32_t closed; /* of an entry */
    uint32_t mask;   /* its number plus 1; 0: none is kept */
    bool may_end;
    /* no place: frames as they were entered, and in `closed` what place they are then */
    bool is_entry;
    uint8_t visits; /* times that its mask was asked for */
};

/* Which of some members are there, as words: a header, then a bit for each member where
 * they may come in any order. State 0 is all zeros: none of them yet. */
struct ak_seen {
    uint32_t first, n; /* words */
    uint32_t hash, next;
};

struct ak_machine {
    const struct ak_grammar *g;
    const int32_t *token_ids; /* of g->tokens; NULL: no vocabulary */
    uint32_t longest;         /* bytes of a token: as far as masks look */

    struct ak_frame *frames;
    uint32_t n_frames, room_frames, *frame_heads, frame_mask;
    struct ak_place *places;
    uint32_t n_places, room_places, *place_heads, place_mask;
    uint32_t *pool, n_pool, room_pool;
    struct ak_seen *seen;
    uint32_t n_seen, room_seen, *seen_heads, seen_mask;
    uint64_t *words, *word_scratch; /* of `seen`; room for one state */
    uint32_t n_words, room_words;
    uint32_t n_steps; /* tables of steps */

    /* the closure in the making */
    uint32_t epoch, n_expanded;
    uint32_t *work, n_work, room_work;
    uint32_t *set, n_set, room_set;
    bool may_end;
    bool failed;  /* out of memory */
    bool crowded; /* more frames than there may be */
};

bool ak_machine_init(struct ak_machine *m, const struct ak_grammar *g, const int32_t *token_ids,
                     uint32_t longest);
void ak_machine_free(struct ak_machine *m);

/* Interning: AK_FRAME_NONE where it would be too deep, or there is no memory. */
uint32_t ak_machine_frame(struct ak_machine *m, uint32_t part, uint32_t at, uint32_t rest);
uint32_t ak_machine_see(struct ak_machine *m, const uint64_t *words, uint32_t n);

/* A place is made by opening a closure, entering frames and closing it. Where that failed,
 * close gives AK_PLACE_UNKNOWN. */
void ak_machine_open(struct ak_machine *m);
void ak_machine_enter(struct ak_machine *m, uint32_t frame);
/* A frame that waits for words, in another state of theirs: one past the states is a complete word.
 */
void ak_machine_enter_until(struct ak_machine *m, uint32_t frame, uint32_t state);
/* Is there a text behind the state? */
bool ak_words_go_on(const struct ak_grammar *g, const struct ak_words *w, uint32_t state);
void ak_machine_enter_place(struct ak_machine *m, uint32_t place); /* all that it has */
uint32_t ak_machine_close(struct ak_machine *m);

/* Where a byte leads; AK_PLACE_NOWHERE: it is not allowed; AK_PLACE_UNKNOWN: a failure. */
uint32_t ak_machine_find_step(struct ak_machine *m, uint32_t place, unsigned char byte);
static inline uint32_t ak_machine_step(struct ak_machine *m, uint32_t place, unsigned char byte)
{
    const uint32_t *step = m->places[place].step;
    return step && step[byte] != AK_PLACE_UNKNOWN ? step[byte] :
                                                    ak_machine_find_step(m, place, byte);
}

/* How far masks look: AK_NEAR_BYTES, or as far as the longest token. */
enum ak_look { AK_LOOK_NEAR, AK_LOOK_FAR };
/* A place with the same mask, common to all that differ only in what lies further ahead than
 * is looked: in counts, and in states of patterns. */
uint32_t ak_machine_like(struct ak_machine *m, uint32_t place, enum ak_look look);

/* A step, and to the like of its place by AK_LOOK_NEAR. */
uint32_t ak_machine_find_step_near(struct ak_machine *m, uint32_t place, unsigned char byte);
static inline uint32_t ak_machine_step_near(struct ak_machine *m, uint32_t place,
                                            unsigned char byte)
{
    const uint32_t *step = m->places[place].step_near;
    return step && step[byte] != AK_PLACE_UNKNOWN ? step[byte] :
                                                    ak_machine_find_step_near(m, place, byte);
}

/* members.c: enters what may follow in members, whose frame this is. */
void ak_machine_enter_members(struct ak_machine *m, uint32_t frame);

/* collect.c: is it time? Then forgets all places but the n at `roots`, which get their new
 * numbers; without memory they keep the old ones, and nothing is forgotten. */
bool ak_machine_is_full(const struct ak_machine *m);
void ak_machine_collect(struct ak_machine *m, uint32_t *const *roots, size_t n);

/* For the parts of the machine: room for one more element. */
bool ak_machine_room(struct ak_machine *m, void *array, uint32_t *room, uint32_t n, size_t more,
                     size_t size);

#endif
