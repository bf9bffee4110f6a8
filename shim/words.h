/* Words of a program's arguments as one line that a shell would read the same. */
#ifndef FLIGHTREC_WORDS_H
#define FLIGHTREC_WORDS_H

#include <stddef.h>
#include <stdint.h>

/* Write the words, quoted where they need it, into `line` as far as there is room. Return how many
 * bytes the whole line has. */
uint64_t words_join(char *line, size_t room, const char *first, char *const *others);

#endif
