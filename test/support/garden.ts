import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type AnyAgent, agent, type Run, type Runtime, type ToolContext } from 'legate'
import type { Part } from 'legate/models'
import { scriptedModel } from 'legate/testing'
import { runProcess } from 'legate/tools'
import { expect } from 'vitest'
import type { Store } from '../../src/core/store/store.ts'
import { simpleTool } from './agents.ts'
import type { Chance } from './chance.ts'
import { nodesOfTree, turnsOfTree } from './rows.ts'

/** Every so many-th program does not stop when it is asked to. */
const STUBBORN = 40

/** Cancels so many trees, and gives how long each took to end, sorted. */
export async function cancelMany(runtime: Runtime, garden: Garden, count: number): Promise<number[]> {
  const took: number[] = []
  while (took.length < count) took.push(await cancelOne(runtime, garden))
  return took.sort((a, b) => a - b)
}

/** The times in one line. */
export function timesIn(took: readonly number[]): string {
  return `p50 ${timeAt(took, 0.5)} ms, p99 ${timeAt(took, 0.99)} ms, longest ${timeAt(took, 1)} ms`
}

export function timeAt(took: readonly number[], share: number): number {
  return Math.round(took[Math.min(took.length - 1, Math.floor(took.length * share))] ?? 0)
}

/** Cancels a run at a random moment, or first one below it; gives how long the whole tree took to end. */
async function cancelOne(runtime: Runtime, garden: Garden): Promise<number> {
  const { chance } = garden
  const run = runtime.run(garden.root(), 'go' as never)
  const moment = chance.below(60)
  await momentOf(run, moment)
  const tree = await runtime.store.tree(run.conversationId)
  const below = chance.is(0.25) ? chance.pick(turnsOfTree(tree, run.id)) : run.id
  if (below !== run.id) await runtime.cancel(below)
  const began = performance.now()
  await run.cancel('enough')
  await run.result
  const took = performance.now() - began
  await expectEnded(runtime.store, run)
  return took
}

/** Resolves at an event of the run, or when it is over. */
async function momentOf(run: Run, count: number): Promise<void> {
  let seen = 0
  for await (const _ of run) if (++seen > count) return
}

/** By hand, and not by the words of a test library: it is done a thousand times while others are measured. */
async function expectEnded(store: Store, run: Run): Promise<void> {
  const tree = await store.tree(run.conversationId)
  const turns = turnsOfTree(tree, run.id)
  const open = nodesOfTree(tree, run.id).filter(({ endedAt }) => endedAt === null)
  const events = await store.events(run.conversationId, 0, 1_000_000)
  const count = (type: string) => events.filter(({ body }) => body.type === type).length
  const wrong = [
    ...open.map(({ id, kind, state }) => `${kind} ${id} is ${state}`),
    ...turns.filter((id) => tree.turn(id)?.state !== 'ended').map((id) => `turn ${id} has not ended`),
    ...turns.filter((id) => tree.turn(id)?.account.live !== 0).map((id) => `turn ${id} counts children that run`),
    ...turns.filter((id) => tree.openLinks(id).length > 0).map((id) => `turn ${id} has open links`),
    ...(count('delegation-start') === count('delegation-end') ? [] : ['a delegation has no end']),
    ...(count('tool-call') === count('tool-result') ? [] : ['a call has no result']),
    ...(count('run-end') === turns.length ? [] : ['a run has no end']),
  ]
  if (wrong.length > 0) throw new Error(`run ${run.id}: ${wrong.join(', ')}`)
}

export async function expectNothingOpen(store: Store): Promise<void> {
  expect(await store.openRoots({ limit: 10 })).toEqual([])
  expect(await store.openTurns(10)).toEqual([])
  expect(await store.claimants()).toEqual([])
  expect(
    await store.runnable({
      now: Number.MAX_SAFE_INTEGER,
      limit: 10,
      agents: ['mid', 'leaf', 'root'],
      kinds: ['task', 'agent_message'],
    }),
  ).toEqual([])
}

/** Makes trees whose leaves do all that can be cancelled. */
export class Garden {
  readonly mark = `legate-cancel-${process.pid}-${Math.random().toString(36).slice(2)}`
  programs = 0
  readonly chance: Chance
  private readonly made: AnyAgent

  constructor(chance: Chance) {
    this.chance = chance
    this.made = this.make()
  }

  root(): AnyAgent {
    return this.made
  }

  private make(): AnyAgent {
    const leaf = agent({
      name: 'leaf',
      instructions: '',
      model: scriptedModel(({ messages }) => {
        if (messages.at(-1)?.role === 'tool') return 'done'
        const does = this.chance.pick(['say', 'wait', 'wait', 'slowly', 'call', 'program', 'think'] as const)
        if (does === 'say') return 'said'
        if (does === 'think') return { text: 'late', delayMs: 60_000 }
        if (does === 'program' && !this.chance.is(0.05))
          return { text: 'So far.', calls: [{ name: 'wait', input: {} }] }
        return { text: 'So far.', calls: [{ name: does, input: {} }] }
      }),
      tools: {
        wait: simpleTool((_, { signal }) => sleep(60_000, 'waited', { signal }), { effect: 'pure' }),
        slowly: simpleTool((_, { signal }) => stopsSlowly(signal), { effect: 'idempotent' }),
        call: simpleTool((_, { delegate }) => delegate(talker, 'x'), { effect: 'pure' }),
        program: simpleTool((_, context) => this.program(context)),
      },
    })
    const mid = agent({
      name: 'mid',
      instructions: '',
      model: asks(5),
      subagents: { ask: { agent: leaf, concurrency: 4, retries: 1, retryDelayMs: 5 } },
    })
    return agent({
      name: 'root',
      instructions: '',
      model: asks(3),
      subagents: { ask: mid },
      budget: { treeConcurrency: 14 },
    }) as AnyAgent
  }

  /** A program and what it starts. */
  private async program({ signal }: ToolContext): Promise<void> {
    const trap = ++this.programs % STUBBORN === 0 ? 'trap "" TERM;' : ''
    await runProcess('sh', ['-c', `${trap} sleep 60 & sleep 60; : "$1"`, 'sh', this.mark], { signal })
  }
}

/** Speaks bit by bit until it is stopped. */
const talker = agent({
  name: 'talker',
  instructions: '',
  model: {
    id: 'own/talker',
    async *stream(_: unknown, { signal }: { signal: AbortSignal }): AsyncGenerator<Part> {
      for (;;) {
        yield { type: 'text-delta', text: 'and ' }
        await sleep(5, undefined, { signal })
      }
    },
  },
})

function asks(count: number) {
  return scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? 'done'
      : { calls: Array.from({ length: count }, (_, n) => ({ name: 'ask', input: { message: String(n) } })) },
  )
}

/** Hears the signal, and needs a while to clean up. */
function stopsSlowly(signal: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => setTimeout(resolve, 5, 'cleaned up'), { once: true })
  })
}

/** The processes that have this word in their command line. */
export function running(word: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      const isZombie = /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
      return !isZombie && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(word)
    } catch {
      return false
    }
  })
}
