import type { Node } from '../graph/rows.ts'
import type { CountedEffect } from './outside-counter.ts'
import type { TreeRows } from './tree-rows.ts'

/** The name under which calls of models are counted; their key is the path of the agent that called. */
const MODEL = 'model'

/**
 * L5, judged by the outside counter: what was recorded as done happened; what happened is recorded as done or as
 * uncertain; an effectful call happened at most once, the others at most once per claim, with one key.
 */
export function wrongEffects(counted: readonly CountedEffect[], trees: readonly TreeRows[]): string[] {
  const calls = counted.filter(({ name }) => name === MODEL)
  return [
    ...wrongToolEffects(
      counted.filter(({ name }) => name !== MODEL),
      trees,
    ),
    ...(calls.length === 0 ? [] : wrongModelCalls(calls, trees)),
  ]
}

/** A66: an answer that was recorded is not asked for again: a model is called once per claim of a node, no more. */
function wrongModelCalls(calls: readonly CountedEffect[], trees: readonly TreeRows[]): string[] {
  const least = new Map<string, number>()
  const most = new Map<string, number>()
  for (const { nodes, conversations } of trees) {
    for (const { kind, conversationId, startedAt, state, attempt, recoveries } of nodes.values()) {
      if (kind !== 'agent_message' || (startedAt === null && recoveries === 0 && attempt === 1)) continue
      const path = conversations.get(conversationId)?.path.join('/') ?? ''
      least.set(path, (least.get(path) ?? 0) + (state === 'finished' ? attempt : 0))
      most.set(path, (most.get(path) ?? 0) + attempt + recoveries)
    }
  }
  const seen = new Map<string, number>()
  for (const { key } of calls) seen.set(key, (seen.get(key) ?? 0) + 1)
  const paths = [...new Set([...seen.keys(), ...most.keys()])]
  return paths
    .filter((path) => (seen.get(path) ?? 0) < (least.get(path) ?? 0) || (seen.get(path) ?? 0) > (most.get(path) ?? 0))
    .map((path) => {
      const bounds = `${least.get(path) ?? 0} to ${most.get(path) ?? 0}`
      return `L5 ${path} called its model ${seen.get(path) ?? 0} times; its claims allow ${bounds}`
    })
}

function wrongToolEffects(effects: readonly CountedEffect[], trees: readonly TreeRows[]): string[] {
  const tasks = new Map<string, Node>()
  for (const { nodes } of trees) {
    for (const node of nodes.values()) if (isCounted(node)) tasks.set(node.idempotencyKey ?? node.id, node)
  }
  const seen = new Map<string, number>()
  for (const { key } of effects) seen.set(key, (seen.get(key) ?? 0) + 1)
  return [
    ...[...tasks].flatMap(([key, task]) => wrongEffect(task, seen.get(key) ?? 0)),
    ...effects
      .filter(({ key }) => !tasks.has(key))
      .map(({ name, key }) => `L5 ${name} had an effect for ${key}: no task`),
  ]
}

/** A call of a tool. A child is counted by what it does itself. */
function isCounted({ kind, input }: Node): boolean {
  return kind === 'task' && input.call !== undefined && input.delegates !== true
}

function wrongEffect(task: Node, seen: number): string[] {
  const { least, most } = bounds(task)
  if (seen >= least && seen <= most) return []
  const name = `${task.effect} ${task.input.call?.name} ${task.id}`
  return [`L5 ${name} is ${task.state} and was seen ${seen} times outside, not ${least} to ${most} times`]
}

function bounds(task: Node): { least: number; most: number } {
  const isDone = task.state === 'finished' && task.output.isError !== true
  const least = isDone ? 1 : 0
  if (task.effect !== 'effectful') return { least, most: 1 + task.recoveries }
  const mayHaveHappened = task.state === 'finished' || task.state === 'uncertain'
  return { least, most: mayHaveHappened ? 1 : 0 }
}
