import {
  type AnyAgent,
  agent,
  type Principal,
  type Run,
  type RunOutcome,
  type Runtime,
  type StartOptions,
} from 'legate'
import { backgroundSubagents } from 'legate/background'
import { type Script, scriptedModel } from 'legate/testing'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Conversation, Node } from '../../src/core/graph/rows.ts'
import { simpleTool, useWorld } from '../support/agents.ts'
import { callerLayer, RuntimeFor } from '../support/callers.ts'
import { makeGate } from '../support/gate.ts'
import { type Process, startProcess, until } from '../support/process.ts'
import { lasting, stores } from '../support/stores.ts'

/** What was run, in order: the names of tools. */
const ran: string[] = []
let held = makeGate()
let mayFail = true

const noted = (name: string) =>
  simpleTool(() => {
    ran.push(name)
    return `${name} done`
  })

/**
 * Does what the last user message says: `use a b` calls these tools one after the other, `ask TEXT` and `again SESSION TEXT` a
 * subagent, `spawn TEXT` one in the background; `fail a b` fails once and then does as `use`. When an end in the background is reported, it tries to write.
 */
const obey: Script = ({ messages }) => {
  const at = messages.findLastIndex(({ role }) => role === 'user')
  const results = messages.slice(at).flatMap((one) => (one.role === 'tool' ? [String(one.content)] : []))
  const said = String(messages[at]?.content)
  if (said.startsWith('fail') && mayFail) {
    mayFail = false
    return { error: new Error('The model is broken.') }
  }
  const calls = said.startsWith('[background]') ? [{ name: 'write', input: {} }] : callsOf(said.split(' '))
  const next = calls[results.length]
  return next === undefined ? [...results, 'ok'].join('\n') : { calls: [next] }
}

function callsOf([verb = '', first = '', ...rest]: readonly string[]) {
  if (verb === 'use' || verb === 'fail') return [first, ...rest].map((name) => ({ name, input: {} }))
  const message = [first, ...rest].join(' ')
  if (verb === 'ask') return [{ name: 'ask', input: { message } }]
  if (verb === 'again') return [{ name: 'ask', input: { message: rest.join(' '), session_id: first } }]
  if (verb === 'spawn') return [{ name: 'subagent_spawn', input: { name: 'worker', prompt: message } }]
  return []
}

const tools = () => ({
  read: noted('read'),
  write: noted('write'),
  danger: noted('danger'),
  pause: { ...noted('pause'), approval: 'ask' as const },
  hold: simpleTool(() => held.opened.then(() => 'held'), { effect: 'pure' }),
})

function people(): { readonly host: AnyAgent; readonly agents: readonly AnyAgent[] } {
  const worker = agent({ name: 'worker', instructions: '', model: scriptedModel(obey), tools: tools() })
  const host = agent({
    name: 'host',
    instructions: '',
    model: scriptedModel(obey),
    tools: { ...tools(), ...backgroundSubagents({ agent: worker }) },
    subagents: { ask: { agent: worker, retries: 1, retryDelayMs: 0 } },
  })
  return { host: host as AnyAgent, agents: [host as AnyAgent, worker as AnyAgent] }
}

const { host, agents } = people()

/** Ann may not do `danger` at all, and her requests of these tests do not write. */
const ANN = callerLayer('ann', { deny: ['tool:danger'] })
const ADMIN = callerLayer('admin', {})
const NO_WRITE: StartOptions = { grant: { deny: ['tool:write'] } }

const ann = (runtime: Runtime) => new RuntimeFor(runtime, { creator: ANN, caller: ANN })
const admin = (runtime: Runtime) => new RuntimeFor(runtime, { creator: ADMIN, caller: ADMIN })

/** The tools that were run until this run was over, since this was asked last. */
async function tried(run: Run): Promise<readonly string[]> {
  await run.result
  return ran.splice(0)
}

const remote = stores.filter(([name]) => name === 'memory that answers later')

beforeEach(() => {
  ran.length = 0
  held = makeGate()
  mayFail = true
})

describe.each([...lasting, ...remote])('I1: whoever asks for a turn binds it and all it starts, on %s', (_, create) => {
  const world = useWorld(create)
  let live: Process = undefined as unknown as Process
  const begin = (grant?: { deny: string[] }) => {
    live = world.start({ agents, ...(grant === undefined ? {} : { grant }) })
    return live.runtime
  }
  const rows = () => live.store
  /** Another process takes over. */
  const next = async () => {
    await live.runtime.close()
    const runtime = begin()
    await runtime.resume()
    return runtime
  }
  const row = (id: string): Conversation => rows().conversation(id) as Conversation
  const nodesOf = (runId: string): readonly Node[] => rows().nodesOf(runId)
  const verdict = async (runId: string, request: string) => (await live.runtime.explain(runId, request)).verdict
  /** Answers the call that waits for a person, or will. */
  const answered = async (allow: boolean) => {
    const { id } = await until('a call that asks', () => rows().awaiting({ limit: 1 })[0])
    await live.runtime.answer(id, { allow, by: 'joe' })
  }
  const where = ({ conversationId }: { readonly conversationId: string }) => ({ conversationId })

  test('the creator for good, each caller for one turn: ann, an admin, ann again, each in another process', async () => {
    const first = await ann(begin()).run(host, 'use read write danger', { ...NO_WRITE, owner: 'ann' })
    expect(await tried(first)).toEqual(['read'])

    const wide = await admin(await next()).run(host, 'use write danger', where(first))
    expect(await tried(wide)).toEqual(['write'])
    expect(await tried(await admin(live.runtime).run(host, 'ask use write danger', where(first)))).toEqual(['write'])

    const again = await ann(await next()).run(host, 'ask use read write danger', { ...NO_WRITE, ...where(first) })
    expect(await tried(again)).toEqual(['read'])
    expect(row(first.conversationId).ceiling).toEqual(ANN)
    expect(await tried(await admin(live.runtime).run(host, 'use danger'))).toEqual(['danger'])
  })

  test('a plain run leaves nothing on its conversation', async () => {
    const strict = begin({ deny: ['tool:danger'] })
    const run = strict.run(host, 'ask use read write danger', NO_WRITE)
    expect(await tried(run)).toEqual(['read'])
    expect(row(run.conversationId).ceiling).toEqual([])
    const [link] = rows().linksOf(run.id)
    const child = rows().turn(link?.id ?? '')
    expect(child?.ceiling).toEqual(rows().turn(run.id)?.ceiling)
    expect(child?.ceiling.map((layer) => (layer as { by: string }).by)).toEqual(['the runtime', 'the caller'])
    await strict.close()

    expect(await tried(begin().run(host, 'use write danger', where(run)))).toEqual(['write', 'danger'])
  })

  test.each<[string, 'ann' | 'admin', string[]]>([
    ['its own caller, whoever spoke since', 'ann', []],
    ['the caller who spoke since, whose budget it continues', 'admin', []],
  ])('a wake is bound by %s, and the turn after it by neither', async (_words, spawns) => {
    const runtime = begin()
    const options = { ...NO_WRITE, owner: 'ann' }
    const created = await ann(runtime).run(host, 'use read', { owner: 'ann' })
    await created.result
    const narrow = (message: string) => ann(live.runtime).run(host, message, { ...options, ...where(created) })
    const wide = (message: string) => admin(live.runtime).run(host, message, where(created))
    const first = await (spawns === 'ann' ? narrow : wide)('spawn use pause write')
    await first.result
    await until('the child to ask', () => rows().awaiting({ limit: 1 })[0])
    await (await (spawns === 'ann' ? wide : narrow)('use read')).result
    ran.length = 0

    const later = await next()
    await answered(true)
    await later.idle()
    const woken = rows()
      .turnsOf(created.conversationId, { limit: 9 })
      .find(({ wokenBy }) => wokenBy !== null)

    // The child of an admin may write; the report that ann's budget pays for may not.
    expect(ran.splice(0)).toEqual(spawns === 'ann' ? ['pause'] : ['pause', 'write'])
    expect(woken?.outcome?.status).toBe('completed')
    expect(await verdict(woken?.id ?? '', 'tool:write')).toBe('deny')
    expect(await tried(await wide('use write'))).toEqual(['write'])
    expect(await tried(await narrow('use write'))).toEqual([])
  })

  test('a fork by an admin is bound by the turn it runs again, and its next turn is not', async () => {
    const first = await ann(begin()).run(host, 'ask use write danger', { ...NO_WRITE, owner: 'ann' })
    expect(await tried(first)).toEqual([])
    const last = nodesOf(first.id).at(-1)?.id ?? ''

    const talk = await admin(await next()).conversation(first.conversationId)
    const { id, run } = await talk.history.fork(last, { children: 'rerun' })
    expect(run).not.toBeNull()
    expect(await tried(run as Run)).toEqual([])
    expect(rows().linksOf(run?.id ?? '')).toHaveLength(1)
    expect(row(id).ceiling).toEqual(ANN)

    await next()
    expect(await tried(await admin(live.runtime).run(host, 'ask use write danger', { conversationId: id }))).toEqual([
      'write',
    ])
  })

  test('a lane forked inside a child has the child’s layers and its caller’s, not those of the turn that made it', async () => {
    const first = await ann(begin()).run(host, 'ask use read', { ...NO_WRITE, owner: 'ann' })
    expect(await tried(first)).toEqual(['read'])
    const [link] = rows().linksOf(first.id)
    const [, worker] = agents
    const at = nodesOf(link?.id ?? '').at(-1)?.id ?? ''
    const { id } = await (await live.runtime.conversation(link?.childConversationId ?? '')).history.fork(at)

    await next()
    const narrow = await ann(live.runtime).run(worker as AnyAgent, 'use read write danger', {
      ...NO_WRITE,
      conversationId: id,
    })
    expect(await tried(narrow)).toEqual(['read'])
    const wide = await admin(live.runtime).run(worker as AnyAgent, 'use write danger', { conversationId: id })
    expect(await tried(wide)).toEqual(['write'])
  })

  test('an edit, a rerun and a retry are bound by the turn they replace and by whoever asks', async () => {
    const first = await ann(begin()).run(host, 'use read', { ...NO_WRITE, owner: 'ann', budget: { modelCalls: 7 } })
    expect(await tried(first)).toEqual(['read'])
    const said = nodesOf(first.id)[0]?.id ?? ''
    await next()
    const byAdmin = await admin(live.runtime).conversation(first.conversationId)
    const edited = await byAdmin.history.edit(said, 'ask use read write danger')
    expect(await tried(edited)).toEqual(['read'])
    expect(rows().turn(edited.id)?.limits.modelCalls).toBe(7)

    const rerun = await byAdmin.history.rerun(nodesOf(edited.id).at(-1)?.id ?? '')
    await rerun.result
    expect(await verdict(rerun.id, 'tool:write')).toBe('deny')
    expect(rows().turn(rerun.id)?.limits.modelCalls).toBe(7)

    const wide = await admin(live.runtime).run(host, 'use pause write', where(first))
    await answered(false)
    expect(await tried(wide)).toEqual(['write'])
    const rejected = nodesOf(wide.id).find(({ state }) => state === 'rejected')?.id ?? ''
    const narrow = new RuntimeFor(await next(), { caller: callerLayer('bob', { deny: ['tool:write'] }) })
    const retried = await (await narrow.conversation(first.conversationId)).history.retry(rejected)
    await answered(true)
    expect(await tried(retried)).toEqual(['pause'])
    expect(await tried(await admin(live.runtime).run(host, 'use write', where(first)))).toEqual(['write'])
  })

  test('what is put in by hand is bound by whoever puts it in, into a running turn too', async () => {
    const created = await admin(begin()).run(host, 'use hold')
    await until('the tool', () => nodesOf(created.id).find(({ kind, state }) => kind === 'task' && state === 'running'))
    const bob = new RuntimeFor(live.runtime, { caller: callerLayer('bob', { deny: ['tool:write'] }) })
    const talk = await bob.conversation(created.conversationId)
    await talk.mutate(
      (graph) => {
        graph.createNode({ kind: 'task', input: { call: { id: 'c', name: 'write', input: {} } } })
      },
      { runId: created.id },
    )
    await until('the task', () =>
      nodesOf(created.id).find(({ input, endedAt }) => input.call?.id === 'c' && endedAt !== null),
    )
    expect(ran).toEqual([])
    held.open()
    await created.result

    const runId = await talk.mutate((graph) => {
      graph.createNode({ kind: 'user_message', content: 'ask use write' })
      return graph.runId
    })
    expect(await tried(await live.runtime.attach(runId))).toEqual([])
    expect(await tried(await admin(live.runtime).run(host, 'use write', where(created)))).toEqual(['write'])
  })

  test('runtime.as binds what a principal creates, starts and changes: an owner, an admin, the owner again', async () => {
    const scopes = ['start', 'read', 'history', 'approve'] as const
    const owner: Principal = { id: 'ann', scopes, grant: { deny: ['tool:danger'] }, budget: { modelCalls: 8 } }
    const boss: Principal = { id: 'joe', scopes: [...scopes, 'admin'], sees: 'all' }
    const helper: Principal = { ...boss, id: 'kim', grant: { deny: ['tool:write'] } }
    const first = begin().as(owner).run('host', 'ask use read write danger', NO_WRITE)
    expect(await tried(first)).toEqual(['read'])

    await next()
    expect(await tried(live.runtime.as(boss).run('host', 'ask use write danger', where(first)))).toEqual(['write'])
    const narrow = live.runtime.as(helper).run('host', 'use read write', where(first))
    expect(await tried(narrow)).toEqual(['read'])
    expect(rows().turn(narrow.id)?.limits.modelCalls).toBe(8)

    await next()
    const said = nodesOf(narrow.id)[0]?.id ?? ''
    const talk = await live.runtime.as(boss).conversation(first.conversationId)
    expect(await tried(await talk.history.edit(said, 'ask use read write danger'))).toEqual(['read'])
    const { id } = await talk.history.fork(nodesOf(first.id).at(-1)?.id ?? '')
    expect(await tried(live.runtime.as(boss).run('host', 'use write danger', { conversationId: id }))).toEqual([
      'write',
    ])
    expect(await tried(live.runtime.as(owner).run('host', 'use write danger', where(first)))).toEqual(['write'])
  })

  test('a child that is tried again is bound as the first one was', async () => {
    const first = begin().run(host, 'ask fail read write', NO_WRITE)
    expect(await tried(first)).toEqual(['read'])
    const links = rows().linksOf(first.id)
    expect(links.map(({ attempt }) => attempt)).toEqual([1, 2])
    for (const { id } of links) expect(rows().turn(id)?.ceiling).toEqual(rows().turn(first.id)?.ceiling)

    mayFail = true
    expect(await tried(live.runtime.run(host, 'ask fail read write', where(first)))).toEqual(['read', 'write'])
  })

  test('a session goes on under whoever continues it: wide, narrow, wide', async () => {
    const first = await admin(begin()).run(host, 'ask use write')
    expect(await tried(first)).toEqual(['write'])
    const [link] = rows().linksOf(first.id)
    const session = link?.childConversationId ?? ''
    const made = row(session).ceiling

    await next()
    const narrow = { ...NO_WRITE, budget: { toolCalls: 5 }, ...where(first) }
    const second = await ann(live.runtime).run(host, `again ${session} use read write danger`, narrow)
    expect(await tried(second)).toEqual(['read'])
    expect(rows().linksOf(second.id)[0]).toMatchObject({ childConversationId: session })
    expect(rows().turn(rows().linksOf(second.id)[0]?.id ?? '')?.limits.toolCalls).toBe(5)

    await next()
    const third = await admin(live.runtime).run(host, `again ${session} use write danger`, where(first))
    expect(await tried(third)).toEqual(['write', 'danger'])
    expect(rows().turn(rows().linksOf(third.id)[0]?.id ?? '')?.limits.toolCalls).toBe(1_000)
    expect(row(session).ceiling).toEqual(made)
  })

  test('a turn that waits behind another has its own layers only', async () => {
    const running = await admin(begin()).run(host, 'use hold write')
    await until('the tool', () => nodesOf(running.id).find(({ kind, state }) => kind === 'task' && state === 'running'))
    const narrow = await ann(live.runtime).run(host, 'ask use read write', { ...NO_WRITE, ...where(running) })
    const wide = await admin(live.runtime).run(host, 'use danger', where(running))
    held.open()
    await wide.result

    expect(ran).toEqual(['write', 'read', 'danger'])
    expect(await narrow.result).toMatchObject({ status: 'completed' })
  })

  test('a run that was killed goes on under its layers in a process that allows more', async () => {
    const strict = begin({ deny: ['tool:danger'] })
    const run = await new RuntimeFor(strict, { caller: ANN }).run(host, 'ask use pause read write danger', NO_WRITE)
    await until('the child to ask', () => rows().awaiting({ limit: 1 })[0])
    await live.kill()

    const runtime = begin()
    await runtime.resume()
    await answered(true)
    await (await runtime.attach(run.id)).result
    expect(ran.splice(0)).toEqual(['pause', 'read'])

    expect(await tried(runtime.run(host, 'ask use write danger', where(run)))).toEqual(['write', 'danger'])
  })

  test('budgets of the creator and of the caller bound the turn and its children', async () => {
    const creator = callerLayer('ann', {}, { modelCalls: 9, tokens: 90_000 })
    const caller = callerLayer('ann now', {}, { modelCalls: 4 })
    const first = await new RuntimeFor(begin(), { creator, caller }).run(host, 'ask use read', {
      budget: { toolCalls: 3 },
    })
    const limitsOf = (run: Run) => {
      const [link] = rows().linksOf(run.id)
      return [run.id, link?.id ?? ''].map((id) => {
        const turn = rows().turn(id)
        return [turn?.limits.modelCalls, turn?.limits.toolCalls, turn?.spend?.limit.tokens]
      })
    }
    await first.result
    expect(limitsOf(first)).toEqual([
      [4, 3, 90_000],
      [4, 3, 90_000],
    ])

    const second = await admin(await next()).run(host, 'ask use read', where(first))
    const outcome: RunOutcome = await second.result
    expect(outcome.status).toBe('completed')
    expect(limitsOf(second)).toEqual([
      [9, 1_000, 90_000],
      [9, 1_000, 90_000],
    ])

    // The same offer, in the same process, for a caller who gives less.
    const third = live.runtime.run(host, 'ask use read', { budget: { toolCalls: 2 }, ...where(first) })
    await third.result
    expect(limitsOf(third)).toEqual([
      [9, 2, 90_000],
      [9, 2, 90_000],
    ])
  })
})

test('turns of one caller and of all its children share one ceiling', async ({ skip }) => {
  skip(process.env['LEGATE_FRESH'] === '1', 'rows that are read again before each node are other objects')
  const [, create] = lasting[0] ?? ['', () => undefined as never]
  const kept = create()
  const { runtime, store } = startProcess(kept, { agents, grant: { deny: ['tool:danger'] } })
  const bound = ann(runtime)
  const runs = [await bound.run(host, 'ask use read'), await bound.run(host, 'ask use read')]
  for (const { result } of runs) await result
  const ids = runs.flatMap(({ id }) => [id, store.linksOf(id)[0]?.id ?? ''])
  const ceilings = new Set(ids.map((id) => store.turn(id)?.ceiling))
  const children = new Set(
    runs.map(({ id }) => store.conversation(store.linksOf(id)[0]?.childConversationId ?? '')?.ceiling),
  )
  await runtime.close()
  await kept.drop()

  expect(ids).toHaveLength(4)
  expect([...ceilings].map((ceiling) => ceiling?.length)).toEqual([2])
  expect(children.size).toBe(1)
})
