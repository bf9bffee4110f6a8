/*
 * What of a pane's text a command has written (pure): the lines below the one with which it was typed.
 */
#ifndef FLIGHTREC_PANE_TEXT_H
#define FLIGHTREC_PANE_TEXT_H

#include "wire.h"

/* `shown` ends before the next prompt; `columns` is the pane's width. The result's `data` is NULL where
 * the typed line is not there, or where another prompt stands below it: then something else was typed,
 * which may be private and is no error text. */
struct bytes pane_text_output(struct bytes shown, size_t columns, struct bytes command);

#endif
