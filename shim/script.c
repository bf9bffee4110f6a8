#include "script.h"

#include "agent.h"
#include "clock.h"
#include "line.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct request {
    const char *run, *shell, *cwd, *begin, *exit, *pipestatus;
    const char *command;
};

static const char **field_of(struct request *request, const char *option)
{
    const struct {
        const char *option;
        const char **field;
    } FIELDS[] = {
        {"--run", &request->run},     {"--shell", &request->shell},
        {"--cwd", &request->cwd},     {"--begin", &request->begin},
        {"--exit", &request->exit},   {"--pipestatus", &request->pipestatus},
    };

    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++)
        if (strcmp(FIELDS[i].option, option) == 0)
            return FIELDS[i].field;
    return NULL;
}

static int parse(struct request *request, int argc, char **argv)
{
    int at = 1;

    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        const char **field = field_of(request, argv[at]);
        if (strcmp(argv[at], "--") == 0) {
            at++;
            break;
        }
        if (field == NULL)
            return -1;
        *field = argv[at + 1];
    }
    if (at + 1 != argc)
        return -1;
    request->command = argv[at];
    return 0;
}

/* "1764500000.123456", with the comma of some languages too; 0 where it is no time. */
static int64_t parse_time_us(const char *text)
{
    char *end;
    int64_t seconds = text == NULL ? 0 : strtoll(text, &end, 10);

    if (seconds <= 0)
        return 0;
    return seconds * 1000000 + (*end == '\0' ? 0 : strtol(end + 1, NULL, 10));
}

static size_t parse_pipestatus(const char *text, int64_t pipestatus[WIRE_PIPESTATUS_MAX])
{
    size_t count = 0;
    char *end;

    for (; text != NULL && count < WIRE_PIPESTATUS_MAX; text = end) {
        long status = strtol(text, &end, 10);
        if (end == text)
            break;
        pipestatus[count++] = status;
    }
    return count;
}

static void finish(const struct request *request, int64_t now_us)
{
    int64_t pipestatus[WIRE_PIPESTATUS_MAX], begin_us = parse_time_us(request->begin);
    char *end;
    int64_t exit_status = strtoll(request->exit, &end, 10);
    struct report_end report = {
        .exit = end == request->exit ? WIRE_UNKNOWN : exit_status,
        .signal = WIRE_UNKNOWN,
        .usec = begin_us == 0 ? WIRE_UNKNOWN : now_us - begin_us,
        .pipestatus = pipestatus,
    };

    report.pipestatus_count = parse_pipestatus(request->pipestatus, pipestatus);
    if (report.pipestatus_count > 0 &&
        pipestatus[report.pipestatus_count - 1] != report.exit)
        report.pipestatus_count = 0; /* that of an earlier pipeline */
    report_finish(&report);
}

int report_main(int argc, char **argv)
{
    struct request request = {.shell = "bash"};
    struct agent agent;
    uint8_t run[WIRE_ID_SIZE];
    int64_t now_us = clock_wall_us();
    enum line_kind line;

    if (parse(&request, argc, argv) < 0) {
        fputs("flightrec-helper report: bad arguments\n", stderr);
        return REPORT_SILENT;
    }
    if (!agent_find(&agent))
        return REPORT_SILENT;
    line = line_judge(request.command);
    if (line != LINE_COMMAND)
        return line == LINE_OUTER    ? REPORT_OUTER
               : line == LINE_SILENT ? REPORT_SILENT
                                   : REPORT_PRIVATE;
    struct report_command command = {
        .source = SOURCE_ENV,
        .shell = request.shell,
        .command = bytes_of(request.command),
        .command_total = strlen(request.command),
        .cwd = request.cwd,
        .run = agent_parse_id(request.run, run) == 0 ? run : NULL,
        .begin_us = request.exit == NULL ? 0 : parse_time_us(request.begin),
        .may_hint = request.exit == NULL,
    };
    if (request.exit != NULL && command.begin_us == 0)
        command.begin_us = now_us; /* one message after the other, without waiting */
    report_start(&agent, &command);
    if (request.exit == NULL)
        report_running();
    else
        finish(&request, now_us);
    return REPORT_RECORDED;
}
