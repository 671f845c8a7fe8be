import { setTimeout as sleep } from 'node:timers/promises'
import type { Runtime, Store, Turn } from '../../index.ts'
import { type Call, CliError, EXIT, textOption } from '../command.ts'
import { findRun, shortId } from '../find-run.ts'
import { withRuntime } from '../open-store.ts'
import { plural } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import { note, write } from '../terminal/output.ts'

const DEFAULT_SECONDS = 20

export function cancel(call: Call): Promise<number> {
  const seconds = Number(textOption(call, 'timeout') ?? DEFAULT_SECONDS)
  if (!Number.isFinite(seconds) || seconds < 0) {
    throw new CliError('--timeout is a number of seconds, such as 20.', EXIT.usage)
  }
  return withRuntime(call, 'write', async (runtime) => {
    const turn = findRun(runtime.store, call.words[0] ?? '')
    const name = `${oneLine(runtime.store.conversation(turn.conversationId)?.agent.name ?? '?')} ${shortId(turn.id)}`
    if (turn.outcome !== null) {
      await write(`${name} is over already: ${turn.outcome.status}.\n`)
      return EXIT.completed
    }
    const open = openRuns(runtime.store, turn)
    await runtime.cancel(turn.id, textOption(call, 'reason') ?? 'Cancelled from the command line.')
    if (await hasStopped(runtime, turn, seconds * 1000)) {
      const { status } = runtime.store.turn(turn.id)?.outcome ?? { status: 'cancelled' }
      const others = open > 1 ? `, and ${plural(open - 1, 'subagent')} with it` : ''
      await write(`${name} has stopped: ${status}${others}. What it had is kept: legate show ${shortId(turn.id)}\n`)
      return EXIT.completed
    }
    note(
      `legate: ${name} was asked to stop and has not yet, after ${seconds} s. legate tree ${shortId(turn.id)} tells.`,
    )
    return EXIT.other
  })
}

/** A process without code of agents still ends what nobody else does: nodes of dead processes, and those that do not hear. */
async function hasStopped(runtime: Runtime, turn: Turn, ms: number): Promise<boolean> {
  await runtime.resume()
  const { result } = runtime.attach(turn.id)
  return Promise.race([result.then(() => true), sleep(ms, false, { ref: false })])
}

function openRuns(store: Store, turn: Turn): number {
  return store
    .openLinks(turn.id)
    .map(({ id }) => store.turn(id))
    .reduce((sum, child) => (child === undefined ? sum : sum + openRuns(store, child)), 1)
}
