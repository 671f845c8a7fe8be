import type { Run, Runtime } from '../../index.ts'
import { EXIT } from '../command.ts'
import { shortId } from '../find-run.ts'
import { duration, plural } from '../terminal/amounts.ts'
import { cleanText, oneLine } from '../terminal/clean.ts'
import { outputColumns } from '../terminal/output.ts'
import { wrap } from '../terminal/wrap.ts'
import { answersOf, wholeCallOf } from '../watch/asked.ts'
import { standingOf } from '../watch/standing.ts'
import type { TakeUp } from './cancelled-runs.ts'

/** Why a worker can do no more for a run: it is over, a person must answer, or the code is missing. */
export interface Verdict {
  readonly exitCode: number
  readonly text: string
}

export async function endOf(runtime: Runtime, run: Run, again: TakeUp): Promise<Verdict> {
  const { status, text, error, advice: usual, durationMs, children } = await run.result
  const advice = status === 'cancelled' ? `Go on with it: ${again(run.id)}` : usual
  const head = `${nameOf(runtime, run)} ${status} after ${duration(durationMs)}, ${plural(children, 'subagent')}`
  const why = error === null ? '' : `: ${oneLine(error.message)}${advice === null ? '' : `\n  ${oneLine(advice)}`}`
  const words = text.trim() === '' ? '' : `\n\n${indented(cleanText(text))}\n`
  return { exitCode: status === 'completed' ? EXIT.completed : EXIT.other, text: `${head}${why}${words}` }
}

/** Null as long as it may go on by itself. */
export function standstillOf(runtime: Runtime, run: Run, known: ReadonlySet<string>): Verdict | null {
  const turn = runtime.store.turn(run.id)
  if (turn === undefined || turn.state === 'ended' || turn.cancel !== null) return null
  const { asked, needs, pids, wakes } = standingOf(runtime, turn)
  if (pids.length > 0 || wakes || needs.some((agent) => known.has(agent))) return null
  const name = nameOf(runtime, run)
  if (asked.length > 0) {
    const calls = asked.map((node) => `${indented(fitted(wholeCallOf(node)))}\n    ${answersOf(node.id)}`)
    return { exitCode: EXIT.parked, text: `${name} waits for a person:\n${calls.join('\n')}` }
  }
  if (needs.length === 0) return null
  const missing = needs.map((agent) => `"${oneLine(agent)}"`).join(', ')
  return {
    exitCode: EXIT.other,
    text: `${name} needs code that the module does not have: export the agent ${missing}.`,
  }
}

/** Failed before parked before completed: the first says most about what to do. */
export function exitCodeOf(verdicts: readonly Verdict[]): number {
  const codes: readonly number[] = verdicts.map(({ exitCode }) => exitCode)
  return [EXIT.other, EXIT.parked].find((code) => codes.includes(code)) ?? EXIT.completed
}

export function nameOf({ store }: Runtime, { id, conversationId }: Run): string {
  return `${oneLine(store.conversation(conversationId)?.agent.name ?? '?')} ${shortId(id)}`
}

/** What is asked for is shown whole, however many rows that takes. */
function fitted(text: string): string {
  return wrap(text, outputColumns() - 3).lines.join('\n')
}

function indented(text: string): string {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => `  ${line}`.trimEnd())
    .join('\n')
}
