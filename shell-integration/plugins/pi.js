
export default function flightrec(pi) {
  const notes = new Map() // call → what its model is to read with the result
  let briefing = ""

  const common = (ctx, id) => ({ session: ctx.sessionManager.getSessionId(), id, cwd: ctx.cwd })

  const on = (event, handler) => pi.on(event, safely(handler))

  // Where nobody can be asked, the reason says how to go on.
  const refuses = async ({ decision, reason }, ctx) =>
    decision === "deny" ||
    (decision === "ask" && !(ctx.hasUI && (await ctx.ui.confirm("flightrec", reason))))

  const textOf = (content) =>
    (content ?? []).filter((part) => part.type === "text").map((part) => part.text).join("\n")

  on("session_start", async (_event, ctx) => {
    Object.assign(process.env, shellVariables(ctx.sessionManager.getSessionId()))
    briefing = (await tell({ ...common(ctx), event: "session_start" })).context ?? ""
  })

  on("session_shutdown", async (_event, ctx) => {
    await tell({ ...common(ctx), event: "session_end" })
  })

  on("before_agent_start", async (event, ctx) => {
    await tell({ ...common(ctx), event: "prompt", prompt: event.prompt })
    if (briefing) return { systemPrompt: `${event.systemPrompt}\n\n${briefing}` }
  })

  on("tool_call", async (event, ctx) => {
    const command = event.input?.command
    if (event.toolName !== "bash" || typeof command !== "string") return
    const answer = await tell({ ...common(ctx, event.toolCallId), event: "before", command })
    if (answer.reason && (await refuses(answer, ctx))) return { block: true, reason: answer.reason }
    if (answer.decision === "rewrite" && answer.command) event.input.command = answer.command
    const note = answer.context ?? (answer.decision === "rewrite" ? answer.reason : undefined)
    if (note) notes.set(event.toolCallId, note)
  })

  on("tool_result", async (event, ctx) => {
    const command = event.input?.command
    if (event.toolName !== "bash" || typeof command !== "string") return
    const output = lastPart(textOf(event.content))
    const call = common(ctx, event.toolCallId)
    const answer = await tell({ ...call, event: "after", command, output })
    const told = [notes.get(event.toolCallId), answer.context].filter(Boolean)
    notes.delete(event.toolCallId)
    if (told.length > 0) {
      const added = told.map((note) => ({ type: "text", text: `\n${note}\n` }))
      return { content: [...event.content, ...added] }
    }
  })
}
