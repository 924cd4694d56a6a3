/* Switch of the mutants: wrong edits of the source that tests must notice (README.md). One build
 * has them all; AK_MUTANT(n) is true while the environment variable AK_MUTANT is n, which is read
 * once, before main. run.sh puts this before every file that a patch of this folder touches. */
#ifndef AK_MUTANT
#include <stdlib.h>

#define AK_MUTANT(n) (ak_mutant == (n))
static int ak_mutant;

__attribute__((constructor)) static void ak_read_mutant(void)
{
    const char *number = getenv("AK_MUTANT");
    ak_mutant = number ? atoi(number) : 0;
}
#endif
