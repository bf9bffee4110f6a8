
export const Flightrec = async ({ directory }) => {
  const briefings = new Map() // session → what its model is to know from the start
  const notes = new Map() // call → what its model is to read with the result

  const common = (session, id) => ({ session, id, cwd: directory })

  const brief = async (session) => {
    if (session && !briefings.has(session)) {
      briefings.set(session, "")
      const answer = await tell({ ...common(session), event: "session_start" })
      briefings.set(session, answer.context ?? "")
    }
    return briefings.get(session)
  }

  const denies = ({ decision, reason }) => (decision === "deny" || decision === "ask") && reason

  return {
    "shell.env": safely(async ({ sessionID }, output) => {
      Object.assign(output.env, shellVariables(sessionID))
    }),

    "tool.execute.before": safely(async ({ tool, sessionID, callID }, output) => {
      const command = output.args?.command
      if (tool !== "bash" || typeof command !== "string") return
      const cwd = output.args.workdir ?? directory
      const answer = await tell({ ...common(sessionID, callID), cwd, event: "before", command })
      // there is nobody to ask here: the reason says how to go on
      if (denies(answer)) throw new Denied(answer.reason)
      if (answer.decision === "rewrite" && answer.command) output.args.command = answer.command
      const note = answer.context ?? (answer.decision === "rewrite" ? answer.reason : undefined)
      if (note) notes.set(callID, note)
    }),

    "tool.execute.after": safely(async ({ tool, sessionID, callID, args }, output) => {
      if (tool !== "bash" || typeof args?.command !== "string") return
      const { exit, output: text } = output.metadata ?? {}
      const answer = await tell({
        ...common(sessionID, callID),
        cwd: args.workdir ?? directory,
        event: "after",
        command: args.command,
        output: lastPart(text ?? output.output),
        exit: exit ?? null,
      })
      for (const note of [notes.get(callID), answer.context]) {
        if (note && typeof output.output === "string") output.output += `\n${note}\n`
      }
      notes.delete(callID)
    }),

    "chat.message": safely(async ({ sessionID }, { parts }) => {
      const texts = (parts ?? []).filter((part) => part.type === "text" && !part.synthetic)
      const prompt = texts.map((part) => part.text).join("\n")
      if (prompt) await tell({ ...common(sessionID), event: "prompt", prompt })
    }),

    "experimental.chat.system.transform": safely(async ({ sessionID }, { system }) => {
      const briefing = await brief(sessionID)
      if (briefing) system.push(briefing)
    }),

    event: safely(async ({ event }) => {
      if (event?.type !== "session.deleted") return
      const session = event.properties?.info?.id ?? event.properties?.sessionID
      if (session) await tell({ ...common(session), event: "session_end" })
    }),
  }
}
