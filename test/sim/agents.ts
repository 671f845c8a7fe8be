// The agents of the simulation. They do what their input says, in the process that is on stage.

import type { Model, ModelRequest, Part } from '../../src/core/model/model.ts'
import { type AnyAgent, agent, tool } from '../../src/index.ts'
import type { World } from './world.ts'

/** A process, as the code that it runs sees it. */
export interface Player {
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** What calls of tools and models find when they run: set for each simulation. */
export interface Theatre {
  readonly world: World
  /** The process whose code runs now. */
  current: Player | null
  /** How often each effect happened, by the node of its call. */
  readonly effects: Map<string, number>
  /** The epoch of the claim of a node, as the server knows it. */
  readonly epochOf: (nodeId: string) => number | undefined
  /** How likely a model call fails in a way that passes. */
  readonly failing: number
}

let theatre: Theatre | undefined

export function enter(next: Theatre): void {
  theatre = next
}

/** The words of an input: which tools are called. `sub:pay` is a subagent that calls `pay`. */
export type Deed = 'pay' | 'look' | 'ask' | 'sub:pay' | 'sub:look' | 'sub:ask' | 'sub:'

async function work(most: number, signal: AbortSignal): Promise<void> {
  const { world, current } = theatre as Theatre
  if (current === null) throw new Error('nobody is on stage')
  // Most calls are short; some take longer than a lease.
  const ms = world.chance.is(0.04) ? 1_500 + world.chance.below(2_500) : world.chance.below(most)
  await current.sleep(ms, signal)
}

/** Gives a function that notes whether the claim was lost meanwhile. */
function watchClaim(nodeId: string): () => void {
  const { world, epochOf } = theatre as Theatre
  const epoch = epochOf(nodeId)
  return () => {
    if (epochOf(nodeId) !== epoch) world.happened.add('late result')
  }
}

const INPUT = { type: 'object', properties: { message: { type: 'string' } } } as const

const look = tool({
  description: 'Looks.',
  input: INPUT,
  effect: 'pure',
  execute: async (_, { node, signal }) => {
    const noteLate = watchClaim(node.id)
    await work(60, signal)
    noteLate()
    return 'seen'
  },
})

/** Has an effect in the middle: a process may die before it, or after it. */
const pay = tool({
  description: 'Pays.',
  input: INPUT,
  effect: 'effectful',
  execute: async (_, { node, signal }) => {
    const { effects } = theatre as Theatre
    const noteLate = watchClaim(node.id)
    await work(60, signal)
    effects.set(node.id, (effects.get(node.id) ?? 0) + 1)
    await work(60, signal)
    noteLate()
    return 'paid'
  },
})

const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 }

/** Calls what the words of its first message say, then answers. */
const model: Model = {
  id: 'sim/model',
  async *stream({ messages }: ModelRequest, { signal }): AsyncGenerator<Part> {
    await work(120, signal)
    const { world, failing } = theatre as Theatre
    if (world.chance.is(failing)) throw Object.assign(new Error('overloaded'), { statusCode: 503 })
    if (messages.some(({ role }) => role === 'tool')) {
      yield { type: 'text-delta', text: 'done' }
      yield { type: 'finish', reason: 'stop', usage }
      return
    }
    const asked = messages.filter(({ role }) => role === 'user').at(-1)?.content
    const deeds = String(asked ?? '')
      .split(' ')
      .filter((word) => word !== '' && word !== '-')
    if (deeds.length === 0) yield { type: 'text-delta', text: 'nothing to do' }
    for (const [at, deed] of deeds.entries()) {
      const [name = '', message = ''] = deed.split(':')
      yield { type: 'tool-call', id: `call_${at}`, name, input: name === 'sub' ? { message: message || '-' } : {} }
    }
    yield { type: 'finish', reason: deeds.length > 0 ? 'tool-calls' : 'stop', usage }
  },
}

const grant = { use: ['model:*', 'tool:look', 'tool:pay', 'agent:*'], ask: ['tool:ask'] }

const sub = agent({ name: 'sub', instructions: 'You do.', model, tools: { look, pay, ask: look }, grant })

export const host = agent({
  name: 'host',
  instructions: 'You host.',
  model,
  tools: { look, pay, ask: look },
  subagents: { sub: { agent: sub, briefing: 'none' } },
  grant,
})

export const AGENTS: readonly AnyAgent[] = [host]
