/* A process has one HTTPS server, so the certificate in use is that of the process: the callback of
 * a handshake gets no pointer of ours. */
#include "apps/server/tls.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CHAIN_MAX = 16, ID_BYTES = 64 };

struct tls_certificate {
    gnutls_pcert_st chain[CHAIN_MAX + 1]; /* one more than may be, to notice it */
    unsigned n;
    gnutls_privkey_t key;
    struct tls_certificate *earlier;
};

static struct tls_certificate *in_use;

static void free_certificate(struct tls_certificate *c)
{
    for (unsigned i = 0; i < c->n; i++)
        gnutls_pcert_deinit(&c->chain[i]);
    if (c->key)
        gnutls_privkey_deinit(c->key);
    free(c);
}

static gnutls_datum_t datum_of(const char *text)
{
    return (gnutls_datum_t){ (unsigned char *)(uintptr_t)text, (unsigned)strlen(text) };
}

/* Whether the first certificate is that of the key. */
static bool is_of_key(const struct tls_certificate *c)
{
    unsigned char ids[2][ID_BYTES];
    size_t n[2] = { ID_BYTES, ID_BYTES };
    gnutls_pubkey_t own;
    if (gnutls_pubkey_init(&own) < 0)
        return false;
    bool good =
        gnutls_pubkey_import_privkey(own, c->key, 0, 0) >= 0 &&
        gnutls_pubkey_get_key_id(own, GNUTLS_KEYID_USE_SHA256, ids[0], &n[0]) >= 0 &&
        gnutls_pubkey_get_key_id(c->chain[0].pubkey, GNUTLS_KEYID_USE_SHA256, ids[1], &n[1]) >= 0;
    gnutls_pubkey_deinit(own);
    return good && n[0] == n[1] && memcmp(ids[0], ids[1], n[0]) == 0;
}

struct tls_certificate *tls_read(const char *key, const char *certificate, const char **why)
{
    struct tls_certificate *c = calloc(1, sizeof *c);
    gnutls_datum_t key_text = datum_of(key), text = datum_of(certificate);
    unsigned n = CHAIN_MAX + 1;
    *why = NULL;
    if (!c || gnutls_privkey_init(&c->key) < 0)
        *why = "out of memory";
    else if (gnutls_pcert_list_import_x509_raw(c->chain, &n, &text, GNUTLS_X509_FMT_PEM, 0) < 0)
        *why = "--ssl-cert-file is no certificate in PEM";
    else if ((c->n = n) > CHAIN_MAX)
        *why = "--ssl-cert-file has more than 16 certificates";
    else if (gnutls_privkey_import_x509_raw(c->key, &key_text, GNUTLS_X509_FMT_PEM, NULL, 0) < 0)
        *why = "--ssl-key-file is no key in PEM without a password";
    else if (!is_of_key(c))
        *why = "the key of --ssl-key-file is not that of the certificate";
    if (!*why)
        return c;
    if (c)
        free_certificate(c);
    return NULL;
}

void tls_use(struct tls_certificate *certificate)
{
    certificate->earlier = in_use;
    in_use = certificate;
}

void tls_close(void)
{
    while (in_use) {
        struct tls_certificate *earlier = in_use->earlier;
        free_certificate(in_use);
        in_use = earlier;
    }
}

static int give(gnutls_session_t session, const gnutls_datum_t *names, int n_names,
                const gnutls_pk_algorithm_t *algorithms, int n_algorithms, gnutls_pcert_st **chain,
                unsigned *n, gnutls_privkey_t *key)
{
    (void)session, (void)names, (void)n_names, (void)algorithms, (void)n_algorithms;
    *chain = in_use->chain;
    *n = in_use->n;
    *key = in_use->key;
    return 0;
}

void *tls_callback(void)
{
    gnutls_certificate_retrieve_function2 *function = give;
    void *pointer;
    memcpy(&pointer, &function, sizeof pointer); /* as POSIX allows */
    return pointer;
}
