/*
 * Role hook: `flightrec-helper hook AGENT [STARTER]`, called by an agent's client for an event of its own.
 *
 * What the client writes to standard input goes to the daemon as it is, what the daemon answers to
 * standard output. Nothing else is ever printed, and the status is 0 whatever happens: to a client,
 * others mean that it may not go on.
 */
#ifndef FLIGHTREC_HOOK_H
#define FLIGHTREC_HOOK_H

int hook_main(int argc, char **argv);

#endif
