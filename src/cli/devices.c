/* --list-devices: what --device can name. */
#include "cli/commands.h"
#include "cli/message.h"
#include "cli/output.h"

int cli_list_devices(void)
{
    struct akunu_device_info d = { .size = sizeof d };
    struct cli_output out = cli_output_stdout();
    enum akunu_status status;
    size_t i = 0;
    for (; (status = akunu_device_at(i, &d)) == AKUNU_OK; i++) {
        cli_output_format(&out, "%zu  %s (%s)%s\n", i, d.name, d.backend,
                          d.usable ? "" : ", not usable");
        cli_output_format(&out, "   %s, driver %s, %s\n", d.vendor, d.driver, d.version);
        cli_output_format(&out, "   memory %.1f GB, %.1f GB in one piece; %u units, %u MHz; %s\n",
                          (double)d.memory / 1e9, (double)d.most_allocation / 1e9, d.units, d.mhz,
                          d.features);
    }
    if (i == 0)
        cli_output_format(&out, "no OpenCL device: %s\n", akunu_last_error());
    return cli_output_end(&out, CLI_EXIT_OK);
}
