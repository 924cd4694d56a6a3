/* Stands before every file that a patch of this folder touches. AK_MUTANT(n) is true
 * while the environment variable AK_MUTANT is n, which is read once, before main. */
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
