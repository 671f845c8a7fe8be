import type { NodeRun } from '../../agent/node-run.ts'
import { type Asked, invoke } from '../../tool/invoke.ts'
import type { ToolEnd } from '../../tool/result.ts'
import type { ToolEntry } from '../../tool/toolkit.ts'
import { CalledChildren } from '../called-children.ts'
import { type Operation, type RowToolEnd, refusedEnd } from './row-tool.ts'

/** Runs it as every tool is run; undefined when its own commit has ended the node, or left it waiting. */
export async function runRowTool(
  run: NodeRun,
  entry: ToolEntry,
  operation: Operation,
): Promise<ToolEnd | Asked | undefined> {
  let did: RowToolEnd | undefined
  const execute = async (input: unknown) => {
    did = await operation(run, input as { readonly [key: string]: unknown })
    return null
  }
  const bound = entry.tool === null ? null : { ...entry.tool, execute }
  const children = new CalledChildren(run)
  const end = await invoke(run, { ...entry, schema: entry.schema, tool: bound, isOwn: true }, children)
  children.end()
  if (did === undefined) return end
  if (did === 'done') return undefined
  if ('ask' in did) return { verdict: 'ask', ask: did.ask }
  return 'code' in did ? refusedEnd(entry.name, did) : did
}
