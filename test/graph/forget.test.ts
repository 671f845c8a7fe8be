import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { agent, type ConversationHandle, createRuntime, type Runtime, tool } from 'legate'
import { jsonStore } from 'legate/store/json'
import { memoryStore } from 'legate/store/memory'
import { sqliteStore } from 'legate/store/sqlite'
import { fakeClock, scriptedModel } from 'legate/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { LocalStore } from '../../src/core/store/store.ts'
import { CODE, sourceMark, type ToolSource } from '../../src/core/tool/source.ts'
import { connectTo } from '../../src/stores/sqlite/driver.ts'
import { localStore, withReads } from '../support/rows.ts'
import { tempFolder } from '../support/temp-folder.ts'

/** Long enough to be told apart; an engine looks around every second of it. */
const LONG = 3_000
const kinds = ['memory', 'json', 'sqlite'] as const

let folder: string
const open: Runtime[] = []

beforeEach(() => {
  folder = tempFolder()
})

afterEach(async () => {
  for (const runtime of open.splice(0)) await runtime.close()
})

describe.each(kinds)('in a %s store', (kind) => {
  test('a tree is deleted by hand: every read of it says when and why, and the audit is clean', async () => {
    const runtime = runtimeOn(kind)
    const { runId, conversationId } = await runtime.run(host, 'delegate').result
    const { runId: other } = await runtime.run(host, 'hello').result
    const [child] = localStore(runtime).linksOf(runId)
    const lines = await linesOf(runtime, conversationId)

    const stone = await runtime.forget(runId, 'the customer asked for it')

    expect(stone).toMatchObject({ rootId: conversationId, agent: 'host', reason: 'the customer asked for it' })
    expect(stone.hash).toBe(JSON.parse(lines[0] ?? '').hash)
    expect(stone.conversations).toEqual([
      { id: conversationId, parentId: null, runs: [runId] },
      { id: child?.childConversationId, parentId: conversationId, runs: [child?.id] },
    ])
    expect(await runtime.store.archive?.tombstones()).toEqual([stone])
    const gone = { code: 'not_found', message: expect.stringMatching(/was deleted at .*the customer asked for it/) }
    await expect(runtime.attach(runId)).rejects.toThrow(/was deleted at .*the customer asked/)
    await expect(runtime.usage(runId)).rejects.toThrow(/was deleted at/)
    await expect(runtime.conversation(conversationId)).rejects.toMatchObject(gone)
    await expect(runtime.tree(child?.childConversationId ?? '')).rejects.toMatchObject(gone)
    await expect(runtime.picture(conversationId)).rejects.toMatchObject(gone)
    await expect(runtime.diff(other, runId)).rejects.toMatchObject(gone)
    await expect(runtime.cancel(runId)).rejects.toMatchObject(gone)
    await expect(linesOf(runtime, conversationId)).rejects.toMatchObject(gone)
    await expect(runtime.audit({ rootId: conversationId })).rejects.toMatchObject(gone)
    await expect(runtime.run(host, 'hello', { conversationId }).result).rejects.toMatchObject(gone)
    const why = await runtime.why(child?.id ?? '')
    expect(why).toMatchObject({ goesOn: false, reasons: [{ code: 'deleted' }] })
    expect(why.text).toMatch(/^host: It was deleted at .*the customer asked for it/)

    expect(await runtime.forget(conversationId)).toEqual(stone)
    expect((await (await runtime.attach(other)).result).status).toBe('completed')
    expect((await runtime.audit({ verify: true })).findings).toEqual([])
  })

  test('a tree that is not over is refused until it is cancelled', async () => {
    const runtime = runtimeOn(kind)
    const run = runtime.run(careful, 'deploy')
    await asked(runtime)

    await expect(runtime.forget(run.id)).rejects.toMatchObject({
      code: 'conflict',
      message: /has not ended. Cancel it/,
    })
    expect(await runtime.prune({ keep: 0, olderThanMs: 0 })).toEqual([])
    await runtime.cancel(run.id)
    await run.result

    expect(await runtime.forget(run.id)).toMatchObject({ rootId: run.conversationId, reason: 'forgotten' })
  })

  test('trees beyond a maximum, or too old, go; the one in which something happened last stays', async () => {
    const clock = fakeClock()
    const start = clock.now()
    const runtime = runtimeOn(kind, clock)
    const first = (await runtime.run(host, 'hello').result).conversationId
    await clock.advance(LONG)
    const second = (await runtime.run(host, 'hello').result).conversationId
    await clock.advance(LONG)
    const third = (await runtime.run(host, 'hello').result).conversationId
    await clock.advance(LONG)
    await runtime.run(host, 'once more', { conversationId: first }).result

    const trial = await runtime.prune({ keep: 2, dryRun: true })
    expect(trial).toMatchObject([{ rootId: second, reason: 'maximum', at: start + 3 * LONG }])
    expect(rootsOf(runtime)).toHaveLength(3)
    expect(await runtime.prune({ keep: 2 })).toEqual(trial)
    expect(rootsOf(runtime)).toEqual([third, first])
    expect(await runtime.prune({ keep: 2, olderThanMs: 2 * LONG })).toEqual([])
    await clock.advance(LONG)
    expect(await runtime.prune({ olderThanMs: 2 * LONG })).toMatchObject([{ rootId: third, reason: 'ttl' }])
    expect(await runtime.prune({ keep: 0 })).toMatchObject([{ rootId: first, reason: 'maximum' }])

    expect((await runtime.store.archive?.tombstones())?.map(({ rootId }) => rootId)).toEqual([second, third, first])
    expect((await runtime.audit({ verify: true })).findings).toEqual([])
    localStore(runtime).reopen()
    expect(await runtime.store.archive?.tombstones()).toHaveLength(3)
  })

  test('what was exported before comes back; another tree with its ids does not', async () => {
    const runtime = runtimeOn(kind)
    const { conversationId, runId } = await runtime.run(host, 'delegate').result
    const early = await linesOf(runtime, conversationId)
    await runtime.run(host, 'hello', { conversationId }).result
    const lines = await linesOf(runtime, conversationId)
    const { hash } = await runtime.forget(conversationId)

    await expect(runtime.import(early)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining(hash),
    })
    expect(localStore(runtime).conversation(conversationId)).toBeUndefined()
    expect(await runtime.import(lines)).toBe(conversationId)

    expect(await runtime.store.archive?.tombstones()).toEqual([])
    expect((await (await runtime.attach(runId)).result).status).toBe('completed')
    expect((await runtime.run(host, 'hello', { conversationId }).result).status).toBe('completed')
    expect((await runtime.audit({ verify: true })).findings).toEqual([])
    expect((await runtime.forget(conversationId)).hash).not.toBe(hash)
  })

  test('closing a session deletes nothing; it goes with its host, and the link stays', async () => {
    const runtime = runtimeOn(kind)
    const { runId, conversationId } = await runtime.run(host, 'delegate').result
    const [child] = localStore(runtime).linksOf(runId)
    const sessionId = child?.childConversationId ?? ''
    const talk = await runtime.conversation(conversationId)
    await talk.closeSession(sessionId)
    expect(localStore(runtime).conversation(sessionId)).toBeDefined()
    expect(await runtime.store.archive?.tombstones()).toEqual([])

    const [stone] = await runtime.prune({ keep: 0 })

    expect(stone?.conversations).toContainEqual({ id: sessionId, parentId: conversationId, runs: [child?.id] })
    await expect(talk.configure({ contextTurns: 4 })).rejects.toThrow(/was deleted at/)
  })

  test('hostile ids and options are refused in words', async () => {
    const runtime = runtimeOn(kind)
    const { runId } = await runtime.run(host, 'delegate').result
    const [child] = localStore(runtime).linksOf(runId)
    const notText = [undefined, null, 7, {}, [], Symbol.iterator, '']

    for (const id of notText)
      await expect(runtime.forget(id as string)).rejects.toMatchObject({ code: 'invalid_input' })
    for (const id of ['__proto__', 'constructor', 'nowhere', '\0', 'x'.repeat(100_000)]) {
      await expect(runtime.forget(id)).rejects.toMatchObject({ code: 'not_found' })
    }
    await expect(runtime.forget(child?.id ?? '')).rejects.toThrow(/trees are deleted whole. Name its root/)
    await expect(runtime.forget(runId, 5 as never)).rejects.toMatchObject({ code: 'invalid_input' })
    for (const wrong of [
      {},
      { dryRun: true },
      { keep: -1 },
      { keep: 1.5 },
      { keep: '1' },
      { olderThanMs: Number.NaN },
      { keep: 0, dryRun: 1 },
      { keep: 0, dryRun: 'yes' },
      undefined,
      null,
    ]) {
      await expect(runtime.prune(wrong as never)).rejects.toMatchObject({
        code: expect.stringMatching(/^(?:invalid_input|definition)$/),
      })
    }

    expect(rootsOf(runtime)).toHaveLength(1)
    expect(await runtime.store.archive?.tombstones()).toEqual([])
  })
})

test('two processes prune one file while a third works on it: each tree goes once, and nobody stumbles', async () => {
  const errors: unknown[] = []
  const logger = { error: (message: string) => errors.push(message), warn: () => undefined, info: () => undefined }
  const runtimes = [1, 2, 3].map(() => {
    const runtime = createRuntime({ store: storeOf('sqlite'), agents: [host], logger: logger as never })
    open.push(runtime)
    return runtime
  })
  const [one, two, worker] = runtimes as [Runtime, Runtime, Runtime]
  for (let n = 0; n < 12; n++) await worker.run(host, 'hello').result

  const [first, second, ...outcomes] = await Promise.all([
    one.prune({ keep: 0 }),
    two.prune({ keep: 0 }),
    ...Array.from({ length: 6 }, () => worker.run(host, 'delegate').result),
  ])

  for (const { status } of outcomes) expect(status).toBe('completed')
  const stones = (await worker.store.archive?.tombstones()) ?? []
  expect(new Set(stones.map(({ rootId }) => rootId)).size).toBe(stones.length)
  expect(first.length + second.length).toBe(stones.length)
  expect(stones.length).toBeGreaterThanOrEqual(12)
  expect(stones.length + rootsOf(one).length).toBe(18)
  expect((await one.audit({ verify: true })).findings).toEqual([])
  expect(errors).toEqual([])
})

test('what is said in a conversation while another process deletes it begins no other in its place', async () => {
  const [here, there] = [runtimeOn('sqlite'), runtimeOn('sqlite')]
  const { conversationId } = await here.run(host, 'hello').result
  await there.run(host, 'warm up').result
  const { commit } = there.store
  let forgets = true
  Object.assign(there.store, {
    commit: async (one: Parameters<LocalStore['commit']>[0]) => {
      if (forgets) await here.forget(conversationId)
      forgets = false
      return commit(one)
    },
  })

  await expect(there.run(host, 'hello', { conversationId }).result).rejects.toMatchObject({ code: 'not_found' })

  expect(localStore(here).conversation(conversationId)).toBeUndefined()
})

test('what is changed in a conversation while another process deletes it is not found', async () => {
  const [here, there] = [runtimeOn('sqlite'), runtimeOn('sqlite')]
  const { commit } = there.store
  const changes = [
    (talk: ConversationHandle) => talk.configure({ contextTurns: 4 }),
    (talk: ConversationHandle) => talk.observe('by the way'),
    (talk: ConversationHandle, nodeId: string) => talk.history.fork(nodeId),
    (talk: ConversationHandle, nodeId: string) => talk.history.exclude(nodeId),
  ]

  for (const change of changes) {
    const { conversationId, runId } = await here.run(host, 'hello').result
    const talk = await there.conversation(conversationId)
    const nodeId = localStore(there).nodesOf(runId).at(-1)?.id ?? ''
    let forgets = true
    Object.assign(there.store, {
      commit: async (one: Parameters<LocalStore['commit']>[0]) => {
        if (forgets && one.rootId === conversationId) {
          forgets = false
          await here.forget(conversationId)
        }
        return commit(one)
      },
    })
    await expect(change(talk, nodeId)).rejects.toMatchObject({ code: 'not_found' })
    expect(forgets).toBe(false)
  }

  expect((await here.audit({ verify: true })).findings).toEqual([])
})

test('an audit while another process deletes trees finds nothing', async () => {
  const [here, there] = [runtimeOn('sqlite'), runtimeOn('sqlite')]
  for (let n = 0; n < 3; n++) await here.run(host, 'delegate').result
  const ids = rootsOf(here)
  const { turnsOf } = localStore(here)
  const deleted: unknown[] = []
  const { tree } = withReads(localStore(here), {
    turnsOf: (...asked) => {
      const [id] = asked
      if (ids.includes(id)) deleted.push(there.store.archive?.remove(id, { at: 1, reason: 'ttl' }))
      return turnsOf(...asked)
    },
  })
  Object.assign(here.store, { tree })

  expect((await here.audit()).findings).toEqual([])

  expect(await Promise.all(deleted)).toHaveLength(3)
  expect(rootsOf(there)).toEqual([])
})

test('who waits for a run that another process ends and deletes is told so', async () => {
  const [here, there] = [runtimeOn('sqlite'), runtimeOn('sqlite')]
  const run = here.run(careful, 'deploy')
  await asked(here)
  const waiting = await there.attach(run.id)
  const result = expect(waiting.result).rejects.toMatchObject({ code: 'not_found', message: /was deleted at/ })
  const events = (async () => {
    for await (const _ of waiting);
    return 'over'
  })()

  await here.cancel(run.id)
  await run.result
  await here.forget(run.id)

  await result
  expect(await events).toBe('over')
  await there.idle()
})

test('who asks for the result of a run only after it was deleted is told so at once', async () => {
  const [here, there] = [runtimeOn('sqlite'), runtimeOn('sqlite')]
  const { runId } = await here.run(host, 'hello').result
  await here.close()
  const attached = await there.attach(runId)

  await there.forget(runId)

  await expect(attached.result).rejects.toMatchObject({ code: 'not_found', message: /was deleted at/ })
})

test('who reads the events of a run that is deleted meanwhile does not take them for all', async () => {
  const runtime = runtimeOn('sqlite')
  const { runId } = await runtime.run(host, 'hello').result
  const { events } = runtime.store
  const few = (...[rootId, after]: Parameters<LocalStore['events']>) => events(rootId, after, 2)
  Object.assign(runtime.store, { events: few })
  const read: string[] = []

  const reading = async () => {
    for await (const { type } of await runtime.attach(runId)) {
      if (read.push(type) === 1) await runtime.forget(runId)
    }
  }

  await expect(reading()).rejects.toMatchObject({ code: 'not_found', message: /was deleted at/ })
  expect(read).toHaveLength(2)
})

test('what was started for a run ends when another process ends the run and deletes it', async () => {
  const said: string[] = []
  const source: ToolSource = {
    about: 'counts',
    tools: null,
    needs: [],
    secrets: [],
    origin: CODE,
    required: true,
    scope: 'run',
    key: 'counts',
    missing: () => [],
    open: async () => ({
      tools: new Map(),
      notes: '',
      warnings: [],
      ready: async () => undefined,
      close: async () => {
        said.push('closed')
      },
    }),
    [sourceMark]: true,
  }
  const extension = { name: 'seeing', hooks: { onFinally: () => undefined } }
  const sourced = agent({ ...carefulConfig, name: 'sourced', sources: { counts: source } }).use(extension)
  const [here, there] = [runtimeOn('sqlite'), runtimeOn('sqlite')]
  const run = here.run(sourced, 'deploy')
  await asked(here)

  await there.cancel(run.id)
  await there.forget(run.id)

  await expect(run.result).rejects.toMatchObject({ code: 'not_found', message: /was deleted at/ })
  await expect.poll(() => said, { timeout: 3_000 }).toEqual(['closed'])
})

test('a tree that cannot be read does not keep the others from being deleted', async () => {
  const runtime = runtimeOn('sqlite')
  const { conversationId, runId } = await runtime.run(host, 'hello').result
  for (let n = 0; n < 2; n++) await runtime.run(host, 'hello').result
  const [node] = localStore(runtime).nodesOf(runId)
  const db = connectTo(path.join(folder, 'rows.db'))
  db.run("UPDATE rows SET data = '{' WHERE n = (SELECT n FROM keys WHERE id = ? AND slot = 'n')", [node?.id ?? ''])
  db.close()

  const pruned = runtime.prune({ keep: 0 })

  await expect(pruned).rejects.toMatchObject({ code: 'store', message: /cannot be read.*stay.*: 1\..*: 2\./ })
  expect(rootsOf(runtime)).toEqual([conversationId])
  expect(await runtime.store.archive?.tombstones()).toHaveLength(2)
})

test('the file gives back the room of what was deleted', async () => {
  const runtime = runtimeOn('sqlite')
  const pages = () => pageCount(path.join(folder, 'rows.db'))
  for (let n = 0; n < 12; n++) await runtime.run(host, 'delegate').result
  const before = pages()

  await runtime.prune({ keep: 1 })

  expect(pages()).toBeLessThan(before / 2)
  expect((await runtime.audit({ verify: true })).findings).toEqual([])
  expect((await runtime.run(host, 'hello').result).status).toBe('completed')
})

test('documents of a JSON store go with their tree, and the journal is written anew', async () => {
  const runtime = runtimeOn('json')
  const { conversationId } = await runtime.run(host, 'delegate').result
  const kept = await runtime.run(host, 'hello').result

  await runtime.prune({ keep: 1 })

  const names = readdirSync(path.join(folder, 'rows')).filter((name) => name.endsWith('.json'))
  expect(names).toEqual([`${kept.conversationId}.json`])
  await runtime.close()
  const again = runtimeOn('json')
  expect(await again.store.archive?.tombstones()).toMatchObject([{ rootId: conversationId }])
  expect(rootsOf(again)).toEqual([kept.conversationId])
})

test('a document that a crash left of a deleted conversation is taken away; one of another stays', async () => {
  const runtime = runtimeOn('json')
  const { conversationId, runId } = await runtime.run(host, 'delegate').result
  const [child] = localStore(runtime).linksOf(runId)
  const kept = await runtime.run(host, 'hello').result
  const files = [conversationId, child?.childConversationId, kept.conversationId].map((id) =>
    path.join(folder, 'rows', `${id}.json`),
  )
  const texts = files.map((file) => readFileSync(file))
  await runtime.forget(conversationId)
  await runtime.close()
  files.forEach((file, at) => {
    writeFileSync(file, texts[at] ?? '')
  })

  runtimeOn('json')

  expect(files.map((file) => existsSync(file))).toEqual([false, false, true])
})

test('what a JSON store deleted because it kept less stays deleted when it keeps more', async () => {
  const small = runtimeOver(jsonStore({ folder, keep: 1 }))
  const { conversationId } = await small.run(host, 'hello').result
  await small.run(host, 'hello').result
  await small.close()

  const large = runtimeOver(jsonStore({ folder, keep: 10 }))

  expect(rootsOf(large)).toHaveLength(1)
  expect(await large.store.archive?.tombstones()).toMatchObject([{ rootId: conversationId, reason: 'maximum' }])
})

test('a JSON store that keeps less than before opens, also where a tree ended and went on', async () => {
  const large = runtimeOver(jsonStore({ folder }))
  const { conversationId } = await large.run(host, 'hello').result
  for (let n = 0; n < 3; n++) await large.run(host, 'hello').result
  await large.run(host, 'once more', { conversationId }).result
  await large.close()

  const small = runtimeOver(jsonStore({ folder, keep: 1 }))

  expect(rootsOf(small)).toEqual([conversationId])
  expect(await small.store.archive?.tombstones()).toHaveLength(3)
})

const worker = agent({
  name: 'worker',
  description: 'Works.',
  instructions: 'Work.',
  model: scriptedModel(() => `done ${'x'.repeat(2_000)}`),
})
const host = agent({
  name: 'host',
  instructions: 'Host.',
  tools: {
    look_up: tool({
      description: 'Looks up.',
      effect: 'pure',
      input: { type: 'object' },
      execute: () => 'long '.repeat(20_000),
    }),
  },
  subagents: { ask: worker },
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    if (last?.role !== 'user' || !JSON.stringify(last.content).includes('delegate')) return 'Good morning.'
    return {
      calls: [
        { name: 'ask', input: { message: 'work' } },
        { name: 'look_up', input: {} },
      ],
    }
  }),
})
const carefulConfig = {
  name: 'careful',
  instructions: 'Deploy.',
  tools: { deploy: tool({ description: 'Deploys.', input: { type: 'object' }, execute: () => 'ok' }) },
  grant: { ask: ['tool:deploy'] },
  model: scriptedModel(() => ({ calls: [{ name: 'deploy', input: {} }] })),
}
const careful = agent(carefulConfig)

function runtimeOn(kind: (typeof kinds)[number], clock?: ReturnType<typeof fakeClock>): Runtime {
  return runtimeOver(storeOf(kind), clock)
}

function runtimeOver(store: LocalStore, clock?: ReturnType<typeof fakeClock>): Runtime {
  const runtime = createRuntime({ store, agents: [host, careful], ...(clock === undefined ? {} : { clock }) })
  open.push(runtime)
  return runtime
}

function storeOf(kind: (typeof kinds)[number]): LocalStore {
  if (kind === 'memory') return memoryStore()
  return kind === 'json' ? jsonStore(path.join(folder, 'rows')) : sqliteStore(path.join(folder, 'rows.db'))
}

function rootsOf(runtime: Runtime): string[] {
  return localStore(runtime)
    .roots({ limit: 99 })
    .map(({ id }) => id)
}

async function asked(runtime: Runtime): Promise<void> {
  while ((await runtime.approvals()).length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
}

async function linesOf(runtime: Runtime, rootId: string): Promise<string[]> {
  const lines: string[] = []
  for await (const line of runtime.export(rootId)) lines.push(line)
  return lines
}

function pageCount(file: string): number {
  const db = connectTo(file, 'read')
  const [count] = db.first('PRAGMA page_count') ?? []
  db.close()
  return Number(count)
}
