/* Languages that Whisper's multilingual models know. */
#include <string.h>
#include <strings.h>

#include "speech/search/rules.h"

struct language {
    const char *code, *name;
};

#define AK_LANGUAGE(code, name) { code, name },
#define AK_LANGUAGE_ALIAS(code, name)
static const struct language languages[] = {
#include "speech/search/languages.def"
};
#undef AK_LANGUAGE
#undef AK_LANGUAGE_ALIAS

#define AK_LANGUAGE(code, name)
#define AK_LANGUAGE_ALIAS(code, name) { code, name },
static const struct language aliases[] = {
#include "speech/search/languages.def"
};
#undef AK_LANGUAGE
#undef AK_LANGUAGE_ALIAS

int32_t ak_speech_language_find(const char *text)
{
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcasecmp(aliases[i].name, text) == 0)
            text = aliases[i].code;
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++)
        if (strcasecmp(languages[i].code, text) == 0 || strcasecmp(languages[i].name, text) == 0)
            return (int32_t)i;
    return -1;
}

bool ak_speech_language_has_spaces(int32_t language)
{
    static const char *const without[] = { "zh", "ja", "th", "lo", "my", "yue" };
    const char *code = ak_speech_language_code(language);
    for (size_t i = 0; code && i < sizeof without / sizeof *without; i++)
        if (strcmp(code, without[i]) == 0)
            return false;
    return true;
}

static bool is_known(int32_t language)
{
    return language >= 0 && (size_t)language < sizeof languages / sizeof *languages;
}

const char *ak_speech_language_code(int32_t language)
{
    return is_known(language) ? languages[language].code : NULL;
}

const char *ak_speech_language_name(int32_t language)
{
    return is_known(language) ? languages[language].name : NULL;
}
