/*
 * Who runs us where `flightrec run` did not say it: an agent whose settings name our scripts. Agents
 * mark the shells that they start; daemon/flightrec/agent_marks.py has the same table.
 */
#ifndef FLIGHTREC_MARKS_H
#define FLIGHTREC_MARKS_H

/* Put into the environment what `flightrec run` would have: AGENT_SESSION and AGENT_NAME, AGENT_STARTER
 * where it is known, and the person's own BASH_ENV and ZDOTDIR, which the agent had before its
 * settings. Return -1 where no agent has left a mark. */
int marks_adopt(void);

/* Who runs us: by `flightrec run`, or else by a mark. NULL for a person; at most WIRE_WORD_MAX bytes. */
const char *marks_agent(void);

#endif
