import { type Conversation, look, lookWith, type TreeReader } from '../../doors/rows.ts'
import type { Id, RunOutcome } from '../../index.ts'
import { EXIT } from '../command/command.ts'
import { legate, shellWord } from '../command/next-command.ts'
import type { Desk, DeskRows, DeskRun } from '../desk/desk.ts'
import { shownId } from '../store/find-run.ts'
import { age, duration, plural } from '../terminal/amounts.ts'
import { cleanText, oneLine } from '../terminal/clean.ts'
import { outputColumns } from '../terminal/output.ts'
import { wrapSigned } from '../terminal/width.ts'
import { type OpenState, openStateOf } from '../watch/activity.ts'
import { approveCommands, describeWholeCall, questionOnOneLine, replyCommand } from '../watch/request-text.ts'
import { workspaceOf } from '../watch/words.ts'

/** Why a worker can do no more for a run: it ended, a person must answer, or the code is missing. */
export interface RunVerdict {
  readonly exitCode: number
  readonly text: string
}

/** A standstill; without an exit code if a process must stay alive for it. */
export interface Standstill {
  readonly exitCode: number | null
  readonly text: string
}

export async function endOf(desk: Desk, run: DeskRun, again: ContinueCommand): Promise<RunVerdict> {
  const { status, text, error, advice: usual, durationMs, children } = await run.result
  const advice = ADVICE[status]?.(again(run.id)) ?? usual
  const head = `${await runName(desk, run)} ${oneLine(status)} after ${duration(durationMs)}, ${plural(children, 'subagent')}`
  const why = error === null ? '' : `: ${oneLine(error.message)}${advice === null ? '' : `\n  ${oneLine(advice)}`}`
  const words = text.trim() === '' ? '' : `\n\n${indented(cleanText(text))}\n`
  return { exitCode: status === 'completed' ? EXIT.completed : EXIT.other, text: `${head}${why}${words}` }
}

/** Advice for the person; the run's own message is for the agent that started it. */
const ADVICE: Readonly<Record<string, (command: string) => string>> = {
  cancelled: (command) => `Continue with: ${command}`,
  denied: () => 'Run it again and allow the request, or remove the request from the file.',
}

/** Reports a run whose answer is shown elsewhere: only if it did not complete. */
export async function reportFailure(desk: Desk, run: DeskRun, again: ContinueCommand): Promise<RunVerdict> {
  const verdict = await endOf(desk, run, again)
  return verdict.exitCode === EXIT.completed ? { ...verdict, text: '' } : verdict
}

/**
 * Describes a standstill; null while the run may continue by itself. No exit code if a process must stay alive for it.
 */
export async function standstillOf(
  desk: Desk,
  run: DeskRun,
  { known, goOn }: { readonly known: ReadonlySet<string>; readonly goOn: ContinueCommand },
): Promise<Standstill | null> {
  const turn = await lookWith(desk.store, run.id, (tree) => tree.turn(run.id))
  if (turn === undefined || turn.state === 'ended' || turn.cancel !== null) return null
  const standing = await openStateOf(desk, turn)
  const { state, asked, questions, needs, pids, wakes } = standing
  const name = await runName(desk, run)
  const lines = await look(desk.store, turn.rootId, (tree) => waitingLines(tree, standing))
  const text = `${name} waits for a person:\n${lines.join('\n')}`
  if (state === 'parked' && pids.length > 0) {
    const holder = pids.includes(process.pid) ? 'this process' : `process ${pids.join(', ')}`
    return { exitCode: null, text: `${text}\n  Its code must not run twice, so ${holder} stays alive for it.` }
  }
  if (pids.length > 0 || wakes || needs.some((agent) => known.has(agent))) return null
  if (asked.length + questions.length > 0) {
    return { exitCode: EXIT.parked, text: `${text}\n  Then: ${goOn(run.id)}` }
  }
  if (needs.length === 0) return null
  const missing = needs.map((agent) => `"${oneLine(agent)}"`).join(', ')
  return {
    exitCode: EXIT.other,
    text: `${name} needs code that the module lacks: export the agent ${missing}.`,
  }
}

function waitingLines(tree: TreeReader, { asked, questions }: OpenState): string[] {
  return [
    ...asked.map(
      (node) =>
        `${indented(fitted(describeWholeCall(node, workspaceOf(tree, node.conversationId))))}\n    ${approveCommands(node)}`,
    ),
    ...questions.map((node) => `${indented(fitted(questionOnOneLine(node)))}\n    ${replyCommand(node)}`),
  ]
}

/** Chooses the exit code: failed before parked before completed, because the first needs action most. */
export function exitCodeOf(verdicts: readonly RunVerdict[]): number {
  const codes: readonly number[] = verdicts.map(({ exitCode }) => exitCode)
  return [EXIT.other, EXIT.parked].find((code) => codes.includes(code)) ?? EXIT.completed
}

export async function runName({ store }: Desk, { id, conversationId }: DeskRun): Promise<string> {
  const row = await lookWith(store, conversationId, (tree) => tree.conversation(conversationId))
  return `${oneLine(row?.agent.name ?? '?')} ${shownId(id)}`
}

/** Fits a text to the terminal and shows all of it, however many rows that takes. */
function fitted(text: string): string {
  return wrapSigned(text, outputColumns() - 3).lines.join('\n')
}

function indented(text: string): string {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => `  ${line}`.trimEnd())
    .join('\n')
}

/** Returns the printed answer of the last turn of a run's conversation; empty if it did not complete. */
export async function lastAnswer(desk: Desk, { conversationId }: Pick<DeskRun, 'conversationId'>): Promise<string> {
  const [last] = await lookWith(desk.store, conversationId, (tree) => tree.turnsOf(conversationId, { limit: 1 }))
  return last === undefined ? '' : answerOfRun(desk, last.id)
}

/** Returns the printed answer of a run; empty if it did not complete. */
export async function answerOfRun(desk: Desk, runId: Id): Promise<string> {
  const turn = await lookWith(desk.store, runId, (tree) => tree.turn(runId))
  if (turn?.state !== 'ended') return ''
  const { result } = await desk.attach(runId)
  return printedAnswer(await result)
}

/** Returns the answer as it is printed; empty if the run did not complete. */
export function printedAnswer({ status, text, output }: RunOutcome<unknown>): string {
  if (status !== 'completed') return ''
  const words = text.trim() === '' && output !== null ? JSON.stringify(output) : text
  const shown = process.stdout.isTTY ? `\n${cleanText(words)}` : words
  return shown.endsWith('\n') ? shown : `${shown}\n`
}

const LOOKED_AT = 200
const NAMED = 5

/** Writes the command that continues a cancelled run. */
export type ContinueCommand = (runId: Id) => string

/** Omits the file if the row holds everything needed. */
export function continueCommand(file?: string): ContinueCommand {
  const code = file === undefined ? '' : ` --module ${shellWord(file)}`
  return (runId) => legate(`resume ${shownId(runId)}${code}`)
}

/** Says that nothing is unfinished, and how to continue a cancelled run, which needs its id. */
export async function nothingOpen(store: DeskRows, again: (runId: Id, root: Conversation) => string): Promise<string> {
  const lines: string[] = []
  for (const root of await store.roots({ limit: LOOKED_AT })) {
    const [last] = await look(store, root.id, (tree) => tree.turnsOf(root.id, { limit: 1 }))
    if (last?.outcome?.status !== 'cancelled') continue
    const when = age(Date.now() - (last.endedAt ?? 0))
    lines.push(`\n  ${again(last.id, root)}  # ${oneLine(root.agent.name)}, ${when} ago`)
    if (lines.length === NAMED) break
  }
  const nothing = 'Nothing is unfinished in this store.'
  return lines.length === 0 ? nothing : `${nothing} To continue a cancelled run, name it:${lines.join('')}`
}
