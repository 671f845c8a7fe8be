// Who runs a node: which processes may go on with the nodes of an agent, by what their rows say.
//
// Called by: `why` and the inbox explain with it why nobody takes a run; a node whose tools do not start here looks for others.
// Must stay true:
//   - A row that does not say which agents its process has hinders nothing.

import type { EngineRow } from '../graph/commit.ts'
import { codeOf } from '../graph/kinds.ts'
import type { AgentRef, Id } from '../graph/rows.ts'
import type { Ledger } from '../store/ledger.ts'
import { isDead, leaseTime } from './lease.ts'
import { leftAs } from './source-board.ts'

/** Says in words what keeps a process from running nodes of an agent; null where nothing does. */
export function hindrance(engine: EngineRow, agent: AgentRef): string | null {
  const code = codeOf(agent)
  if (engine.agents?.length === 0) return 'runs no nodes'
  if (engine.draining === true) return 'is about to end, and takes nothing more'
  if (engine.agents?.includes(code) === false) return code === '' ? 'runs no agents of files' : 'has no code for it'
  const failing = engine.sources?.find(({ leaves }) => leaves.includes(leftAs(agent)))
  if (failing !== undefined)
    return `cannot start its tools "${failing.name}": ${failing.error ?? 'it does not say why'}`
  const isOther = agent.inline === undefined && engine.versions?.includes(agent.hash) === false
  return isOther ? 'has another definition of it, and waits for one that has this one' : null
}

/** Whether a living process other than this one may run nodes of an agent. */
export async function othersMayRun(ledger: Ledger, agent: AgentRef, own: Id | null): Promise<boolean> {
  const now = await leaseTime(ledger)
  const engines = await ledger.store.engines()
  return engines.some((engine) => engine.id !== own && !isDead(engine, now) && hindrance(engine, agent) === null)
}

/** How people tell a process from others. */
export function processName({ pid, host }: Pick<EngineRow, 'pid' | 'host'>): string {
  return host === undefined ? `process ${pid}` : `process ${pid} on ${host}`
}
