import type { HookPlace } from '../agent/hooks/extension-runs.ts'
import type { HookSet } from '../agent/hooks/hook-set.ts'
import type { HooksAbove, Voice } from '../agent/node-run.ts'
import type { ToolEntry } from '../tool/toolkit.ts'
import { isSubagentEntry } from './subagent.ts'

/** A host of a run, and what the run below it was started with; nothing where its code is not known here. */
export interface HostAbove {
  readonly hooks: HookSet | null
  readonly place: HookPlace
  readonly entry: ToolEntry | undefined
}

/** What hosts, the nearest first, have to say to a call below them. Hooks that a host gave to a child decide for all below it. */
export function hooksAbove(hosts: Iterable<HostAbove>): HooksAbove | null {
  const deciding: Voice[] = []
  const watching: Voice[] = []
  for (const { hooks, place, entry } of hosts) {
    const isInherited = entry !== undefined && isSubagentEntry(entry) && entry.inheritsHooks
    if (isInherited) for (const extension of hooks?.of('beforeTool') ?? []) deciding.push({ extension, place })
    for (const extension of hooks?.of('onChildTool') ?? []) watching.push({ extension, place })
  }
  return deciding.length + watching.length === 0 ? null : { deciding, watching }
}
