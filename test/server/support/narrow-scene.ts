import path from 'node:path'
import { agent, type Id, type Principal, type Run, type Runtime, type ScopedRuntime, tool } from 'legate'
import { askTools } from 'legate/background'
import { SCOPES } from 'legate/grant'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { afterAll } from 'vitest'
import { callsThenSays, simpleTool } from '../../support/agents.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { type Setting, startServer } from './server.ts'

// Trees of one owner in every state that a route works on, and the tokens that reach for them.

/** A word that stands in trees of an owner, except in those of `greeter`. */
export function secretOf(owner: string): string {
  return `xylophone-${owner}`
}

const child = agent({ name: 'child', instructions: '', model: scriptedModel(() => 'Looked.') })

/** Runs whose payment has begun. */
const paying = new Set<Id>()

/** `greeter` is the one agent that a token of few agents sees. */
const agents = [
  agent({ name: 'greeter', instructions: '', model: scriptedModel(() => 'Hello.') }),
  agent({
    name: 'host',
    instructions: '',
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'Done.' : { calls: [{ name: 'ask_child', input: { message: 'Look.' } }] },
    ),
    subagents: { ask_child: { agent: child, session: {} } },
  }),
  agent({
    name: 'careful',
    instructions: '',
    tools: { look: simpleTool(() => 'seen') },
    grant: { ask: ['tool:look'] },
    model: scriptedModel(callsThenSays('look')),
  }),
  agent({
    name: 'curious',
    instructions: '',
    tools: askTools(),
    model: scriptedModel(({ messages }) =>
      messages.some(({ role }) => role === 'tool')
        ? 'ok'
        : { calls: [{ name: 'ask_person', input: { question: 'Which port?' } }] },
    ),
  }),
  agent({
    name: 'shop',
    instructions: '',
    tools: { pick: tool({ description: 'Picks.', input: { type: 'object' }, execute: 'outside' }) },
    model: scriptedModel(callsThenSays('pick')),
  }),
  agent({
    name: 'clumsy',
    instructions: '',
    model: scriptedModel(() => {
      throw new Error('Oh no.')
    }),
  }),
  // It never comes back, whoever asks it to: its effect is uncertain.
  agent({
    name: 'payer',
    instructions: '',
    tools: {
      pay: simpleTool((_, { node }) => {
        paying.add(node.runId)
        return new Promise<string>(() => undefined)
      }),
    },
    model: scriptedModel(callsThenSays('pay')),
  }),
]

/** A run, its conversation, and the nodes in it that routes are about. */
export interface Place {
  readonly run: Id
  readonly conversation: Id
  /** The message of the user, the last one of the agent, and the node that waits or is in doubt. */
  readonly user: Id
  readonly answer: Id
  readonly open: Id
  readonly seen: string
  /** The session with a subagent. */
  readonly session: Id
  /** A lane that was forked from it. */
  readonly lane: Id
}

const EVERYTHING: readonly Principal['scopes'][number][] = [...SCOPES]

/** Trees of an owner, each made when it is first wanted. */
export class Trees {
  readonly owner: string
  private readonly runtime: ScopedRuntime
  private readonly made: Map<string, Promise<Place>> = new Map()

  constructor(runtime: Runtime, owner: string) {
    this.owner = owner
    this.runtime = runtime.as({ id: owner, scopes: EVERYTHING })
  }

  of(name: AgentName): Promise<Place> {
    const known = this.made.get(name) ?? this.make(name)
    this.made.set(name, known)
    return known
  }

  private async make(name: AgentName): Promise<Place> {
    const { runtime } = this
    const run = runtime.run(name, name === 'greeter' ? 'Hi.' : `Go, ${secretOf(this.owner)}.`)
    if (name === 'payer') await this.lose(run)
    if (ENDING.includes(name)) await run.result
    else await until(async () => (await waitsIn(runtime, run.id)) !== undefined)
    return this.placeOf(run, name === 'host')
  }

  /** Leaves a run with a call that nobody knows the end of. */
  private async lose(run: Run): Promise<void> {
    await until(async () => paying.has(run.id))
    await run.cancel('enough')
    await until(async () => (await nodes(this.runtime, run.id)).some(({ state }) => state === 'uncertain'))
  }

  private async placeOf(run: Run, isForked: boolean): Promise<Place> {
    const { runtime } = this
    const rows = await nodes(runtime, run.id)
    const conversation = await runtime.conversation(run.conversationId)
    const waits = await waitsIn(runtime, run.id)
    const answer = rows.findLast(({ kind }) => kind === 'agent_message')?.id ?? ''
    return {
      run: run.id,
      conversation: run.conversationId,
      user: rows.find(({ kind }) => kind === 'user_message')?.id ?? '',
      answer,
      open: waits?.id ?? '',
      seen: waits?.seen ?? '',
      session: (await conversation.sessions())[0]?.id ?? '',
      lane: isForked ? (await conversation.history.fork(answer)).id : '',
    }
  }
}

/** Every id of places that were never made. */
export const UNKNOWN = '01890000-0000-7000-8000-00000000dead'

const NOWHERE: Place = {
  run: UNKNOWN,
  conversation: UNKNOWN,
  user: UNKNOWN,
  answer: UNKNOWN,
  open: UNKNOWN,
  seen: '0123456789abcdef',
  session: UNKNOWN,
  lane: UNKNOWN,
}

export type AgentName = 'host' | 'careful' | 'curious' | 'shop' | 'clumsy' | 'payer' | 'greeter'

const ENDING: readonly AgentName[] = ['host', 'clumsy', 'payer', 'greeter']

/** What a request is about: trees that are there, or ids that nobody has. */
export interface Target {
  readonly owner: string
  /** False for ids that nobody has. */
  readonly isThere: boolean
  /** The name of an agent, or one that no agent has. */
  agent(name: AgentName): string
  of(name: AgentName): Promise<Place>
}

export function targetOf(trees: Trees): Target {
  return { owner: trees.owner, isThere: true, agent: (name) => name, of: (name) => trees.of(name) }
}

/** Ids that nobody has, and with `hasNoAgent` names that no agent has. */
export function nowhere(owner: string, hasNoAgent: boolean): Target {
  return { owner, isThere: false, agent: (name) => (hasNoAgent ? 'nobody' : name), of: async () => NOWHERE }
}

async function nodes(runtime: ScopedRuntime, runId: Id) {
  return (await runtime.nodes(runId, { from: 0, limit: 100 })).nodes
}

/** What waits for somebody in a run, or is in doubt. */
async function waitsIn(runtime: ScopedRuntime, runId: Id): Promise<{ id: Id; seen: string } | undefined> {
  const [asked] = [...(await runtime.approvals({ runId })), ...(await runtime.questions({ runId, outside: true }))]
  if (asked !== undefined) return { id: asked.nodeId, seen: asked.seen }
  const doubts = (await runtime.inbox({ limit: 1_000 })).flatMap((item) => (item.type === 'uncertain' ? [item] : []))
  const doubt = doubts.find((item) => item.runId === runId)
  return doubt === undefined ? undefined : { id: doubt.nodeId ?? '', seen: doubt.seen }
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  for (const late = Date.now() + 30_000; !(await isTrue()); ) {
    if (Date.now() > late) throw new Error('It does not become true.')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** The token that may do everything, and those of the same id that may do less. */
export interface NarrowTokens {
  readonly wide: string
  /** Of one agent only. */
  readonly agents: string
  /** Of its own owner only. */
  readonly sees: string
  /** Of the same sight, with nothing left of the day. */
  readonly day: string
  /** Made with a token that was revoked. */
  readonly revoked: string
}

export interface NarrowScene {
  readonly setting: Setting
  readonly tokens: NarrowTokens
  /** Of the id of all tokens, and of somebody else. */
  readonly own: Trees
  readonly others: Trees
}

export const WIDE: Principal = { id: 'lea', scopes: EVERYTHING, sees: 'all' }

export async function openNarrowScene(): Promise<NarrowScene> {
  const plenty = 1_000_000
  const limits = {
    startsPerMinute: plenty,
    readsPerMinute: plenty,
    perAddressPerMinute: plenty,
    failuresPerMinute: plenty,
  }
  const store = sqliteStore(path.join(tempFolder(afterAll), 'narrow.db'))
  const setting = await startServer({ limits }, { store, agents, engine: { graceMs: 50 } })
  const wide = await setting.tokenFor(WIDE)
  const make = async (principal: object, token = wide) => {
    const given = { scopes: EVERYTHING, sees: 'all', ...principal }
    const answer = await setting.post('/v1/tokens', { principal: given }, { token })
    return ((await answer.json()) as { token: string }).token
  }
  const parent = await make({})
  const tokens = {
    wide,
    agents: await make({ agents: ['greeter'] }),
    sees: await make({ sees: 'own' }),
    day: await make({ perDay: { runs: 0 } }),
    revoked: await make({}, parent),
  }
  await setting.get(`/v1/tokens/${parent.slice(4, 20)}`, { token: wide, method: 'DELETE' })
  const { runtime } = setting
  return { setting, tokens, own: new Trees(runtime, 'lea'), others: new Trees(runtime, 'bob') }
}
