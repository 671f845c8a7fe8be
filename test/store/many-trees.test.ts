import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { LocalStore } from '../../src/core/store/store.ts'
import { agent, createRuntime, type Runtime, tool } from '../../src/index.ts'
import { connectTo } from '../../src/stores/sqlite/driver.ts'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { tempFolder } from '../support/temp-folder.ts'

const TREES = 100

const deploy = tool({ description: 'Deploys.', input: { type: 'object' }, approval: 'required', execute: () => 'ok' })
const lead = agent({
  name: 'lead',
  instructions: 'Lead.',
  model: scriptedModel(() => ({ calls: [{ name: 'deploy', input: {} }] })),
  tools: { deploy },
})

let path: string
let store: LocalStore
let runtime: Runtime
/** Counts the turns of the event loop. */
let turn = 0
let isOver = false

/** Opens the file anew. */
function open(): void {
  store = sqliteStore(path)
  runtime = createRuntime({ store, agents: [lead] })
}

/** Every look at the clock costs so much that each slice is over at once. */
function makeSlow(): void {
  let now = performance.now()
  vi.spyOn(performance, 'now').mockImplementation(() => (now += 20))
}

beforeEach(async () => {
  path = join(tempFolder(), 'legate.db')
  open()
  const runs = Array.from({ length: TREES }, () => runtime.run(lead, 'Go.'))
  await Promise.all(
    runs.map(async (run) => {
      for await (const { type } of run) if (type === 'approval-request') return
    }),
  )
  await runtime.close()
  open()
  isOver = false
  const count = () => {
    turn++
    if (!isOver) setImmediate(count)
  }
  count()
})

afterEach(async () => {
  isOver = true
  vi.restoreAllMocks()
  await runtime.close()
})

test('an audit of many trees lets other work go on between two of them, and the rows behind it go', async () => {
  const turns = new Set<number>()
  const { events } = store
  vi.spyOn(store, 'events').mockImplementation((...query) => {
    turns.add(turn)
    return events(...query)
  })
  makeSlow()

  const { checked, findings } = await runtime.audit()

  expect({ trees: checked.trees, findings }).toEqual({ trees: TREES, findings: [] })
  expect(turns.size).toBeGreaterThanOrEqual(TREES)
})

test('the whole file is compared with its record at one moment, while other work goes on and is stored', async () => {
  const before = turn
  makeSlow()
  const verified = store.archive?.verify()
  const run = runtime.run(lead, 'Go.')
  for await (const { type } of run) if (type === 'approval-request') break

  const report = await verified

  // A tree has a conversation, a turn, and the nodes of one call.
  expect({ findings: report?.findings, rows: report?.rows }).toEqual({ findings: [], rows: 6 * TREES })
  expect(turn - before).toBeGreaterThan(10 * TREES)
  expect(store.roots({ limit: 1_000 })).toHaveLength(TREES + 1)
})

test('a key that was added, a key that leads nowhere and a text that was changed are found in a walk through the file', async () => {
  const other = connectTo(path)
  other.exec(`INSERT INTO keys SELECT 'added', 'n', n FROM keys WHERE slot = 'c' LIMIT 1`)
  other.exec(`INSERT INTO keys VALUES ('astray', 'n', 999999999999)`)
  other.exec(`INSERT INTO bodies (hash, text) VALUES ('${'0'.repeat(64)}', x'61')`)
  other.close()

  const report = await store.archive?.verify()

  expect(report?.findings.map(({ id, message }) => [id, message])).toEqual([
    ['0'.repeat(64), expect.stringContaining('another hash')],
    ['added', expect.stringContaining('a row of another name')],
    ['astray', expect.stringContaining('leads nowhere')],
  ])
})

test('a store with many open runs is taken up some at a time, and other work goes on meanwhile', async () => {
  const turns: number[] = []
  const sizes: number[] = []
  const { openPages } = store
  store.openPages = function* () {
    for (const page of openPages?.() ?? []) {
      turns.push(turn)
      sizes.push(page.length)
      yield page
    }
  }
  const whole = [vi.spyOn(store, 'openTurns'), vi.spyOn(store, 'openRoots')]
  makeSlow()

  const runs = await runtime.resume()

  expect(new Set(runs.map(({ id }) => id)).size).toBe(TREES)
  expect(Math.max(...sizes)).toBeLessThanOrEqual(32)
  expect(new Set(turns).size).toBe(sizes.length)
  for (const spy of whole) expect(spy).not.toHaveBeenCalled()
})

test('whoever asks for the open turns of one tree reads no others', async () => {
  const [first] = store.openTurns(1)
  const other = connectTo(path)
  other.exec(`UPDATE rows SET data = json_set(data, '$.version', 99) WHERE data ->> '$.turn' <> '${first?.id}'`)
  other.close()
  await runtime.close()
  open()

  expect(store.openTurns(10, first?.rootId).map(({ id }) => id)).toEqual([first?.id])
  expect(store.openTurns(10, 'nobody')).toEqual([])
  expect(store.tampered?.()).toEqual([])
  store.openTurns(TREES)
  expect(store.tampered?.()).toHaveLength(TREES - 1)
})

test('who waits for many runs hears which of them ended in another process, and reads only those', async () => {
  const runs = await runtime.resume()
  const results = runs.map(({ result }) => result)
  const [first] = runs
  const read = vi.spyOn(store, 'tree')
  const other = createRuntime({ store: sqliteStore(path), agents: [lead] })
  await (await other.attach(first?.id ?? '')).cancel()

  const ended = await Promise.race(results)

  expect(ended.status).toBe('cancelled')
  expect(read.mock.calls.length).toBeLessThan(TREES / 2)
  await other.close()
})
