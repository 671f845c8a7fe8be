// Whoever writes an export writes what he likes. An imported tree runs nothing, answers nothing and belongs to one owner.

import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { type AnyAgent, agent, createRuntime, isLegateError, type Principal, type Runtime, tool } from 'legate'
import { recipeAgent } from 'legate/recipe'
import { jsonStore } from 'legate/store/json'
import { memoryStore } from 'legate/store/memory'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { exported, type Forgery, forged, rowsOf } from '../support/forged-tree.ts'
import { openRuntime } from '../support/reading.ts'
import { tempFolder } from '../support/temp-folder.ts'

const ANN: Principal = { id: 'ann', scopes: ['admin', 'start', 'read', 'history'] }
const OPERATOR: Principal = { id: 'root', scopes: ['admin', 'start', 'read', 'audit'], sees: 'all' }
const BOB: Principal = { id: 'bob', scopes: ['start', 'read'] }
const EVIL = '\u001b]0;title\u0007'

const hits: string[] = []
const deploy = tool({
  description: 'Deploys.',
  input: { type: 'object' },
  execute: () => {
    hits.push('deployed')
    return 'deployed'
  },
})
const clerk = (calls = true): AnyAgent =>
  agent({
    name: 'clerk',
    instructions: '',
    tools: { deploy },
    grant: { ask: ['tool:deploy'] },
    model: scriptedModel(({ messages }) => {
      const isAsked = calls && messages.at(-1)?.role === 'user'
      return isAsked ? { calls: [{ name: 'deploy', input: {} }] } : 'ok'
    }),
  })

async function failure(work: Promise<unknown>): Promise<{ readonly code: string; readonly message: string }> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!isLegateError(error)) throw new Error(`It was not refused in words, but: ${String(error)}`)
  return { code: error.code, message: error.message }
}

/** The tree of a run of Ann that was made elsewhere and has ended. */
async function endedTree(): Promise<string> {
  const runtime = createRuntime()
  const { conversationId } = await runtime.run(clerk(false), 'Hello.', { owner: 'ann' }).result
  const text = await exported(runtime, conversationId)
  await runtime.close()
  return text
}

/** The tree of a run of Ann that waits for a person. */
async function askingTree(answer?: { readonly always: boolean }) {
  const runtime = createRuntime()
  const run = runtime.run(clerk(), 'Deploy.', { owner: 'ann' })
  for await (const event of run) {
    if (event.type !== 'approval-request') continue
    if (answer === undefined) break
    await runtime.answer(event.nodeId ?? '', { allow: true, by: 'carol', ...answer })
  }
  const text = await exported(runtime, run.conversationId)
  await runtime.close()
  hits.length = 0
  return { text, runId: run.id, conversationId: run.conversationId }
}

/** The tree of an open run whose agent stands in it whole, with a server of its own. */
async function inlineTree(): Promise<string> {
  const file = path.join(tempFolder(), 'clerk.md')
  const server = 'mcpServers:\n  odd:\n    command: node\n    args: ["-e", "0"]\n'
  writeFileSync(file, `---\nname: clerk\ndescription: d\nmodel: openai/gpt-5\n${server}---\n\nYou.\n`)
  const made = (await recipeAgent(file, { grant: { use: ['tool:*', 'model:*', 'exec:*'] } })) as AnyAgent
  const runtime = createRuntime({ engine: { workers: 0 } })
  const run = runtime.run(made, 'Go.', { owner: 'ann' })
  await expect.poll(async () => (await runtime.store.openTurns(1)).length).toBe(1)
  const text = await exported(runtime, run.conversationId)
  await runtime.close()
  return text
}

describe('an open run in an export', () => {
  test.each<[string, (runtime: Runtime) => Pick<Runtime, 'import'>]>([
    ['the program', (runtime) => runtime],
    ['an operator', (runtime) => runtime.as(OPERATOR)],
    ['an admin of some', (runtime) => runtime.as(ANN)],
  ])('is stopped when %s imports it: nothing of it runs', async (_, by) => {
    const { text, runId, conversationId } = await askingTree()
    const runtime = openRuntime({ agents: [clerk()] })

    expect(await by(runtime).import(text)).toBe(conversationId)
    await runtime.resume()

    expect(await runtime.store.openTurns(9)).toEqual([])
    expect(await (await runtime.attach(runId)).result).toMatchObject({ status: 'cancelled' })
    expect(await runtime.approvals()).toEqual([])
    expect((await runtime.audit({ verify: true })).findings).toEqual([])
    expect(await by(runtime).import(text)).toBe(conversationId)
  })

  test.each(['memory', 'sqlite', 'json'] as const)(
    'is stopped by the same commits each time, in a store of kind %s',
    async (kind) => {
      const { text, conversationId } = await askingTree()
      const target = openRuntime({ store: storeOf(kind) })
      const other = openRuntime({ store: storeOf(kind) })

      for (const runtime of [target, other]) expect(await runtime.import(text)).toBe(conversationId)

      expect(await exported(target, conversationId)).toBe(await exported(other, conversationId))
      expect(await target.import(await exported(other, conversationId))).toBe(conversationId)
      expect((await target.audit({ verify: true })).findings).toEqual([])
    },
  )

  test('goes on at once for nobody but an operator who is trusted with programs', async () => {
    const { text, runId } = await askingTree()
    const runtime = openRuntime({ agents: [clerk()] })
    for (const who of [ANN, OPERATOR]) {
      expect(await failure(runtime.as(who).import(text, { goOn: true }))).toMatchObject({ code: 'denied' })
    }
    expect(await runtime.store.roots({ limit: 1 })).toEqual([])

    const trusting = openRuntime({ agents: [clerk()], trustPrograms: true })
    expect(await failure(trusting.as(ANN).import(text, { goOn: true }))).toMatchObject({ code: 'denied' })
    await trusting.as(OPERATOR).import(text, { goOn: true })
    expect((await trusting.approvals()).map((one) => one.runId)).toEqual([runId])
  })

  test('whose agent stands in it whole is taken from an operator, stopped, and from nobody else', async () => {
    const text = await inlineTree()
    const runtime = openRuntime({ agents: [clerk()] })

    const refused = await failure(runtime.as(ANN).import(text))

    expect(refused).toMatchObject({
      code: 'denied',
      message: expect.stringContaining('whole definition of the agent "clerk"'),
    })
    expect(await runtime.store.roots({ limit: 1 })).toEqual([])
    await runtime.as(OPERATOR).import(text)
    expect(await runtime.store.openTurns(1)).toEqual([])
  })
})

describe('an admin of some imports history alone', () => {
  test('a yes for good that stands in it answers nobody', async () => {
    const { text } = await askingTree({ always: true })
    const runtime = openRuntime({ agents: [clerk()] })

    expect((await failure(runtime.as(ANN).import(text))).message).toContain('are allowed in it for good')
    expect(hits).toEqual([])
  })

  test.each<[string, object]>([
    ['whose day it counts for', { perDay: { owner: 'bob', tokens: 9 } }],
    ['who asked for it', { principal: 'bob' }],
  ])('a layer that says %s is refused where it names somebody else', async (_, more) => {
    const layer = { v: 1, by: 'x', allow: ['tool:*'], ask: [], deny: [], ...more }
    const text = await endedTree()
    for (const letter of ['c', 't'] as const) {
      const lines = forged(text, (tree) => Object.assign(rowsOf(tree, letter)[0], { ceiling: [layer] }))
      const runtime = openRuntime({ agents: [clerk()] })
      expect((await failure(runtime.as(ANN).import(lines))).message).toContain('a layer of it is of "bob"')
      await runtime.as(OPERATOR).import(lines)
    }
  })

  test('an import counts for the bytes of the owner’s day, and the next import is refused', async () => {
    const runtime = openRuntime({ agents: [clerk(false)] })
    const ann = runtime.as({ ...ANN, perDay: { bytes: 1_000 } })
    const [first, second] = [await endedTree(), await endedTree()]

    const rootId = await ann.import(first)

    expect(await failure(ann.import(second))).toMatchObject({ code: 'over_quota' })
    expect((await failure(ann.run('clerk', 'Hi.').result)).code).toBe('over_quota')
    expect(await runtime.as(OPERATOR).import(first)).toBe(rootId)
    expect((await runtime.audit({ verify: true })).findings).toEqual([])
  })
})

function storeOf(kind: 'memory' | 'sqlite' | 'json') {
  if (kind === 'memory') return memoryStore()
  return kind === 'sqlite' ? sqliteStore(path.join(tempFolder(), 'rows.db')) : jsonStore(tempFolder())
}

const swap = (tree: Forgery, from: string, to: string) => {
  const rows = JSON.parse(JSON.stringify(tree.rows).replaceAll(from, JSON.stringify(to).slice(1, -1)))
  tree.rows.splice(0, tree.rows.length, ...rows)
  const events = JSON.parse(JSON.stringify(tree.events).replaceAll(from, JSON.stringify(to).slice(1, -1)))
  tree.events.splice(0, tree.events.length, ...events)
}
const FREE = '01a1f1f5-582b-738c-9e15-89a052d6f5e4'
const copyOfRoot = (tree: Forgery, more: object) =>
  ({ letter: 'c', turnId: null, row: { ...rowsOf(tree, 'c')[0], ...more } }) as const

const hostile: readonly (readonly [string, (tree: Forgery) => void])[] = [
  ['a second root row of another owner', (tree) => tree.rows.splice(1, 0, copyOfRoot(tree, { owner: 'bob' }))],
  ['a second root row at the end', (tree) => tree.rows.push(copyOfRoot(tree, { owner: 'bob' }))],
  [
    'a conversation under the letter of a node',
    (tree) => tree.rows.push({ ...copyOfRoot(tree, { owner: 'bob', node: FREE }), letter: 'n' }),
  ],
  ['rows in another order', (tree) => tree.rows.reverse()],
  ['a run twice', (tree) => tree.rows.splice(2, 0, structuredClone(tree.rows[1] ?? tree.rows[0]) as never)],
  [
    'a key twice',
    (tree) => {
      const [root] = tree.rows
      if (root !== undefined)
        root.text = JSON.stringify(root.row).replace('"owner":"ann"', '"owner":"bob","owner":"ann"')
    },
  ],
  [
    'a key of objects',
    (tree) => {
      const [root] = tree.rows
      if (root !== undefined) root.text = JSON.stringify(root.row).replace(/\}$/, ',"__proto__":{"owner":"bob"}}')
    },
  ],
  ['a key that nobody knows', (tree) => Object.assign(rowsOf(tree, 'c')[0], { evil: 1 })],
  ['an object as owner', (tree) => Object.assign(rowsOf(tree, 'c')[0], { owner: { toString: 'x' } })],
  ['a list as owner', (tree) => Object.assign(rowsOf(tree, 'c')[0], { owner: ['ann'] })],
  ['a run whose id is none', (tree) => swap(tree, rowsOf(tree, 't')[0].turn, `abcd${EVIL}efgh`)],
  ['a node whose id is none', (tree) => swap(tree, rowsOf(tree, 'n')[0].node, `abcd${EVIL}efgh`)],
  ['an outcome that there is not', (tree) => Object.assign(rowsOf(tree, 't')[0].outcome, { status: EVIL })],
  ['a negative usage', (tree) => Object.assign(rowsOf(tree, 't')[0].outcome, { usage: [-5, 1, 0, 0] })],
  ['a usage of words', (tree) => Object.assign(rowsOf(tree, 't')[0].outcome, { usage: ['x', 1, 0, 0] })],
  ['a time after all dates', (tree) => Object.assign(rowsOf(tree, 't')[0], { times: [1e300, 0, 0] })],
  ['limits of words', (tree) => Object.assign(rowsOf(tree, 't')[0], { limits: ['x', null, -1, {}, [], 1e308] })],
  ['a lane from nowhere', (tree) => Object.assign(rowsOf(tree, 'c')[0], { lane: { id: 'x', from: 5 } })],
  ['a run that woke itself', (tree) => Object.assign(rowsOf(tree, 't')[0], { wokenBy: rowsOf(tree, 't')[0].turn })],
  ['an edge twice', (tree) => tree.edges.push(...tree.edges.slice(0, 1))],
  ['a definition that is none', (tree) => Object.assign(rowsOf(tree, 'c')[0].agent, { name: { x: 1 } })],
]

describe('a tree of another form is refused in words, whatever the hashes say', () => {
  test.each(hostile)('%s', async (_, change) => {
    const text = forged(await endedTree(), change)
    for (const kind of ['memory', 'sqlite', 'json'] as const) {
      const runtime = openRuntime({ store: storeOf(kind), agents: [clerk()] })
      const { code, message } = await failure(runtime.import(text))
      expect(code).toBe('invalid_input')
      expect(message).toMatch(/^The export is not taken: |^Line \d+ of the export cannot be taken: /)
      expect(message).not.toMatch(/UNIQUE|constraint|TypeError/)
      expect(await runtime.as(BOB).runs()).toEqual([])
    }
  })

  test('but the same tree with nothing changed is taken', async () => {
    const text = forged(await endedTree(), () => undefined)
    for (const kind of ['memory', 'sqlite', 'json'] as const) {
      const runtime = openRuntime({ store: storeOf(kind), agents: [clerk()] })
      await runtime.as(ANN).import(text)
      expect(await runtime.as(ANN).runs()).toHaveLength(1)
    }
  })
})

describe('a long line', () => {
  const head = `{"legate":"tree","version":1,"rootId":"${FREE}","hash":"x"}`

  test('is refused by its length, before it is read', async () => {
    const line = `["body","x","${'\\u00e4'.repeat(3_000_000)}"]`
    const began = performance.now()

    const { message } = await failure(openRuntime().import([head, line]))

    expect(message).toMatch(/^Line 2 of the export .* longer than 16000000 characters/)
    expect(performance.now() - began).toBeLessThan(1_000)
  })

  test('of escapes is read in time that grows with its length, and other work gets its turn between lines', async () => {
    const line = `["body","x","${'\\u00e4'.repeat(2_500_000)}"]`
    let turns = 0
    const timer = setInterval(() => turns++, 1)
    const began = performance.now()
    const lines = [
      head,
      ...Array.from({ length: 50_000 }, () => '["commit",{"kind":"k","at":1,"seq":0,"marks":"","hash":"x"}]'),
    ]

    await failure(openRuntime().import([head, line]))
    expect(performance.now() - began).toBeLessThan(5_000)
    await failure(openRuntime().import(lines))
    clearInterval(timer)

    expect(turns).toBeGreaterThan(5)
  })
})

test('an admin who forgets what it owns does not begin a new day', async () => {
  for (const kind of ['memory', 'sqlite', 'json'] as const) {
    const runtime = openRuntime({ store: storeOf(kind), agents: [clerk(false)] })
    const ann = runtime.as({ ...ANN, scopes: [...ANN.scopes, 'delete'], perDay: { runs: 1 } })
    await ann.run('clerk', 'Hi.').result
    expect(await ann.forgetOwner('ann')).toMatchObject({ trees: 1 })
    expect(await failure(ann.run('clerk', 'Hi.').result)).toMatchObject({ code: 'over_quota' })

    await runtime.forgetOwner('ann')
    expect((await ann.run('clerk', 'Hi.').result).status).toBe('completed')
  }
})
