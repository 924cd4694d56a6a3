/* akunu-server with TLS: which certificate a client sees, before and after SIGHUP. */
#include "tests/apps/server/client.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

/* A key and a certificate for localhost that it signs itself. */
struct identity {
    gnutls_datum_t key, certificate; /* PEM */
    gnutls_datum_t seen;             /* the certificate as it is sent */
};

static void good(int code)
{
    ck_assert_msg(code >= 0, "GnuTLS: %s", gnutls_strerror(code));
}

static struct identity make_identity(unsigned char serial)
{
    struct identity id;
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t crt;
    time_t now = time(NULL);
    good(gnutls_x509_privkey_init(&key));
    good(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                      GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
    good(gnutls_x509_crt_init(&crt));
    good(gnutls_x509_crt_set_version(crt, 3));
    good(gnutls_x509_crt_set_serial(crt, &serial, 1));
    good(gnutls_x509_crt_set_dn(crt, "CN=localhost", NULL));
    good(gnutls_x509_crt_set_activation_time(crt, now - 60));
    good(gnutls_x509_crt_set_expiration_time(crt, now + 3600));
    good(gnutls_x509_crt_set_key(crt, key));
    good(gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0));
    good(gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN,
                                           &id.key));
    good(gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &id.certificate));
    good(gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_DER, &id.seen));
    gnutls_x509_crt_deinit(crt);
    gnutls_x509_privkey_deinit(key);
    return id;
}

static void free_identity(struct identity *id)
{
    gnutls_free(id->key.data);
    gnutls_free(id->certificate.data);
    gnutls_free(id->seen.data);
}

static void write_times(const char *path, const gnutls_datum_t *text, int times)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    for (int i = 0; i < times; i++)
        ck_assert_uint_eq(fwrite(text->data, 1, text->size, f), text->size);
    ck_assert_int_eq(fclose(f), 0);
}

static void write_file(const char *path, const gnutls_datum_t *text)
{
    write_times(path, text, 1);
}

/* Asks for /health; whether the server has this certificate, n times. */
static bool shows_times(const struct child *child, const struct identity *id, unsigned times)
{
    static const char request[] = "GET /health HTTP/1.1\r\nHost: localhost\r\n"
                                  "Connection: close\r\n\r\n";
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
    char text[4096];
    unsigned n = 0;
    int fd = open_connection(child), code;
    good(gnutls_certificate_allocate_credentials(&credentials));
    good(gnutls_init(&session, GNUTLS_CLIENT));
    good(gnutls_set_default_priority(session));
    good(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials));
    gnutls_transport_set_int(session, fd);
    do
        code = gnutls_handshake(session);
    while (code < 0 && !gnutls_error_is_fatal(code));
    good(code);
    const gnutls_datum_t *seen = gnutls_certificate_get_peers(session, &n);
    ck_assert_uint_eq(n, times);
    bool same = true;
    for (unsigned i = 0; i < n; i++)
        same = same && seen[i].size == id->seen.size &&
               memcmp(seen[i].data, id->seen.data, id->seen.size) == 0;
    good((int)gnutls_record_send(session, request, strlen(request)));
    ssize_t got = gnutls_record_recv(session, text, sizeof text - 1);
    ck_assert_int_gt(got, 12);
    text[got] = '\0';
    ck_assert_msg(strncmp(text, "HTTP/1.1 200", 12) == 0, "%s", text);
    gnutls_deinit(session);
    gnutls_certificate_free_credentials(credentials);
    close(fd);
    return same;
}

static bool shows(const struct child *child, const struct identity *id)
{
    return shows_times(child, id, 1);
}

/* The key of PEM with a password. */
static gnutls_datum_t lock_key(const gnutls_datum_t *pem)
{
    gnutls_x509_privkey_t key;
    gnutls_datum_t locked;
    good(gnutls_x509_privkey_init(&key));
    good(gnutls_x509_privkey_import(key, pem, GNUTLS_X509_FMT_PEM));
    good(gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, "secret",
                                           GNUTLS_PKCS_PBES2_AES_256, &locked));
    gnutls_x509_privkey_deinit(key);
    return locked;
}

/* What is wrong with the files of the flags is told before the model is loaded. A chain has up to
 * 16 certificates. */
START_TEST(files)
{
    enum { MOST = 16 };
    static const char nonsense_text[] = "nonsense\n";
    const gnutls_datum_t nonsense = { (unsigned char *)(uintptr_t)nonsense_text, 9 };
    char folder[] = "/tmp/akunu-tls-XXXXXX", key[64], certificate[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(key, sizeof key, "%s/key.pem", folder);
    snprintf(certificate, sizeof certificate, "%s/cert.pem", folder);
    struct identity one = make_identity(1), two = make_identity(2);
    gnutls_datum_t locked = lock_key(&one.key);
    const char *const flags[] = { "--ssl-key-file", key, "--ssl-cert-file", certificate, NULL },
                      *const key_alone[] = { "--ssl-key-file", key, NULL },
                      *const certificate_alone[] = { "--ssl-cert-file", certificate, NULL };
    const struct {
        const char *const *flags;
        const gnutls_datum_t *key, *certificate; /* NULL: there is no such file */
        int n, code;                             /* n: certificates */
        const char *why;
    } cases[] = {
        { key_alone, &one.key, NULL, 1, 2, "--ssl-cert-file: one needs the other" },
        { certificate_alone, NULL, &one.certificate, 1, 2, "--ssl-cert-file: one needs the other" },
        { flags, NULL, &one.certificate, 1, 2, "key.pem: No such file or directory" },
        { flags, &one.key, NULL, 1, 2, "cert.pem: No such file or directory" },
        { flags, &nonsense, &one.certificate, 1, 1,
          "--ssl-key-file is no key in PEM without a password" },
        { flags, &locked, &one.certificate, 1, 1,
          "--ssl-key-file is no key in PEM without a password" },
        { flags, &one.key, &nonsense, 1, 1, "--ssl-cert-file is no certificate in PEM" },
        { flags, &one.key, &nonsense, 0, 1, "--ssl-cert-file is no certificate in PEM" },
        { flags, &one.key, &one.certificate, MOST + 1, 1,
          "--ssl-cert-file has more than 16 certificates" },
        { flags, &two.key, &one.certificate, 1, 1,
          "the key of --ssl-key-file is not that of the certificate" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unlink(key);
        unlink(certificate);
        if (cases[i].key)
            write_file(key, cases[i].key);
        if (cases[i].certificate)
            write_times(certificate, cases[i].certificate, cases[i].n);
        refuses(cases[i].flags, cases[i].code, cases[i].why);
    }
    write_file(key, &one.key);
    write_times(certificate, &one.certificate, MOST);
    struct child child = start_server(flags);
    ck_assert(shows_times(&child, &one, MOST));
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
    unlink(key);
    unlink(certificate);
    rmdir(folder);
    gnutls_free(locked.data);
    free_identity(&one);
    free_identity(&two);
}
END_TEST

/* A client that does not end its handshake in time is cut off, without an answer that it could not
 * read. */
START_TEST(slow_handshake)
{
    static const char begun[] = { 22, 3, 1, 2, 0 }; /* a record of a handshake, RFC 8446, 5.1 */
    char folder[] = "/tmp/akunu-tls-XXXXXX", key[64], certificate[64], byte;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(key, sizeof key, "%s/key.pem", folder);
    snprintf(certificate, sizeof certificate, "%s/cert.pem", folder);
    struct identity one = make_identity(1);
    write_file(key, &one.key);
    write_file(certificate, &one.certificate);
    const char *const flags[] = {
        "--ssl-key-file", key, "--ssl-cert-file", certificate, "--timeout", "1", NULL
    };
    struct child child = start_server(flags);
    int fd = open_connection(&child);
    send_text(fd, begun, sizeof begun);
    ck_assert_int_eq(recv(fd, &byte, 1, 0), 0);
    close(fd);
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
    unlink(key);
    unlink(certificate);
    rmdir(folder);
    free_identity(&one);
}
END_TEST

START_TEST(certificates_are_read_again)
{
    char folder[] = "/tmp/akunu-tls-XXXXXX", key[64], certificate[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(key, sizeof key, "%s/key.pem", folder);
    snprintf(certificate, sizeof certificate, "%s/cert.pem", folder);
    struct identity one = make_identity(1), two = make_identity(2);
    write_file(key, &one.key);
    write_file(certificate, &one.certificate);
    const char *const flags[] = { "--ssl-key-file", key, "--ssl-cert-file", certificate, NULL };
    struct child child = start_server(flags);
    ck_assert(shows(&child, &one));
    write_file(key, &two.key);
    write_file(certificate, &two.certificate);
    kill(child.pid, SIGHUP);
    for (int i = 0; !shows(&child, &two); i++) {
        ck_assert_int_lt(i, 100);
        nap(0.05);
    }
    read_log(&child, "the certificate was read again");
    write_file(key, &one.key); /* not the certificate's */
    kill(child.pid, SIGHUP);
    read_log(&child, "the key of --ssl-key-file is not that of the certificate; the certificate "
                     "stays as it was");
    ck_assert(shows(&child, &two));
    unlink(certificate);
    kill(child.pid, SIGHUP);
    read_log(&child, "it cannot be read; the certificate stays as it was");
    ck_assert(shows(&child, &two));
    ck_assert_int_eq(stop_server(&child, SIGTERM), 0);
    unlink(key);
    rmdir(folder);
    free_identity(&one);
    free_identity(&two);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = { files, slow_handshake, certificates_are_read_again, NULL };
    return run_server_tests("tls", NULL, NULL, tests);
}
