/* Counts the mutexes of the library that a thread holds. A program that includes this is linked
 * with --wrap for the two functions below (tests/local.mk). */
#ifndef AK_TESTS_LOCKS_H
#define AK_TESTS_LOCKS_H

#include "tests/test.h"
#include <pthread.h>

int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __real_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);

static _Thread_local long locks_held;

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
    locks_held++;
    return __real_pthread_mutex_lock(m);
}

/* Nothing is unlocked that is not locked, also if no other thread would be there. */
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
    ck_assert_int_gt(locks_held, 0);
    locks_held--;
    return __real_pthread_mutex_unlock(m);
}

#endif
