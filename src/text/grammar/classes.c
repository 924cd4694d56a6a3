/* Character classes of patterns: \d, \w, \s and '.' as ECMA-262 defines them, and Unicode general
 * categories (\p{…}), which come from utf8proc. */
#include <string.h>
#include <utf8proc.h>

#include "text/grammar/pattern.h"

void ak_grammar_char_set_add_class(struct ak_grammar_builder *b, struct ak_grammar_char_set *s,
                                   char letter)
{
    static const struct ak_grammar_char_range digits[] = { { '0', '9' } };
    static const struct ak_grammar_char_range words[] = {
        { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' }
    };
    /* ECMA-262: WhiteSpace and LineTerminator */
    static const struct ak_grammar_char_range whitespace[] = {
        { '\t', '\r' },     { ' ', ' ' },       { 0xa0, 0xa0 },     { 0x1680, 0x1680 },
        { 0x2000, 0x200a }, { 0x2028, 0x2029 }, { 0x202f, 0x202f }, { 0x205f, 0x205f },
        { 0x3000, 0x3000 }, { 0xfeff, 0xfeff }
    };
    static const struct ak_grammar_char_range line_terminators[] = { { '\n', '\n' },
                                                                     { '\r', '\r' },
                                                                     { 0x2028, 0x2029 } };
    const struct ak_grammar_char_range *ranges = digits;
    size_t n = 1;
    switch (letter) {
    case 'd':
    case 'D': break;
    case 'w':
    case 'W':
        ranges = words;
        n = sizeof words / sizeof *words;
        break;
    case 's':
    case 'S':
        ranges = whitespace;
        n = sizeof whitespace / sizeof *whitespace;
        break;
    /* '.': inverted below */
    default:
        ranges = line_terminators;
        n = sizeof line_terminators / sizeof *line_terminators;
        break;
    }
    for (size_t i = 0; i < n; i++)
        ak_grammar_char_set_add(b, s, ranges[i].low, ranges[i].high);
    ak_grammar_char_set_normalize(s);
    if (letter < 'a')
        ak_grammar_char_set_invert(b, s);
}

/* General categories. A one-letter code stands for all codes that begin with it. */
static const struct {
    const char *name, *code;
} categories[] = {
    { "Letter", "L" },
    { "Uppercase_Letter", "Lu" },
    { "Lowercase_Letter", "Ll" },
    { "Titlecase_Letter", "Lt" },
    { "Modifier_Letter", "Lm" },
    { "Other_Letter", "Lo" },
    { "Mark", "M" },
    { "Nonspacing_Mark", "Mn" },
    { "Spacing_Mark", "Mc" },
    { "Enclosing_Mark", "Me" },
    { "Number", "N" },
    { "Decimal_Number", "Nd" },
    { "digit", "Nd" },
    { "Letter_Number", "Nl" },
    { "Other_Number", "No" },
    { "Punctuation", "P" },
    { "punct", "P" },
    { "Connector_Punctuation", "Pc" },
    { "Dash_Punctuation", "Pd" },
    { "Open_Punctuation", "Ps" },
    { "Close_Punctuation", "Pe" },
    { "Initial_Punctuation", "Pi" },
    { "Final_Punctuation", "Pf" },
    { "Other_Punctuation", "Po" },
    { "Symbol", "S" },
    { "Math_Symbol", "Sm" },
    { "Currency_Symbol", "Sc" },
    { "Modifier_Symbol", "Sk" },
    { "Other_Symbol", "So" },
    { "Separator", "Z" },
    { "Space_Separator", "Zs" },
    { "Line_Separator", "Zl" },
    { "Paragraph_Separator", "Zp" },
    { "Other", "C" },
    { "Control", "Cc" },
    { "cntrl", "Cc" },
    { "Format", "Cf" },
    { "Private_Use", "Co" },
    { "Unassigned", "Cn" },
};

static const char *find_category_code(const char *name, size_t n)
{
    static const char *const prefixes[] = { "General_Category=", "gc=" };
    for (size_t i = 0; i < 2; i++) {
        size_t length = strlen(prefixes[i]);
        if (n > length && memcmp(name, prefixes[i], length) == 0) {
            name += length;
            n -= length;
        }
    }
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if ((strlen(categories[i].name) == n && memcmp(categories[i].name, name, n) == 0) ||
            (strlen(categories[i].code) == n && memcmp(categories[i].code, name, n) == 0))
            return categories[i].code;
    return NULL;
}

bool ak_grammar_char_set_add_property(struct ak_grammar_builder *b, struct ak_grammar_char_set *s,
                                      const char *name, size_t n)
{
    bool any = n == 3 && memcmp(name, "Any", 3) == 0,
         ascii = n == 5 && memcmp(name, "ASCII", 5) == 0;
    const char *code = find_category_code(name, n);
    if (any || ascii)
        ak_grammar_char_set_add(b, s, 0, any ? AK_GRAMMAR_CODE_POINT_MAX : 0x7f);
    else if (!code)
        return false;
    for (int32_t c = 0; code && c <= AK_GRAMMAR_CODE_POINT_MAX; c++) {
        const char *category = utf8proc_category_string(c);
        if (category[0] == code[0] && (!code[1] || category[1] == code[1]))
            ak_grammar_char_set_add(b, s, (uint32_t)c, (uint32_t)c);
    }
    ak_grammar_char_set_normalize(s);
    return true;
}
