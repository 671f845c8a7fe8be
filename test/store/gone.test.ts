import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { FilePresence } from '../../src/core/store/file-presence.ts'
import type { LocalStore } from '../../src/core/store/store.ts'
import type { Logger } from '../../src/doors/hooks.ts'
import { agent, createRuntime, type Runtime, tool } from '../../src/index.ts'
import { jsonStore } from '../../src/stores/json/index.ts'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'

import { commitOf, conversationRow, next, treeCommit } from '../../src/testing/conformance/store-rows.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { makeGate } from '../support/gate.ts'
import { tempFolder } from '../support/temp-folder.ts'

type Durability = 'process' | 'power'

interface Kind {
  readonly open: (folder: string, durability?: Durability) => LocalStore
  /** The file that must stay where it is. */
  readonly file: (folder: string) => string
}

const sqlite: Kind = {
  open: (folder, durability = 'process') => sqliteStore({ path: path.join(folder, 'legate.db'), durability }),
  file: (folder) => path.join(folder, 'legate.db'),
}
const json: Kind = {
  open: (folder, durability = 'process') => jsonStore({ folder, durability }),
  file: (folder) => path.join(folder, 'store.journal'),
}

const LOSSES: readonly (readonly [name: string, lose: (folder: string, kind: Kind) => Promise<void> | void])[] = [
  ['its file is removed', (folder, { file }) => rmSync(file(folder))],
  ['its file is renamed', (folder, { file }) => renameSync(file(folder), `${file(folder)}.old`)],
  ['its file is emptied', (folder, { file }) => writeFileSync(file(folder), '')],
  ['its folder is removed', (folder) => rmSync(folder, { recursive: true })],
  [
    'its file is replaced by that of another store',
    async (folder, kind) => {
      const other = `${folder}-other`
      mkdirSync(other)
      await kind.open(other).close()
      renameSync(kind.file(other), kind.file(folder))
    },
  ],
]

let folder: string

beforeEach(() => {
  folder = path.join(tempFolder(), 'store')
  mkdirSync(folder)
})

describe.each([
  ['SQLite', sqlite],
  ['JSON', json],
] as const)('a %s store', (_, kind) => {
  test.each(LOSSES)('acknowledges nothing any more within a lease after %s', async (_name, lose) => {
    const store = kind.open(folder)
    await store.commit(treeCommit('root-a'))
    await lose(folder, kind)

    const refused = await commitUntilRefused(store)

    expect(refused).toMatchObject({ code: 'store_gone', details: { path: kind.file(folder) } })
    expect(refused.message).toMatch(
      /(was removed or renamed|was replaced by another file|was emptied or cut) while it was open.*start again/,
    )
    expect(() => store.conversation('root-a')).toThrow(refused)
    await store.close()
  })

  test('a store that promises to survive a power cut acknowledges no commit at all after its file is removed', async () => {
    const store = kind.open(folder, 'power')
    await store.commit(treeCommit('root-a'))
    rmSync(kind.file(folder))

    const commit = async () => store.commit(treeCommit('root-b'))

    await expect(commit()).rejects.toMatchObject({ code: 'store_gone' })
    await store.close()
  })

  test('a store that was gone stays gone when its file comes back, and has all that was acknowledged when it is opened again', async () => {
    const store = kind.open(folder)
    await store.commit(treeCommit('root-a'))
    const aside = `${folder}-aside`
    renameSync(folder, aside)
    await commitUntilRefused(store)
    renameSync(aside, folder)

    await expect((async () => store.commit(treeCommit('root-c')))()).rejects.toMatchObject({ code: 'store_gone' })
    await store.close()
    const again = kind.open(folder)
    expect(again.conversation('root-a')?.id).toBe('root-a')
    expect((await again.archive?.verify())?.findings).toEqual([])
    await again.commit(treeCommit('root-d'))
    await again.close()
  })

  test('a store that lost its file leaves the one in its place as it is', async () => {
    const store = kind.open(folder)
    await store.commit(treeCommit('root-a'))
    const other = `${folder}-other`
    mkdirSync(other)
    const stranger = kind.open(other)
    await stranger.commit(treeCommit('root-b'))
    await stranger.close()
    rmSync(folder, { recursive: true })
    renameSync(other, folder)
    const before = readFileSync(kind.file(folder))

    await commitUntilRefused(store)
    await store.close()

    expect(readFileSync(kind.file(folder)).equals(before)).toBe(true)
    const again = kind.open(folder)
    expect(again.conversation('root-b')?.id).toBe('root-b')
    await again.close()
  })

  test('a store that goes ends every open run of its runtime with store_gone, and nothing says completed', async () => {
    const { runtime, runs, isInTool, goOn, logged } = await manyRuns(kind.open(folder))
    await isInTool
    const before = statSync(kind.file(folder)).size
    rmSync(folder, { recursive: true })
    const timer = setTimeout(goOn, 300)

    const results = await Promise.allSettled(runs.map(({ result }) => result))
    clearTimeout(timer)

    expect(before).toBeGreaterThan(0)
    expect(results.map((one) => (one.status === 'rejected' ? one.reason.code : one.value.status))).toEqual(
      new Array(runs.length).fill('store_gone'),
    )
    await expect(runtime.run(WAITING, 'One more.').result).rejects.toMatchObject({ code: 'store_gone' })
    expect(logged.filter((line) => line.includes('The store is gone'))).toHaveLength(1)
    await runtime.close()
    expect(existsSync(folder)).toBe(false)
  })

  test('a store that goes while nothing runs tells who waits for a person', async () => {
    const runtime = createRuntime({ store: kind.open(folder), logger: SILENT })
    const run = runtime.run(ASKING, 'Do it.')
    for await (const { type } of run) if (type === 'approval-request') break
    rmSync(kind.file(folder))

    await expect(run.result).rejects.toMatchObject({ code: 'store_gone' })
    await runtime.close()
  })
})

test('a SQLite store whose log is removed acknowledges nothing any more', async () => {
  const store = sqlite.open(folder)
  await store.commit(treeCommit('root-a'))
  rmSync(`${sqlite.file(folder)}-wal`)

  expect(await commitUntilRefused(store)).toMatchObject({
    code: 'store_gone',
    message: expect.stringContaining('-wal'),
  })
  await store.close()
})

test('who follows a run of another process is told that the file is gone', async () => {
  const writer = createRuntime({ store: sqlite.open(folder), logger: SILENT })
  const run = writer.run(ASKING, 'Do it.')
  for await (const { type } of run) if (type === 'approval-request') break
  const reader = createRuntime({
    store: sqliteStore({ path: sqlite.file(folder), readOnly: true }),
    logger: SILENT,
  })
  const followed = await reader.attach(run.id)
  const events = (async () => {
    for await (const _ of followed) void _
  })()
  rmSync(folder, { recursive: true })

  await expect(followed.result).rejects.toMatchObject({ code: 'store_gone' })
  await events
  await Promise.all([reader.close(), writer.close()])
})

/** What the store says when it refuses; it has a second, much less than a lease. */
async function commitUntilRefused(store: LocalStore): Promise<Error> {
  let row = conversationRow('root-a')
  for (const end = performance.now() + 1_000; performance.now() < end; ) {
    try {
      row = next(row, { title: String(row.version) })
      await store.commit(commitOf('root-a', { conversations: [row] }))
    } catch (error) {
      return error as Error
    }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  throw new Error('Everything was acknowledged.')
}

const NOTHING = { type: 'object' } as const
const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} }
const WAITING = agent({ name: 'waiting', instructions: 'Wait.', model: scriptedModel(() => 'Done.') })
const ASKING = agent({
  name: 'asking',
  instructions: 'Ask.',
  model: scriptedModel(() => ({ calls: [{ name: 'deploy', input: {} }] })),
  tools: { deploy: tool({ description: 'Deploys.', input: NOTHING, approval: 'required', execute: () => 'ok' }) },
})

async function manyRuns(store: LocalStore) {
  const [isInTool, held] = [makeGate(), makeGate()]
  const logged: string[] = []
  const slow = tool({
    description: 'Takes its time.',
    input: NOTHING,
    execute: async () => {
      isInTool.open()
      await held.opened
      return 'ok'
    },
  })
  const worker = agent({
    name: 'worker',
    instructions: 'Work.',
    model: scriptedModel(() => ({ calls: [{ name: 'slow', input: {} }] })),
    tools: { slow },
  })
  const runtime: Runtime = createRuntime({
    store,
    logger: { ...SILENT, error: (message) => void logged.push(message) },
  })
  const runs = [runtime.run(worker, 'a'), runtime.run(worker, 'b'), runtime.run(ASKING, 'c')]
  return { runtime, runs, isInTool: isInTool.opened, goOn: () => held.open(), logged }
}

test('a store looks for its file at most every 100 ms, and is told at the next look', async () => {
  const file = path.join(folder, 'a')
  writeFileSync(file, 'x')
  const presence = new FilePresence()
  presence.hold(file)
  presence.require()
  const lookedAt = performance.now()
  rmSync(file)

  const [seen, took] = [outcomeOf(() => presence.require()), performance.now() - lookedAt]
  // A busy machine may be late.
  if (took < 90) expect(seen).toBe('nothing seen')
  await new Promise((resolve) => setTimeout(resolve, 120))
  expect(() => presence.require()).toThrow(expect.objectContaining({ code: 'store_gone' }))
})

function outcomeOf(look: () => void): string {
  try {
    look()
    return 'nothing seen'
  } catch {
    return 'gone'
  }
}
