// Runs one hook of an agent file and reads what it says.
//
// Must stay true:
//   - A hook is a program like any other: decided by the layers, started by the one function that starts programs (I11).
//   - A hook takes away and never adds. One that cannot start, takes too long, crashes or is not understood has said no.

import { type NodeRun, ownFolderOf } from '../../core/agent/hooks/node-run.ts'
import { messageOf } from '../../core/base/error.ts'
import { isRecord, type Json, parseJson } from '../../core/base/json.ts'
import { type ProgramRequest, programRequest, requestText } from '../../core/grant/request.ts'
import { plainEnvironment } from '../../core/tool/environment.ts'
import type { PendingPermission } from '../../core/tool/invoke.ts'
import { permit, type Requester } from '../../core/tool/permit.ts'
import { type ProcessResult, runProgram } from '../../core/tool/run-process.ts'
import { type FileHook, wordsOfHook } from '../agent-file/file-hook.ts'

/** Where hooks run. `folder` is part of what is decided, where a model chose the folder. */
export interface HookFolder {
  readonly cwd: string
  readonly folder: string | null
}

/** The decision of a hook on the call that it was shown. */
export type HookVerdict =
  | { readonly says: 'no'; readonly reason: string; readonly isBroken: boolean }
  | { readonly says: 'ask'; readonly reason: string }
  | { readonly says: 'nothing'; readonly changed: Json | undefined; readonly words: string; readonly allows: boolean }

/** The program of a hook, after it was decided; or why it does not start, or the question for a person. */
export function permitHook(
  run: Requester,
  hook: FileHook,
  place: HookFolder,
): ProgramRequest | { readonly refused: string } | PendingPermission {
  const request = programRequest(wordsOfHook(hook), { folder: place.folder })
  const permission = permit(run, request, { hook: hook.event })
  if (permission.verdict === 'ask') return permission
  if (permission.verdict === 'allow') return permission.request
  return {
    refused: `the hook ${shownHook(hook)} does not start: ${requestText(request)} is not allowed here: ${permission.reason}`,
  }
}

/** Runs the decided program of a hook with what it is shown. Rejects where the run is stopped meanwhile. */
export async function runHook(
  run: NodeRun,
  hook: FileHook,
  { request, place, shown }: { readonly request: ProgramRequest; readonly place: HookFolder; readonly shown: Json },
): Promise<HookVerdict> {
  const ran = await taped(run, hook, () => start(run, hook, { request, place, shown }))
  return 'trouble' in ran ? broken(hook, ran.trouble) : verdictOf(hook, ran)
}

/** Runs `work` with the folder of the owner's files, else with the folder of the agent. */
export function inFolder<T>(run: NodeRun, { cwd, folder }: HookFolder, work: (real: string) => Promise<T>): Promise<T> {
  // A folder that a model chose is one of the owner's already.
  const own = folder === null ? ownFolderOf(run) : null
  return own === null ? work(cwd) : own.use(work)
}

type Ran = Pick<ProcessResult, 'exitCode' | 'stdout' | 'stderr' | 'isCut' | 'timedOut'> | { readonly trouble: string }

const MOST_BYTES = 262_144

async function start(
  run: NodeRun,
  hook: FileHook,
  { request, place, shown }: { readonly request: ProgramRequest; readonly place: HookFolder; readonly shown: Json },
): Promise<Ran> {
  const { signal } = run.work
  try {
    return await inFolder(run, place, (cwd) =>
      runProgram(request, {
        signal,
        cwd,
        env: { ...plainEnvironment(), AGENT: 'legate', CLAUDE_PROJECT_DIR: cwd },
        input: `${JSON.stringify(shown)}\n`,
        timeoutMs: hook.seconds * 1_000,
        maxOutputBytes: MOST_BYTES,
      }),
    )
  } catch (error) {
    signal.throwIfAborted()
    return { trouble: messageOf(error) }
  }
}

/** A recording keeps what a hook said: on replay no program starts. */
async function taped(run: NodeRun, hook: FileHook, code: () => Promise<Ran>): Promise<Ran> {
  const { node, work, home } = run
  if (home.live.tape === null) return code()
  const running = { node, work, current: null, name: 'exec', input: { hook: hook.event, command: hook.command } }
  const given = await home.live.tape.run(running, async () => ({ value: (await code()) as unknown as Json }))
  if ('value' in given) return given.value as unknown as Ran
  work.signal.throwIfAborted()
  return { trouble: 'error' in given ? String(given.error) : 'it was stopped' }
}

/** The exit code by which a hook says no. */
const NO = 2
const MOST_WORDS = 10_000

function verdictOf(hook: FileHook, ran: Exclude<Ran, { trouble: string }>): HookVerdict {
  const { exitCode, stdout, stderr, isCut, timedOut } = ran
  const said = stderr.trim().slice(0, MOST_WORDS)
  if (timedOut) return broken(hook, `it took longer than ${hook.seconds} s`)
  if (exitCode === NO) return no(said === '' ? `the hook ${shownHook(hook)} gives no reason` : said)
  if (exitCode !== 0) return broken(hook, `it ended with exit code ${exitCode}${said === '' ? '' : `: ${said}`}`)
  if (isCut) return broken(hook, `it wrote more than ${MOST_BYTES / 1_024} KB`)
  const text = stdout.trim()
  if (!text.startsWith('{')) return NOTHING
  const parsed = parseJson(text)
  if (!parsed.ok || !isRecord(parsed.value))
    return broken(hook, `its JSON cannot be read${parsed.ok ? '' : `: ${parsed.error}`}`)
  return answerOf(hook, parsed.value as Fields)
}

type Fields = { readonly [key: string]: Json }

const NOTHING: HookVerdict = { says: 'nothing', changed: undefined, words: '', allows: false }

/** Words for a yes: a hook that says one has no say. */
const YES: readonly Json[] = ['allow', 'approve']
const DENIES: readonly Json[] = ['deny', 'block']

function answerOf(hook: FileHook, fields: Fields): HookVerdict {
  const specific = fields['hookSpecificOutput'] ?? {}
  if (!isRecord(specific)) return broken(hook, '`hookSpecificOutput` is not an object')
  const own = specific as Fields
  const reason =
    textOf(own['permissionDecisionReason']) ?? textOf(fields['reason']) ?? `the hook ${shownHook(hook)} gives no reason`
  if (fields['continue'] === false) return no(textOf(fields['stopReason']) ?? reason)
  const said = [own['permissionDecision'], fields['decision']].filter((one) => one !== undefined && one !== null)
  if (said.some((one) => DENIES.includes(one))) return no(reason)
  const odd = said.find((one) => one !== 'ask' && !YES.includes(one))
  if (odd !== undefined) return broken(hook, `its decision ${JSON.stringify(odd).slice(0, MOST_SHOWN)} is not known`)
  if (own['updatedToolOutput'] !== undefined || own['updatedMCPToolOutput'] !== undefined) {
    return broken(hook, 'it changes the result of a tool, and a hook may only refuse it')
  }
  if (said.includes('ask')) return { says: 'ask', reason }
  const changed = own['updatedInput'] ?? undefined
  return { says: 'nothing', changed, words: textOf(own['additionalContext']) ?? '', allows: said.length > 0 }
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value.trim().slice(0, MOST_WORDS) : undefined
}

function no(reason: string): HookVerdict {
  return { says: 'no', reason, isBroken: false }
}

function broken(hook: FileHook, why: string): HookVerdict {
  return { says: 'no', reason: `the hook ${shownHook(hook)} failed, which counts as a no: ${why}`, isBroken: true }
}

const MOST_SHOWN = 80

export function shownHook({ command }: Pick<FileHook, 'command'>): string {
  return command.length > MOST_SHOWN ? `${command.slice(0, MOST_SHOWN).toWellFormed()}…` : command
}
