/* Writes the page of report: two plots in SVG and a table. */
#include "apps/cli/quality/report.h"

#include <math.h>

/* ---- Text --------------------------------------------------------------- */
static void put_text(FILE *file, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&': fputs("&amp;", file); break;
        case '<': fputs("&lt;", file); break;
        case '>': fputs("&gt;", file); break;
        case '"': fputs("&quot;", file); break;
        default: fputc(*text, file);
        }
}

static void put_head(FILE *file)
{
    fputs("<!DOCTYPE html>\n"
          "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<title>Quality of quantized models</title>\n<style>\n"
          ":root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --faint: #d0d7de; "
          "--mark: #0550ae; }\n"
          "@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; "
          "--faint: #3d444d; --mark: #79c0ff; } }\n"
          "body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; "
          "padding: 0 1rem; color: var(--ink); background: var(--paper); }\n"
          ".wide { overflow-x: auto; }\n"
          "table { border-collapse: collapse; font-variant-numeric: tabular-nums; }\n"
          "caption { text-align: left; }\n"
          "th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid "
          "var(--faint); white-space: nowrap; }\n"
          "th:first-child { text-align: left; }\n"
          "svg { width: 100%; height: auto; font-size: 13px; }\n"
          "svg text { fill: var(--ink); }\nsvg line { stroke: var(--faint); }\n"
          "svg circle { fill: var(--mark); }\n"
          "</style>\n</head>\n<body>\n<main>\n",
          file);
}

/* ---- Plots -------------------------------------------------------------- */
enum { WIDTH = 720, HEIGHT = 400, LEFT = 80, RIGHT = 30, TOP = 20, BOTTOM = 55 };

/* An axis from 0 to a multiple of `step`. */
struct axis {
    const char *label;
    double step, max;
};

/* Four to ten steps of 1, 2 or 5 times a power of ten. */
static struct axis axis_to(const char *label, double largest)
{
    double power = pow(10.0, floor(log10(largest > 0.0 ? largest : 1.0))), step = power;
    if (largest < 2.0 * power)
        step = 0.2 * power;
    else if (largest < 5.0 * power)
        step = 0.5 * power;
    double n = floor(largest / step) + 1.0;
    return (struct axis){ .label = label, .step = step, .max = n * step };
}

static double x_of(const struct axis *axis, double value)
{
    return LEFT + value / axis->max * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct axis *axis, double value)
{
    return HEIGHT - BOTTOM - value / axis->max * (HEIGHT - TOP - BOTTOM);
}

static void put_axes(FILE *file, const struct axis *x, const struct axis *y)
{
    for (double v = 0.0; v <= x->max * 1.001; v += x->step)
        fprintf(file,
                "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
                x_of(x, v), TOP, x_of(x, v), HEIGHT - BOTTOM, x_of(x, v), HEIGHT - BOTTOM + 18, v);
    for (double v = 0.0; v <= y->max * 1.001; v += y->step)
        fprintf(file,
                "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                LEFT, y_of(y, v), WIDTH - RIGHT, y_of(y, v), LEFT - 8, y_of(y, v) + 4.0, v);
    fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x->label);
    fprintf(file,
            "<text transform=\"translate(18 %d) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
            (TOP + HEIGHT - BOTTOM) / 2, y->label);
}

static double megabytes_of(const struct cli_report_row *row)
{
    return (double)row->score.file_bytes / 1e6;
}

static double rate_of(const struct cli_report_row *row)
{
    return row->score.rate;
}

/* A point and its name, which is on the side where there is more space. */
static void put_point(FILE *file, const struct cli_report_row *row, double value,
                      const struct axis *x, const struct axis *y)
{
    double kl = fmax(row->score.divergence.kl.value, 0.0);
    double at_x = x_of(x, value), at_y = y_of(y, kl);
    bool is_right = at_x > LEFT + 0.5 * (WIDTH - LEFT - RIGHT);
    fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\"><title>", at_x, at_y);
    put_text(file, row->name);
    fprintf(file,
            ": %.1f %s, KL %.6f</title></circle><text x=\"%.1f\" y=\"%.1f\" "
            "text-anchor=\"%s\">",
            value, x->label, kl, is_right ? at_x - 8.0 : at_x + 8.0, at_y - 6.0,
            is_right ? "end" : "start");
    put_text(file, row->name);
    fputs("</text>\n", file);
}

/* Points of the models: what `value_of` gives against the KL divergence, if that is finite. */
static void put_plot(FILE *file, const char *id, const char *title, const char *label,
                     double (*value_of)(const struct cli_report_row *),
                     const struct cli_report_row *rows, size_t n)
{
    double largest_x = 0.0, largest_y = 0.0;
    for (size_t i = 0; i < n; i++) {
        double kl = rows[i].score.divergence.kl.value;
        largest_x = fmax(largest_x, value_of(&rows[i]));
        largest_y = isfinite(kl) ? fmax(largest_y, kl) : largest_y;
    }
    struct axis x = axis_to(label, largest_x), y = axis_to("KL divergence", largest_y);
    fprintf(file,
            "<h2 id=\"%s\">%s</h2>\n"
            "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"%s\" "
            "aria-describedby=\"figures\">\n",
            id, title, WIDTH, HEIGHT, id);
    put_axes(file, &x, &y);
    for (size_t i = 0; i < n; i++)
        if (isfinite(rows[i].score.divergence.kl.value))
            put_point(file, &rows[i], value_of(&rows[i]), &x, &y);
    fputs("</svg>\n", file);
}

/* ---- Table -------------------------------------------------------------- */
static void put_row(FILE *file, const struct cli_report_row *row)
{
    const struct cli_divergence *d = &row->score.divergence;
    fputs("<tr><th scope=\"row\">", file);
    put_text(file, row->name);
    fprintf(file,
            "</th><td>%.1f</td><td>%.1f</td><td>%.6f ± %.6f</td><td>%.6f</td><td>%.6f</td>"
            "<td>%.2f ± %.2f</td><td>%.2f ± %.2f</td><td>%.4f ± %.4f</td><td>%+.2f ± %.2f</td>"
            "</tr>\n",
            megabytes_of(row), row->score.rate, d->kl.value, d->kl.error, d->kl_median, d->kl_99,
            100.0 * d->top_1.value, 100.0 * d->top_1.error, 100.0 * d->top_5.value,
            100.0 * d->top_5.error, d->perplexity.value, d->perplexity.error,
            100.0 * (d->ratio.value - 1.0), 100.0 * d->ratio.error);
}

static void put_table(FILE *file, const struct cli_report_row *rows, size_t n)
{
    fputs("<h2 id=\"figures\">Figures</h2>\n<div class=\"wide\">\n<table>\n"
          "<thead><tr><th scope=\"col\">model</th><th scope=\"col\">MB</th>"
          "<th scope=\"col\">tokens/s</th><th scope=\"col\">KL</th>"
          "<th scope=\"col\">KL, median</th><th scope=\"col\">KL, 99 %</th>"
          "<th scope=\"col\">top-1, %</th><th scope=\"col\">top-5, %</th>"
          "<th scope=\"col\">perplexity</th><th scope=\"col\">change, %</th></tr></thead>\n"
          "<tbody>\n",
          file);
    for (size_t i = 0; i < n; i++)
        put_row(file, &rows[i]);
    fputs("</tbody>\n</table>\n</div>\n", file);
}

void cli_report_page(FILE *file, const char *base, const struct cli_report_row *rows, size_t n)
{
    const struct cli_text_score *first = &rows[0].score;
    put_head(file);
    fputs("<h1>Quality of quantized models</h1>\n<p>Compared with <strong>", file);
    put_text(file, base);
    fprintf(file,
            "</strong>, whose perplexity is %.4f ± %.4f, at %zu positions of a text: %zu chunks of "
            "%zu tokens. ± is the standard error. A lower KL divergence means predictions nearer "
            "to those of the base; tokens/s are generated one after the other on this machine.</p>"
            "\n",
            first->divergence.base_perplexity.value, first->divergence.base_perplexity.error,
            first->n_tokens, first->n_chunks, first->context);
    put_plot(file, "size", "Size and loss", "MB", megabytes_of, rows, n);
    put_plot(file, "speed", "Speed and loss", "tokens/s", rate_of, rows, n);
    put_table(file, rows, n);
    fprintf(file, "<p>Made by akunu-cli report, akunu %s.</p>\n</main>\n</body>\n</html>\n",
            akunu_version());
}
