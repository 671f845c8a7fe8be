import type { RunEvent, Runtime, Turn } from '../../index.ts'
import { EXIT } from '../command.ts'
import { shortId } from '../find-run.ts'
import { oneLine } from '../terminal/clean.ts'
import { note } from '../terminal/output.ts'
import { answersOf, replyTo } from './asked.ts'
import { standingOf } from './standing.ts'

/** Every event of a run from its beginning to its end, whichever process runs it. */
export async function followRun(
  runtime: Runtime,
  turn: Turn,
  take: (event: RunEvent) => void | Promise<void>,
): Promise<void> {
  const run = runtime.attach(turn.id)
  // Waiting for the end keeps the process alive; iterating alone does not.
  const { result } = run
  for await (const event of run) await take(event)
  await result
}

/** A person who follows a run that nobody works on would wait for nothing. */
export function noteStandstill(runtime: Runtime, turn: Turn): void {
  const { state, asked, questions, needs } = standingOf(runtime, turn)
  if (state === 'parked') {
    for (const node of asked) note(`It waits for a person: ${answersOf(node)}.`)
    for (const { id } of questions) note(`It waits for an answer: ${replyTo(id)}.`)
  }
  if (state === 'unattended') {
    const code = needs.filter((agent) => agent !== '')
    const how = code.length === 0 ? '' : ' --module FILE'
    const agents = code.length === 0 ? '' : ` (agents: ${oneLine(code.join(', '))})`
    note(`No process works on it. legate resume ${shortId(turn.id)}${how} goes on${agents}.`)
  }
}

/** Whoever only looks may go at any time, and leaves the terminal as it was. */
export function endOnInterrupt(leave: () => void = () => undefined): void {
  for (const [signal, code] of [
    ['SIGINT', EXIT.interrupted],
    ['SIGTERM', EXIT.terminated],
  ] as const) {
    process.once(signal, () => {
      leave()
      process.exit(code)
    })
  }
}
