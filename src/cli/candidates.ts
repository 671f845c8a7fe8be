import type { Runtime, Turn } from '../index.ts'
import type { Call } from './command.ts'
import { shortId } from './find-run.ts'
import { withRuntime } from './open-store.ts'
import { newestRuns, runLine } from './recent-runs.ts'
import { oneLine } from './terminal/clean.ts'
import { cut } from './terminal/width.ts'
import { wantedIn } from './watch/asked.ts'

const NAMED = 5
const LOOKED_AT = 200
const LONGEST = 120

/** What could be meant by a command that was given no id, the newest first, one a line. Nothing where there is no store. */
export async function candidatesFor(command: string, call: Call): Promise<readonly string[]> {
  const list = LISTS[command] ?? ((runtime: Runtime) => runsIn(runtime, () => true))
  try {
    return (await withRuntime(call, 'read', list)).map((line) => cut(line, LONGEST))
  } catch {
    return []
  }
}

type List = (runtime: Runtime) => Promise<readonly string[]>

const LISTS: Readonly<Record<string, List>> = {
  approve: approvals,
  deny: approvals,
  answer: questions,
  cancel: (runtime) => runsIn(runtime, ({ state }) => state !== 'ended'),
  retry: (runtime) => runsIn(runtime, ({ outcome }) => outcome !== null && outcome.status !== 'completed'),
}

async function runsIn(runtime: Runtime, fits: (turn: Turn) => boolean): Promise<readonly string[]> {
  const runs = newestRuns(runtime.store, LOOKED_AT).filter(fits)
  return runs.slice(0, NAMED).map((turn) => runLine(runtime, turn))
}

async function approvals(runtime: Runtime): Promise<readonly string[]> {
  const asked = await runtime.approvals({ limit: NAMED })
  return asked.map((one) => `${shortId(one.nodeId)}  ${who(one.path)} wants ${wantedIn(one)}`)
}

async function questions(runtime: Runtime): Promise<readonly string[]> {
  const asked = await runtime.questions({ limit: NAMED })
  return asked.map(({ nodeId, path, text }) => `${shortId(nodeId)}  ${who(path)} asks: ${oneLine(text)}`)
}

function who(path: readonly string[]): string {
  return path.map(oneLine).join(' > ')
}
