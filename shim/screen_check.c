/*
 * Filters what tests/test_screen.py writes, with the helper's own screen.c; never shipped.
 *
 * A line of standard input is one session: what the shell's side writes, as x and hex digits, a word for
 * each read. The answer is what the terminal is shown, then of the last command: whether it runs, the
 * digit that it ended with, whether it was full-screen, and its total and tail.
 */
#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 4 * 1024 * 1024 };

static void print_bytes(const char *bytes, size_t size)
{
    putchar('x');
    for (size_t i = 0; i < size; i++)
        printf("%02x", (unsigned char)bytes[i]);
}

/* In a buffer of just the room that the filter may use, so that a sanitizer sees every byte beyond. */
static char *parse_hex(const char *word, size_t *size)
{
    char *bytes;

    *size = strlen(word + 1) / 2;
    bytes = malloc(*size + SCREEN_MARK_MAX);
    if (bytes == NULL)
        exit(2);
    for (size_t i = 0; i < *size; i++) {
        const char pair[] = {word[1 + 2 * i], word[2 + 2 * i], '\0'};
        bytes[i] = (char)strtoul(pair, NULL, 16);
    }
    return bytes;
}

static void print_state(const struct screen *screen)
{
    static char tail[TAIL_SIZE];
    size_t size = tail_size(&screen->tail);

    tail_copy(&screen->tail, tail, size);
    printf(" %d %c %d %llu ", screen->is_command, screen->ended == '\0' ? '-' : screen->ended,
           screen->is_full_screen, (unsigned long long)screen->tail.total);
    print_bytes(tail, size);
}

static void filter_session(char *line)
{
    static struct screen screen;
    static char shown[LINE_MAX_BYTES];
    size_t total = 0;

    screen_open(&screen, "0123456789abcdef");
    for (char *word = strtok(line, " \n"); word != NULL; word = strtok(NULL, " \n")) {
        size_t size;
        char *bytes = parse_hex(word, &size);
        size = screen_filter(&screen, bytes, size);
        memcpy(shown + total, bytes, size);
        total += size;
        free(bytes);
    }
    total += screen_release(&screen, shown + total);
    print_bytes(shown, total);
    print_state(&screen);
    putchar('\n');
    fflush(stdout);
}

int main(void)
{
    static char line[LINE_MAX_BYTES];

    while (fgets(line, sizeof line, stdin) != NULL)
        filter_session(line);
    return 0;
}
