#include "terminal.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int open_named(int standard, struct terminal *terminal)
{
    if (!isatty(standard) || ttyname_r(standard, terminal->name, sizeof terminal->name) != 0)
        return -1;
    /* Our own open file description: O_NONBLOCK on the shell's would reach every program there. */
    return open(terminal->name, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

void terminal_open(struct terminal *terminal)
{
    terminal->fd = open_named(STDIN_FILENO, terminal);
    if (terminal->fd < 0)
        terminal->fd = open_named(STDERR_FILENO, terminal);
    if (terminal->fd < 0)
        terminal->name[0] = '\0';
}

/* Size of the UTF-8 character at `at`, and its code point; 0 where it is none. */
static size_t decode(const unsigned char *at, uint32_t *point)
{
    static const uint32_t SMALLEST[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t size = at[0] < 0x80 ? 1 : at[0] < 0xc0 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;

    if (size == 0 || at[0] > 0xf4)
        return 0;
    *point = size == 1 ? at[0] : at[0] & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0; /* also the NUL of a character that is cut off */
        *point = *point << 6 | (at[i] & 0x3f);
    }
    return *point < SMALLEST[size] || *point > 0x10ffff ? 0 : size;
}

/* Controls, and what turns the writing direction or cannot be seen. */
static bool is_harmless(uint32_t point)
{
    return point >= 0x20 && !(point >= 0x7f && point < 0xa0) &&
           !(point >= 0x200b && point <= 0x200f) && !(point >= 0x2028 && point <= 0x202e) &&
           !(point >= 0x2060 && point <= 0x206f) && !(point >= 0xd800 && point < 0xe000) &&
           point != 0xfeff;
}

size_t terminal_clean(const char *text, char *out, size_t room)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t used = 0;
    int lines = 1;

    while (*at != '\0' && used + 4 <= room) {
        uint32_t point = 0;
        size_t size = decode(at, &point);
        if (point == '\n' && ++lines > HINT_LINES)
            break;
        if (point == '\n') {
            out[used++] = '\r';
            out[used++] = '\n';
        } else if (size == 0) {
            out[used++] = '?';
        } else if (is_harmless(point)) {
            memcpy(out + used, at, size);
            used += size;
        }
        at += size == 0 ? 1 : size;
    }
    return used;
}

size_t terminal_format_hint(const char *text, char out[HINT_MAX])
{
    size_t size = terminal_clean(text, out, HINT_MAX - 2);

    if (size == 0)
        return 0;
    memcpy(out + size, "\r\n", 2);
    return size + 2;
}

void terminal_print_hint(const struct terminal *terminal, const char *text)
{
    char out[HINT_MAX];
    size_t size = terminal_format_hint(text, out);

    if (size == 0 || terminal->fd < 0)
        return;
    if (write(terminal->fd, out, size) < 0)
        return; /* a stopped or vanished terminal: the command matters, the hint does not */
}
