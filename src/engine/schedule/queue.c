/* The queue: tasks in the order in which they start. Clients take turns: the tasks of a client get
 * ascending rounds, and a round has one task of each. */
#include "engine/schedule/internal.h"

static bool comes_before(const struct ak_sched_task *a, const struct ak_sched_task *b)
{
    if (a->round != b->round)
        return a->round < b->round;
    if (a->request->id != b->request->id)
        return a->request->id < b->request->id;
    return a->index < b->index;
}

static void insert(struct ak_sched *s, struct ak_sched_task *t)
{
    struct ak_sched_task **link = &s->queue;
    while (*link && !comes_before(t, *link))
        link = &(*link)->next;
    t->next = *link;
    *link = t;
}

void ak_sched_queue_add(struct ak_sched *s, struct ak_sched_task *t)
{
    t->round = s->round;
    for (const struct ak_sched_task *other = s->queue; other; other = other->next)
        if (other->request->client == t->request->client && other->round >= t->round)
            t->round = other->round + 1;
    insert(s, t);
}

void ak_sched_queue_return(struct ak_sched *s, struct ak_sched_task *t)
{
    t->round = 0;
    insert(s, t);
}

void ak_sched_queue_remove(struct ak_sched *s, struct ak_sched_task *t)
{
    struct ak_sched_task **link = &s->queue;
    while (*link != t)
        link = &(*link)->next;
    *link = t->next;
    t->next = NULL;
}
