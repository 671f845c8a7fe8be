import { type AnyAgent, agent, type ConversationHandle, type Run, type Runtime, tool } from 'legate'
import { backgroundSubagents, type SessionStore } from 'legate/background'
import { makeSubagentTool } from 'legate/compat'
import type { Node } from 'legate/rows'
import { type Script, scriptedModel } from 'legate/testing'
import type { RuntimeOptions } from '../../../src/core/runtime/options.ts'
import { callerLayer, RuntimeFor } from '../../support/callers.ts'
import { startProcess, until } from '../../support/process.ts'
import { localStore } from '../../support/rows.ts'
import type { Bound, Door, Try } from './door.ts'
import { openDoors } from './open-doors.ts'
import { surfaceDoors } from './surface-doors.ts'

export const doors: readonly Door[] = [
  offered('a typed subagent', 'typed', {}),
  offered('a message subagent, new session', 'message', {}),
  offered('a message subagent, session that goes on', 'message', { script: twice }),
  offered('a message subagent, session read back from its document', 'message', {
    script: readBack,
    isDocumented: true,
  }),
  offered('a function that gives the subagent', 'message', { isProvided: true }),
  { name: 'a tool made of the subagent by hand', depth: 1, hasOffer: true, open: throughMadeTool },
  { name: 'a subagent of a subagent', depth: 2, hasOffer: true, open: throughMiddle },
  inside('context.delegate in a tool', (worker, { delegate }) => delegate(worker, 'probe' as never)),
  inBackground('subagent_run', { tool: 'subagent_run', script: runOnce }),
  inBackground('subagent_send to a child in the background', { tool: 'subagent_spawn', script: sendOnce }),
  inside('runtime.spawn in a tool', async (worker, { runtime }) => {
    const spawned = await runtime.spawn(worker, 'probe' as never)
    await spawned.result()
  }),
  inside('runtime.run in a tool', (worker, { runtime }) => runtime.run(worker, 'probe' as never).result),
  inside('agent.generate in a tool', (worker) => worker.generate('probe' as never).catch(() => undefined)),
  inside('agent.generate in a tool, with tools and a grant of its own', (worker) => {
    const options = { tools: Object.fromEntries(worker.tools), grant: { use: EVERYTHING } }
    return worker.generate('probe' as never, options).catch(() => undefined)
  }),
  inside('agent.stream in a tool', (worker) => worker.stream('probe' as never).result),
  { name: 'a node kind of one’s own', depth: 1, hasOffer: false, open: throughKind },
  byHand('a task put in by hand', (mutation) => {
    mutation.createNode({ kind: 'task', input: { call: { id: 'c', name: 'ask', input: { message: 'probe' } } } })
  }),
  byHand('an agent_message put in by hand', (mutation) => {
    const said = mutation.createNode({ kind: 'user_message', content: 'go' })
    const answer = mutation.createNode({ kind: 'agent_message' })
    mutation.createEdge(said.id, answer.id, 'sequence')
  }),
  { name: 'an item of a plan that starts it', depth: 1, hasOffer: true, open: throughPlan },
  changed('a lane forked from the host', async (talk, { nodes, go }) => {
    const { id } = await talk.history.fork(nodes.at(-1)?.id ?? '')
    return go(id)
  }),
  changed('a message of the host’s, edited', (talk, { nodes }) => talk.history.edit(nodes[0]?.id ?? '', 'go')),
  changed(
    'lanes of the host, merged',
    async (talk, { nodes, say }) => {
      const { id } = await talk.history.fork(nodes.at(-1)?.id ?? '')
      await say(id)
      return talk.history.merge([id], { prompt: 'go' })
    },
    true,
  ),
  changed('an answer of the host’s, rerun by somebody else', async (talk, { nodes, mode }) => {
    mode.now = 'going'
    return talk.history.rerun(nodes.at(-1)?.id ?? '')
  }),
  {
    name: 'a lane of the host that somebody else forks and that runs again',
    depth: 1,
    hasOffer: true,
    open: throughRerunFork,
  },
  { name: 'the end of another child, which wakes the host', depth: 1, hasOffer: true, open: throughWake },
  { name: 'a person who goes on in a fork of its conversation', depth: 1, hasOffer: true, open: throughItsFork },
  { name: 'another process that takes over', depth: 1, hasOffer: true, open: throughTakeover },
  ...openDoors((attempt, { script, rest, models = {} }) => {
    return runIn(attempt, (runtime) => runtime.run(hostOf(attempt, script, rest), 'go' as never), { models })
  }),
]

/** The worker is the root: only the application binds it. */
export const rootDoors: readonly Door[] = [
  { name: 'runtime.run, new conversation', depth: 0, hasOffer: false, open: (attempt) => atRoot(attempt, false) },
  { name: 'runtime.run, known conversation', depth: 0, hasOffer: false, open: (attempt) => atRoot(attempt, true) },
  ...surfaceDoors(finish),
]

/** Whether a host that was only told to begin delegates. */
interface Mode {
  now: 'beginning' | 'going'
}

/** Delegates once when it is told to, and says what came back. */
function once({ smuggled }: Try, mode: Mode = { now: 'beginning' }): Script {
  return ({ messages }) => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return String(last.content)
    if (last?.content === 'begin' && mode.now === 'beginning') return 'ready'
    return { calls: [{ name: 'ask', input: { ...smuggled, message: 'probe' } }] }
  }
}

/** A harmless word first; what counts is said into the session it made. */
function twice({ smuggled }: Try): Script {
  return ({ messages }) => {
    const results = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
    const session = /^session_id: (\S+)/.exec(results[0] ?? '')?.[1]
    if (results.length === 0) return { calls: [{ name: 'ask', input: { message: 'hello' } }] }
    if (results.length > 1 || session === undefined) return 'done'
    return { calls: [{ name: 'ask', input: { ...smuggled, message: 'probe', session_id: session } }] }
  }
}

const DOCUMENTED = '01a1df2c-12e2-76db-b845-ab3b000d22a2'
/** The host's conversation that began it. */
const HOME = '01a1df2c-12e2-76db-b845-ab3b000d22a1'

/** What counts is said into a session of which only a document tells. */
function readBack({ smuggled }: Try): Script {
  return ({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? 'done'
      : { calls: [{ name: 'ask', input: { ...smuggled, message: 'probe', session_id: DOCUMENTED } }] }
}

function documentOf(agentName: string): SessionStore {
  const document = {
    format: 'legate-session',
    version: 1,
    session_id: DOCUMENTED,
    agent: agentName,
    owner: null,
    host: { agent: 'host', conversation_id: HOME },
    turns: [],
  }
  return { save: () => undefined, load: () => document }
}

function hostOf({ bound }: Try, script: Script, rest: object): AnyAgent {
  const { grant, budget } = bound
  return agent({
    name: 'host',
    instructions: '',
    model: scriptedModel(script, 'host/model'),
    settings: { maxOutputTokens: 10 },
    ...(grant === undefined ? {} : { grant }),
    ...(budget === undefined ? {} : { budget }),
    ...rest,
  }) as AnyAgent
}

/** How the host offers it. */
function offerOf({ profile }: Bound, below: AnyAgent | (() => AnyAgent)) {
  return { ask: profile === undefined ? below : { agent: below, profile } }
}

interface Offering {
  readonly script?: (attempt: Try) => Script
  readonly isProvided?: boolean
  readonly isDocumented?: boolean
}

function offered(name: string, contract: 'typed' | 'message', offering: Offering): Door {
  const { script = once, isProvided = false, isDocumented = false } = offering
  const open = (attempt: Try) => {
    const worker = attempt.worker.make(contract)
    const { ask } = offerOf(attempt.bound, isProvided ? () => worker : worker)
    const config = typeof ask === 'object' && 'agent' in ask ? ask : { agent: ask }
    const subagents = { ask: isDocumented ? { ...config, session: documentOf(worker.name) } : ask }
    const where = isDocumented ? { conversationId: HOME, createConversation: true } : {}
    const host = hostOf(attempt, script(attempt), { subagents })
    return runIn(attempt, (runtime) => runtime.run(host, 'go' as never, where))
  }
  return { name, depth: 1, hasOffer: true, open }
}

/** Starts it with the tools of the background, under the name that the host's grants know. */
function inBackground(
  name: string,
  { tool: first, script }: { tool: 'subagent_run' | 'subagent_spawn'; script: (attempt: Try) => Script },
): Door {
  const open = (attempt: Try) => {
    const { profile } = attempt.bound
    const worker = attempt.worker.make('message')
    const profiles = profile === undefined ? {} : { profile, profiles: [profile] }
    const made = backgroundSubagents({ agent: worker, ...profiles })
    const tools = { ask: made[first], subagent_send: made.subagent_send, subagent_wait: made.subagent_wait }
    const { grant } = attempt.bound
    // Beside what is tried, the host may talk with its children.
    const talking = grant?.use === undefined ? grant : { ...grant, use: [...grant.use, 'tool:subagent_*'] }
    const rest = talking === undefined ? { tools } : { tools, grant: talking }
    return runIn(attempt, (runtime) => runtime.run(hostOf(attempt, script(attempt), rest), 'go' as never))
  }
  return { name, depth: 1, hasOffer: true, open }
}

function runOnce({ smuggled }: Try): Script {
  return ({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? 'done'
      : { calls: [{ name: 'ask', input: { name: 'worker', prompt: 'probe', ...smuggled } }] }
}

/** A harmless word first; what counts is sent to the child that it made. */
function sendOnce({ smuggled }: Try): Script {
  return ({ messages }) => {
    const results = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
    const id = /"child_conversation_id":"([^"]+)"/.exec(results[0] ?? '')?.[1]
    if (results.length === 0) return { calls: [{ name: 'ask', input: { name: 'worker', prompt: 'hello' } }] }
    if (results.length === 2) return { calls: [{ name: 'subagent_wait', input: {} }] }
    if (results.length > 2 || id === undefined) return 'done'
    const input = { child_conversation_id: id, message: 'probe', ...smuggled }
    return { calls: [{ name: 'subagent_send', input }] }
  }
}

const EVERYTHING = ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*', 'net:*']

/** The host answers with a plan whose item is what the worker is asked. */
function throughPlan(attempt: Try): Promise<void> {
  const { ask } = offerOf(attempt.bound, attempt.worker.make('message'))
  const output = { type: 'object', properties: { steps: { type: 'array', items: {} } }, required: ['steps'] }
  const plan = () => JSON.stringify({ ...attempt.smuggled, steps: ['probe'] })
  const host = hostOf(attempt, plan, { output, eager: { 'steps[*]': ask } })
  return runIn(attempt, (runtime) => runtime.run(host, 'go' as never))
}

function throughMadeTool(attempt: Try): Promise<void> {
  const { profile } = attempt.bound
  const spec = { name: 'worker', ...(profile === undefined ? {} : { profile }) }
  const made = makeSubagentTool(attempt.worker.make('typed'), spec, { host: { name: 'host' } })
  const host = hostOf(attempt, once(attempt), { tools: { ask: made.tool } })
  return runIn(attempt, (runtime) => runtime.run(host, 'go' as never))
}

function throughMiddle(attempt: Try): Promise<void> {
  const middle = agent({
    name: 'middle',
    instructions: '',
    model: scriptedModel(once(attempt), 'host/model'),
    settings: { maxOutputTokens: 10 },
    subagents: { ask: attempt.worker.make('message') },
  })
  const host = hostOf(attempt, once(attempt), { subagents: offerOf(attempt.bound, middle) })
  return runIn(attempt, (runtime) => runtime.run(host, 'go' as never))
}

interface InsideTool {
  readonly runtime: Runtime
  delegate(agent: AnyAgent, input: never): Promise<unknown>
}

function inside(name: string, begin: (worker: AnyAgent, context: InsideTool) => Promise<unknown>): Door {
  const open = (attempt: Try) =>
    runIn(attempt, (runtime, outer) => {
      const ask = tool({
        description: 'Asks the worker.',
        input: { type: 'object' },
        execute: async (_input, { delegate }) => {
          await begin(attempt.worker.make('message'), { runtime: outer, delegate: delegate as InsideTool['delegate'] })
          return 'asked'
        },
      })
      return runtime.run(hostOf(attempt, once(attempt), { tools: { ask } }), 'go' as never)
    })
  return { name, depth: 1, hasOffer: false, open }
}

type Mutate = Parameters<Awaited<ReturnType<Runtime['conversation']>>['mutate']>[0]
type Change = (mutation: Parameters<Mutate>[0]) => void

function byHand(name: string, change: Change): Door {
  const open = (attempt: Try) => {
    const subagents = offerOf(attempt.bound, attempt.worker.make('message'))
    return putIn(attempt, hostOf(attempt, once(attempt), { subagents }), { change })
  }
  return { name, depth: 1, hasOffer: true, open }
}

/** The host delegates a harmless word; somebody else forks its lane so that the delegation runs again, and now it counts. */
function throughRerunFork(attempt: Try): Promise<void> {
  let word = 'hello'
  const script: Script = ({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? 'done'
      : { calls: [{ name: 'ask', input: { ...attempt.smuggled, message: word } }] }
  const host = hostOf(attempt, script, { subagents: offerOf(attempt.bound, attempt.worker.make('message')) })
  return runIn(attempt, async (runtime) => {
    const run = runtime.run(host, 'go' as never)
    await finish(runtime, run.result)
    word = 'probe'
    const talk = await runtime.conversation(run.conversationId)
    const first = localStore(runtime).nodesOf(run.id)[0]?.id ?? ''
    const forked = await talk.history.fork(first)
    return forked.run ?? run
  })
}

/** A harmless child ends in the background; the host delegates when it hears of that. */
function throughWake(attempt: Try): Promise<void> {
  const helper = agent({ name: 'helper', instructions: '', model: scriptedModel(() => 'helped', 'host/model') })
  const script: Script = ({ messages }) => {
    const last = messages.at(-1)
    const isWoken = String(last?.content).startsWith('[background]')
    if (last?.role === 'tool') return String(last.content)
    if (isWoken) return { calls: [{ name: 'ask', input: { ...attempt.smuggled, message: 'probe' } }] }
    return { calls: [{ name: 'subagent_spawn', input: { name: 'helper', prompt: 'hello' } }] }
  }
  const { grant } = attempt.bound
  const talking = (rules: readonly string[]) => [...rules, 'tool:subagent_*']
  const subagents = offerOf(attempt.bound, attempt.worker.make('message'))
  const host = hostOf(attempt, script, {
    subagents,
    tools: { ...backgroundSubagents({ agent: helper }) },
    ...(grant?.use === undefined ? {} : { grant: { ...grant, use: talking(grant.use) } }),
  })
  return runIn(attempt, async (runtime) => {
    const run = runtime.run(host, 'go' as never)
    await finish(
      runtime,
      run.result.then(() => runtime.idle()),
    )
    return run
  })
}

function throughKind(attempt: Try): Promise<void> {
  const kinds: RuntimeOptions['kinds'] = {
    handoff: { execute: (_node, { delegate }) => delegate(attempt.worker.make('message'), 'probe' as never) },
  }
  const change: Change = (mutation) => {
    mutation.createNode({ kind: 'handoff' })
  }
  return putIn(attempt, hostOf(attempt, once(attempt), {}), { change, kinds })
}

interface ByHand {
  readonly change: Change
  readonly kinds?: RuntimeOptions['kinds']
}

/** A conversation of the host's, and then a turn that nobody asked for but the one who put it in. */
function putIn(attempt: Try, host: AnyAgent, { change, kinds = {} }: ByHand): Promise<void> {
  return runIn(
    attempt,
    async (runtime) => {
      const { conversationId } = await runtime.run(host, 'begin' as never).result
      const talk = await ownHandle(attempt, runtime, conversationId)
      const turnId = await talk.mutate((mutation) => {
        change(mutation)
        return mutation.runId
      })
      return runtime.attach(turnId)
    },
    { kinds },
  )
}

interface Begun {
  readonly nodes: readonly Node[]
  /** The host is asked to delegate, in a lane. */
  go(laneId: string): Run
  /** The host is told something that it does not delegate, in a lane. */
  say(laneId: string): Promise<unknown>
  readonly mode: Mode
}

/** The history of a host that has not delegated yet is changed so that it does. */
function changed(
  name: string,
  change: (talk: ConversationHandle, begun: Begun) => Run | Promise<Run>,
  isOwn = false,
): Door {
  const open = (attempt: Try) => {
    const mode: Mode = { now: 'beginning' }
    const subagents = offerOf(attempt.bound, attempt.worker.make('message'))
    const host = hostOf(attempt, once(attempt, mode), { subagents })
    return runIn(attempt, async (runtime) => {
      const { conversationId, runId } = await runtime.run(host, 'begin' as never).result
      const talk = await (isOwn ? ownHandle(attempt, runtime, conversationId) : runtime.conversation(conversationId))
      return change(talk, {
        mode,
        nodes: localStore(runtime).nodesOf(runId),
        go: (laneId) => runtime.run(host, 'go' as never, { conversationId: laneId }),
        say: (laneId) => runtime.run(host, 'begin' as never, { conversationId: laneId }).result,
      })
    })
  }
  return { name, depth: 1, hasOffer: true, open }
}

/** A harmless word is delegated; what counts is said by a person, in a lane forked from the child. */
function throughItsFork(attempt: Try): Promise<void> {
  const worker = attempt.worker.make('message')
  const script: Script = ({ messages }) =>
    messages.at(-1)?.role === 'tool' ? 'done' : { calls: [{ name: 'ask', input: { message: 'hello' } }] }
  const host = hostOf(attempt, script, { subagents: offerOf(attempt.bound, worker) })
  return runIn(attempt, async (runtime) => {
    const run = runtime.run(host, 'go' as never)
    await finish(runtime, run.result)
    const [link] = localStore(runtime).linksOf(run.id)
    const answer = localStore(runtime)
      .nodesOf(link?.id ?? '')
      .at(-1)
    if (link === undefined || answer === undefined) return run
    const { id } = await (await runtime.conversation(link.childConversationId)).history.fork(answer.id)
    return runtime.run(worker, 'probe' as never, { conversationId: id })
  })
}

/** The first process dies while the worker thinks; the second has other definitions, and only the rows of the first. */
async function throughTakeover(attempt: Try): Promise<void> {
  const rows = attempt.create()
  const gone = { ...attempt, worker: { ...attempt.worker, make: () => thinker } }
  const first = startProcess(rows, { ...attempt.bound.runtime })
  const host = (from: Try) =>
    hostOf(from, once(attempt), { subagents: offerOf(from.bound, from.worker.make('message')) })
  const run = callerOf(attempt.bound, first.runtime).run(host(gone), 'go' as never)
  run.result.catch(() => undefined)
  const link = await until('the child', () => first.store.linksOf(run.id)[0] ?? ended(first.store.turn(run.id)))
  await first.kill()
  if (link === 'ended') return rows.drop()
  const after = { ...attempt, bound: attempt.later }
  const second = startProcess(rows, { ...attempt.later.runtime, agents: [host(after)], mayFail: true })
  await second.runtime.resume()
  await finish(second.runtime, (await second.runtime.attach(run.id)).result)
  await second.runtime.close()
  await rows.drop()
}

const thinker = agent({
  name: 'worker',
  instructions: '',
  model: scriptedModel(() => new Promise(() => undefined), 'dear/model'),
})

function ended(turn: { readonly state: string } | undefined): 'ended' | undefined {
  return turn?.state === 'ended' ? 'ended' : undefined
}

function atRoot(attempt: Try, isKnown: boolean): Promise<void> {
  const root = attempt.worker.make('message')
  return runIn(attempt, async (runtime) => {
    if (!isKnown) return runtime.run(root, 'probe' as never)
    const { conversationId } = await runtime.run(root, 'hello' as never).result
    return runtime.run(root, 'probe' as never, { conversationId })
  })
}

/** The runtime as the host's caller has it. */
function callerOf({ layers, request }: Bound, runtime: Runtime): Runtime {
  if (layers === undefined && request === undefined) return runtime
  return new RuntimeFor(runtime, layers ?? {}).asRuntime(request)
}

/** A conversation in the hands of the host's caller, whose layers bind what is put in. */
function ownHandle({ bound }: Try, runtime: Runtime, id: string): Promise<ConversationHandle> {
  const { creator, caller = [] } = bound.layers ?? {}
  const { grant = {}, budget } = bound.request ?? {}
  const asked = bound.request === undefined ? [] : callerLayer('the caller', grant, budget)
  return new RuntimeFor(runtime, { creator, caller: [...caller, ...asked] }).conversation(id)
}

async function runIn(
  { create, bound }: Pick<Try, 'create' | 'bound'>,
  begin: (runtime: Runtime, inside: Runtime) => Run | Promise<Run>,
  more: Pick<RuntimeOptions, 'kinds' | 'models'> = {},
): Promise<void> {
  const rows = create()
  const { runtime } = startProcess(rows, { ...bound.runtime, ...more, mayFail: true })
  const run = await begin(callerOf(bound, runtime), runtime)
  await finish(runtime, run.result)
  await runtime.close()
  await rows.drop()
}

/** Nobody says yes. */
async function finish(runtime: Runtime, result: Promise<unknown>): Promise<void> {
  let isOver = false
  const over = () => {
    isOver = true
  }
  result.then(over, over)
  while (!isOver) {
    for (const { nodeId } of await runtime.approvals()) {
      await runtime.answer(nodeId, { allow: false, reason: 'no' }).catch(() => undefined)
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}
