import type { TreeRows } from '../graph/audit/tree-rows.ts'
import type { Node } from '../graph/rows.ts'
import type { CountedEffect } from './outside-counter.ts'

/** The name under which calls of models are counted; their key is the path of the agent that called. */
const MODEL = 'model'

/**
 * L5, judged by the outside counter: what was recorded as done happened; what happened is recorded as done or as
 * uncertain; an effectful call happened at most once, the others at most once per claim, with one key. Calls of models
 * are judged too when they were counted.
 */
export function wrongEffects(counted: readonly CountedEffect[], trees: readonly TreeRows[]): string[] {
  const nodes = trees.flatMap((tree) => [...tree.nodes.values()].map((node) => ({ node, tree })))
  const calls = counted.filter(({ name }) => name === MODEL)
  const effects = counted.filter(({ name }) => name !== MODEL)
  return [
    ...unlike('effects', effects, boundsOf(nodes.map(({ node }) => [keyOf(node), toolBounds(node)]))),
    ...(calls.length === 0
      ? []
      : unlike('calls', calls, boundsOf(nodes.map(({ node, tree }) => [pathOf(node, tree), modelBounds(node, tree)])))),
  ]
}

/** How often something may have been seen outside. */
interface Bounds {
  readonly least: number
  readonly most: number
  readonly what: string
}

/** Tools that write rows and nothing outside. */
const ROWS_ONLY = /^(?:subagent_|ask_host$|ask_person$)/

/** Only what a tool does itself is its effect: a child is judged by its own calls. */
function toolBounds(task: Node): Bounds | undefined {
  if (task.kind !== 'task' || task.input.call === undefined || task.input.delegates === true) return undefined
  if (task.metadata['copyOf'] !== undefined) return undefined
  if (ROWS_ONLY.test(task.input.call.name)) return undefined
  const what = `the ${task.effect} ${task.input.call.name} ${task.id}, which is ${task.state},`
  const least = task.state === 'finished' && task.output.isError !== true ? 1 : 0
  if (task.effect !== 'effectful') return { what, least, most: 1 + task.recoveries }
  return { what, least, most: task.state === 'finished' || task.state === 'uncertain' ? 1 : 0 }
}

/** A66: an answer that was recorded is not asked for again: a model is called once per claim of a node, no more. */
function modelBounds(node: Node, { nodes }: TreeRows): Bounds | undefined {
  const { kind, state, recoveries, startedAt, retryOf, metadata } = node
  // What was done before it was retried is counted where it was done.
  const attempt = node.attempt - (retryOf === null ? 0 : (nodes.get(retryOf)?.attempt ?? 0))
  const wasClaimed = metadata['copyOf'] === undefined && (startedAt !== null || recoveries > 0 || attempt > 1)
  if (kind !== 'agent_message' || !wasClaimed) return undefined
  return { what: 'an agent', least: state === 'finished' ? attempt : 0, most: attempt + recoveries }
}

function keyOf({ id, idempotencyKey }: Node): string {
  return idempotencyKey ?? id
}

function pathOf({ conversationId }: Node, { conversations }: TreeRows): string {
  return conversations.get(conversationId)?.path.join('/') ?? ''
}

/** The bounds of all that share a key, added up. */
function boundsOf(entries: readonly (readonly [key: string, bounds: Bounds | undefined])[]): Map<string, Bounds> {
  const sums = new Map<string, Bounds>()
  for (const [key, bounds] of entries) {
    if (bounds === undefined) continue
    const { least, most } = sums.get(key) ?? { least: 0, most: 0 }
    sums.set(key, { what: bounds.what, least: least + bounds.least, most: most + bounds.most })
  }
  return sums
}

function unlike(of: string, counted: readonly CountedEffect[], expected: ReadonlyMap<string, Bounds>): string[] {
  const seen = new Map<string, number>()
  for (const { key } of counted) seen.set(key, (seen.get(key) ?? 0) + 1)
  return [...new Set([...seen.keys(), ...expected.keys()])].flatMap((key) => {
    const count = seen.get(key) ?? 0
    const { least, most, what } = expected.get(key) ?? { least: 0, most: 0, what: 'nothing that is stored' }
    if (count >= least && count <= most) return []
    return [`L5 ${key}: ${what} had ${count} ${of} outside and may have had ${least} to ${most}`]
  })
}
