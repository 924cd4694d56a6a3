/* GET /: the chat page, page/index.html, which the build embeds. Only its own script and style run:
 * they carry a nonce that is new in each answer (CSP, https://www.w3.org/TR/CSP3/). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "apps/server/job.h"

static const char page[] =
#include "apps/server/page/index.inc"
    ;

/* The page with the nonce in the place of each NONCE. */
static bool fill_in(struct server_text *out, const char *nonce)
{
    static const char name[] = "\"NONCE\"";
    const char *at = page;
    bool good = true;
    for (const char *next; good && (next = strstr(at, name)) != NULL; at = next + strlen(name))
        good = server_text_add(out, at, (size_t)(next - at)) && server_text_add(out, "\"", 1) &&
               server_text_add(out, nonce, strlen(nonce)) && server_text_add(out, "\"", 1);
    return good && server_text_add(out, at, strlen(at));
}

void server_page(struct server *s, struct http_exchange *x)
{
    struct server_text text = { 0 };
    unsigned char random[16];
    char nonce[2 * sizeof random + 1], policy[512];
    if (s->options->server.no_ui) {
        server_fail(x, 404, NULL, NULL, "--no-ui turns this page off");
        return;
    }
    bool good = getrandom(random, sizeof random, 0) == (ssize_t)sizeof random;
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(nonce + 2 * i, 3, "%02x", random[i]);
    snprintf(policy, sizeof policy,
             "default-src 'none'; script-src 'nonce-%s'; style-src 'nonce-%s'; img-src data:; "
             "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
             nonce, nonce);
    if (good && fill_in(&text, nonce)) {
        http_add_header(x, "Content-Security-Policy", policy);
        http_add_header(x, "X-Content-Type-Options", "nosniff");
        http_add_header(x, "Referrer-Policy", "no-referrer");
        http_add_header(x, "Cache-Control", "no-store");
        http_answer(x, 200, "text/html; charset=utf-8", text.bytes, text.n);
    } else {
        server_fail_memory(x);
    }
    free(text.bytes);
}
