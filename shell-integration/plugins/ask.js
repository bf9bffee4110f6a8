// Written by flightrec; `flightrec hook uninstall AGENT` takes it away. Changes are lost.
//
// It tells flightrec on this machine what commands run and how they end, and hands on what it answers.
// It never throws but to deny what a rule of yours denies, and never takes longer than LIMIT_MS, once in
// QUIET_MS.
import { spawn } from "node:child_process"
import { accessSync, constants } from "node:fs"

const AGENT = "@AGENT@"
const FOLDER = "@FOLDER@"
const HELPER = "@HELPER@"
const STARTER = "@STARTER@"
const LIMIT_MS = 1000
const QUIET_MS = 30 * 1000
const OUTPUT_MAX = 64 * 1024

const parse = (text) => {
  try {
    const answer = JSON.parse(text)
    return answer !== null && typeof answer === "object" ? answer : {}
  } catch {
    return {}
  }
}

let quietUntil = 0

const ask = (event) =>
  new Promise((resolve) => {
    let text = ""
    try {
      const helper = spawn(HELPER, ["hook", AGENT, STARTER], { stdio: ["pipe", "pipe", "ignore"] })
      const timer = setTimeout(() => {
        helper.kill("SIGKILL")
        quietUntil = Date.now() + QUIET_MS
        resolve({})
      }, LIMIT_MS)
      const finish = (answer) => {
        clearTimeout(timer)
        resolve(answer)
      }
      helper.on("error", () => finish({}))
      helper.on("close", () => finish(parse(text)))
      helper.stdin.on("error", () => {})
      helper.stdout.on("data", (data) => (text += data))
      helper.stdin.end(JSON.stringify(event))
    } catch {
      resolve({})
    }
  })

const isThere = () => {
  try {
    accessSync(HELPER, constants.X_OK)
    return true
  } catch {
    return false
  }
}

// What makes the shells of commands pass by the helper; nothing inside `flightrec run`, which has seen
// to that already.
const shellVariables = (session) =>
  process.env.FLIGHTREC_SESSION || !isThere()
    ? {}
    : {
        BASH_ENV: `${FOLDER}/bash-env.bash`,
        ZDOTDIR: `${FOLDER}/zdotdir`,
        FLIGHTREC_CLIENT_SESSION: session,
      }

const tell = async (event) => (Date.now() > quietUntil && isThere() ? await ask(event) : {})

// What a rule of the person's denies; every other error is ours, and nobody's business.
class Denied extends Error {}

const safely =
  (handler) =>
  async (...values) => {
    try {
      return await handler(...values)
    } catch (error) {
      if (error instanceof Denied) throw error
    }
  }

const lastPart = (text) => String(text ?? "").slice(-OUTPUT_MAX)
