/* TLS certificates for libmicrohttpd, which can be replaced while the server runs: connections that
 * begin later get the new one. */
#ifndef AK_APPS_SERVER_TLS_H
#define AK_APPS_SERVER_TLS_H

#include <stdbool.h>
#include <stddef.h>

struct tls_certificate;

/* Reads a key and a certificate with those above it, as PEM texts that end with NUL. NULL: *why
 * says what is wrong. */
struct tls_certificate *tls_read(const char *key, const char *certificate, const char **why);
/* Uses it, and keeps it: handshakes may still need the earlier ones. */
void tls_use(struct tls_certificate *certificate);
/* Frees all that were used. */
void tls_close(void);

/* For MHD_OPTION_HTTPS_CERT_CALLBACK: gives a handshake the certificate in use. */
void *tls_callback(void);

#endif
