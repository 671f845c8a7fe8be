import type { AgentCore } from '../agent/agent.ts'
import type { HooksAbove } from '../agent/node-run.ts'
import type { ToolEntry } from '../tool/toolkit.ts'
import { isSubagentEntry } from './subagent.ts'

/** A host of a run, and what the run below it was started with; nothing where its code is not known here. */
export interface HostAbove {
  readonly agent: AgentCore | undefined
  readonly entry: ToolEntry | undefined
}

/** What hosts, the nearest first, have to say to a call below them: only those that were given down the whole way decide. */
export function hooksAbove(hosts: Iterable<HostAbove>): HooksAbove | null {
  const deciding: HooksAbove['deciding'][number][] = []
  const watching: HooksAbove['watching'][number][] = []
  let isInherited = true
  for (const { agent, entry } of hosts) {
    isInherited &&= entry !== undefined && isSubagentEntry(entry) && entry.inheritsHooks
    const { beforeTool, onChildTool } = agent?.hooks ?? {}
    if (isInherited && beforeTool !== undefined) deciding.push(beforeTool)
    if (onChildTool !== undefined) watching.push(onChildTool)
  }
  return deciding.length + watching.length === 0 ? null : { deciding, watching }
}
