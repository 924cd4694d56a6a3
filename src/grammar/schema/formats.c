/* Formats, as patterns. Dates are those of the Gregorian calendar from the year 1 on;
 * leap seconds, which nobody can foresee, are not taken. */
#include <string.h>

#include "grammar/schema/compiler.h"

#define MONTHS                                                                                     \
    "((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2["  \
    "0-8]))"
#define YEAR "(000[1-9]|00[1-9]\\d|0[1-9]\\d\\d|[1-9]\\d{3})"
#define LEAP_YEAR "(\\d\\d(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
#define DATE "(" YEAR "-" MONTHS "|" LEAP_YEAR "-02-29)"
#define TIME "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d+)?([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)"
#define BYTE "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"

const char *ak_schema_find_format_pattern(const char *name)
{
    static const struct {
        const char *name, *pattern;
    } formats[] = {
        { "date", "^" DATE "$" },
        { "time", "^" TIME "$" },
        { "date-time", "^" DATE "[Tt]" TIME "$" },
        { "uuid", "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$" },
        { "ipv4", "^" BYTE "(\\." BYTE "){3}$" },
    };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0)
            return formats[i].pattern;
    return NULL;
}
