/* Limits of this machine with 1 … N threads, per ISA: all other figures are quoted against
 * these. Beside each rate are operations per core and cycle, to compare with the hardware: Zen 4
 * and Intel server cores with AVX-512 do 128 or 256 of int8, 32 or 64 of f32. */
#include "measure.h"

static const char usage[] = "bench/roofline [--isa LIST] [--threads N] [-o text|json]     (all, 1 "
                            "… the physical cores, text)";

struct row {
    enum ak_cpu_isa isa;
    unsigned threads;
    struct akunu_roofline roof;
};

static double per_cycle(const struct row *row, double ops)
{
    return row->roof.clock_hz > 0.0 ? ops / row->roof.clock_hz / row->threads : 0.0;
}

static void print_text(const struct row *row)
{
    const struct akunu_roofline *r = &row->roof;
    printf("%-8s %7u %9.1f %9.0f %5.0f %10.1f %5.1f %10.1f %5.1f %9.2f\n",
           ak_cpu_isa_name(row->isa), row->threads, r->read_bytes_per_second * 1e-9,
           r->int8_ops_per_second * 1e-9, per_cycle(row, r->int8_ops_per_second),
           r->f32_ops_per_second * 1e-9, per_cycle(row, r->f32_ops_per_second),
           r->bf16_ops_per_second * 1e-9, per_cycle(row, r->bf16_ops_per_second),
           r->clock_hz * 1e-9);
    fflush(stdout);
}

static void print_json(const struct row *row, bool first)
{
    const struct akunu_roofline *r = &row->roof;
    printf("%s{\"isa\": \"%s\", \"threads\": %u, \"read_bytes_per_second\": %.6g, "
           "\"int8_ops_per_second\": %.6g, "
           "\"f32_ops_per_second\": %.6g, \"bf16_ops_per_second\": ",
           first ? "[" : ",\n ", ak_cpu_isa_name(row->isa), row->threads, r->read_bytes_per_second,
           r->int8_ops_per_second, r->f32_ops_per_second);
    if (r->bf16_ops_per_second > 0.0)
        printf("%.6g", r->bf16_ops_per_second);
    else
        printf("null");
    printf(", \"clock_hz\": %.6g}", r->clock_hz);
    fflush(stdout);
}

/* 1 … 8, then doubling, and finally the maximum. */
static unsigned next_threads(unsigned n, unsigned threads_max)
{
    unsigned next = n < 8 ? n + 1 : n * 2;
    return n < threads_max && next > threads_max ? threads_max : next;
}

int main(int argc, char **argv)
{
    (void)argc;
    const char *isas = take_option(argv, "--isa", "all"), *form = take_option(argv, "-o", "text");
    unsigned threads_max = (unsigned)number_option(argv, "--threads", ak_physical_cores(), 1, 1024);
    bool json = strcmp(form, "json") == 0, first = true;
    take_nothing_else(argv, usage);
    if (!json && strcmp(form, "text") != 0) {
        fprintf(stderr, "-o %s: expected text or json\n", form);
        return 2;
    }
    if (!json) {
        print_chip();
        printf("                     read      int8   per        f32   per       bf16   per     "
               "clock\n"
               "isa      threads     GB/s      GOPS cycle     GFLOPS cycle     GFLOPS cycle       "
               "GHz\n");
    }
    for (int isa = 0; isa < AK_CPU_ISA_COUNT; isa++) {
        if (!ak_cpu_isa_is_usable((enum ak_cpu_isa)isa) ||
            !is_listed(isas, ak_cpu_isa_name((enum ak_cpu_isa)isa)))
            continue;
        for (unsigned n = 1; n <= threads_max; n = next_threads(n, threads_max)) {
            struct row row = { .isa = (enum ak_cpu_isa)isa,
                               .threads = n,
                               .roof =
                                   measure_roofline((enum ak_cpu_isa)isa, n, AKUNU_MEASURE_ALL) };
            if (json)
                print_json(&row, first);
            else
                print_text(&row);
            first = false;
        }
    }
    if (json)
        printf("%s]\n", first ? "[" : "");
    if (first)
        fprintf(stderr, "no kernels of \"%s\" here\n", isas);
    return first ? 2 : 0;
}
