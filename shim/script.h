/*
 * The role `report`: what an agent's shell tells through a script of ours where no stand-in can be
 * around it, which is a login bash started by its full path, and a shell that reads its commands from
 * standard input.
 */
#ifndef FLIGHTREC_SCRIPT_H
#define FLIGHTREC_SCRIPT_H

/* `flightrec-helper report [--run ID] [--shell NAME] [--cwd DIR] [--begin SECONDS.MICROSECONDS]
 * [--exit STATUS|unknown] [--pipestatus "STATUS..."] [--] COMMAND`
 *
 * Without --exit, the command is about to run: a hint for it goes to standard error, and the status
 * says what the command is. */
enum { REPORT_RECORDED = 0, REPORT_OUTER = 3, REPORT_SILENT = 4, REPORT_PRIVATE = 5 };
int report_main(int argc, char **argv);

#endif
