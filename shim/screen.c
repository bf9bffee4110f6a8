#include "screen.h"

#include <stdio.h>
#include <string.h>

enum { ESC = 0x1b, BEL = 0x07 };

void screen_open(struct screen *screen, const char *nonce)
{
    int size;

    memset(screen, 0, sizeof *screen);
    size = snprintf(screen->mark, sizeof screen->mark, "\033]6973;%.*s;", SCREEN_NONCE_SIZE, nonce);
    screen->mark_size = (size_t)size;
}

/* ---- the alternate screen ---- */

static bool is_alternate_screen(unsigned mode)
{
    return mode == 47 || mode == 1047 || mode == 1049;
}

/* One more byte of what began with ESC: `ESC [ ? 1049 h`, also with several modes at once. */
static void step_mode(struct screen *screen, char byte)
{
    static const char PREFIX[] = "\033[?";

    if (screen->mode_step < 3) {
        screen->mode_step = byte == PREFIX[screen->mode_step] ? screen->mode_step + 1 : 0;
        screen->mode = 0;
    } else if (byte >= '0' && byte <= '9' && screen->mode < 10000) {
        screen->mode = screen->mode * 10 + (unsigned)(byte - '0');
    } else {
        if (is_alternate_screen(screen->mode) && (byte == 'h' || byte == ';'))
            screen->is_full_screen = true; /* `1049;...l` leaves it: then it was there before */
        screen->mode = 0;
        if (byte != ';')
            screen->mode_step = 0;
    }
}

/* A full-screen program's output is a picture, not an error text. */
static void watch_modes(struct screen *screen, const char *bytes, size_t size)
{
    const char *end = bytes + size;

    while (bytes < end) {
        if (screen->mode_step == 0) {
            bytes = memchr(bytes, ESC, (size_t)(end - bytes));
            if (bytes == NULL)
                return;
        }
        step_mode(screen, *bytes);
        /* The byte that breaks one sequence off may begin the next. */
        if (screen->mode_step == 0 && *bytes == ESC)
            screen->mode_step = 1;
        bytes++;
    }
}

/* ---- marks ---- */

static void obey_mark(struct screen *screen)
{
    const char *verb = screen->held + screen->mark_size;
    size_t size = screen->held_size - screen->mark_size;

    if (size == 1 && verb[0] == 'C') {
        screen->begun++;
        screen->is_command = true;
        screen->is_full_screen = false;
        screen->ended = '\0';
        screen->tail.total = 0;
    } else if (size == 2 && verb[0] == 'D') {
        screen->is_command = false;
        screen->ended = verb[1];
    }
}

/* Whether `byte` goes on with what may be a mark. */
static bool may_be_mark(const struct screen *screen, char byte)
{
    size_t at = screen->held_size;

    if (at < screen->mark_size)
        return byte == screen->mark[at];
    if (at == screen->mark_size)
        return byte == 'C' || byte == 'D';
    return at == screen->mark_size + 1 && screen->held[at - 1] == 'D' && byte >= '0' && byte <= '9';
}

static size_t put(struct screen *screen, char *out, const char *bytes, size_t size)
{
    if (screen->is_command) {
        watch_modes(screen, bytes, size);
        tail_add(&screen->tail, bytes, size);
    }
    memmove(out, bytes, size);
    return size;
}

size_t screen_release(struct screen *screen, char out[SCREEN_MARK_MAX])
{
    size_t size = screen->held_size;

    screen->held_size = 0;
    return put(screen, out, screen->held, size);
}

/* `in` is read ahead of `out`, but for what was held from the bytes before these: hence the shift. */
size_t screen_filter(struct screen *screen, char *bytes, size_t size)
{
    size_t shift = screen->held_size;
    char *in = bytes, *end, *out = bytes;

    if (shift > 0) {
        memmove(bytes + shift, bytes, size);
        in = bytes + shift;
    }
    end = in + size;
    while (in < end) {
        if (screen->held_size == 0) {
            char *escape = memchr(in, ESC, (size_t)(end - in));
            size_t plain = (size_t)((escape == NULL ? end : escape) - in);
            out += put(screen, out, in, plain);
            in += plain;
            if (escape == NULL)
                break;
        }
        if (may_be_mark(screen, *in)) {
            screen->held[screen->held_size++] = *in++;
        } else if (*in == BEL && screen->held_size > screen->mark_size) {
            obey_mark(screen);
            screen->held_size = 0;
            in++;
        } else {
            out += screen_release(screen, out);
        }
    }
    return (size_t)(out - bytes);
}
