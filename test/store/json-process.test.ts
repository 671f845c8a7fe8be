import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { parseOwnJson } from '../../src/core/base/json.ts'
import type { SessionDocument } from '../../src/core/rules/delegation/session-document.ts'
import { proveSelf } from '../../src/core/store/process-proof.ts'
import { jsonStore } from '../../src/stores/json/index.ts'
import { treeCommit } from '../../src/testing/conformance/store-rows.ts'
import { StorePrograms, smallDisk } from '../support/store-programs.ts'
import { tempFolder } from '../support/temp-folder.ts'

const programs = new StorePrograms('json')
let folder: string

beforeEach(() => {
  folder = tempFolder()
})

test('I3: kill -9 in the middle of writes loses nothing that was acknowledged, and leaves whole documents', {
  timeout: 60_000,
}, async () => {
  const acknowledged: string[] = []
  for (let round = 0; round < 10; round++) acknowledged.push(...(await writeUntilKilled(round)))
  const documents = readdirSync(folder).filter((name) => name.endsWith('.json'))
  const standing = documents.map((name) => readDocument(name).session_id)

  const store = jsonStore(folder)

  expect(acknowledged.length).toBeGreaterThan(50)
  for (const id of acknowledged) {
    expect(store.node(`${id}-turn-node`)?.version).toBe(2)
    expect(store.events(id, 0, 9).map(({ seq }) => seq)).toEqual([1, 2])
    expect(readDocument(`${id}.json`)).toMatchObject({ session_id: id, turn_count: 1 })
  }
  // Where a process was killed between the journal and the document, opening has made up for it.
  expect(standing.length).toBeGreaterThanOrEqual(acknowledged.length)
  await store.close()
})

test('a second process is refused while the first lives, by a message that names it, and opens when it was killed', async () => {
  const { child, hears } = programs.start(`import { writeSync } from 'node:fs'
    const store = jsonStore(${JSON.stringify(folder)})
    await store.commit(treeCommit('root-a'))
    writeSync(1, 'open\\n')
    setInterval(() => undefined, 1000)`)
  await hears('open')

  const refused = new RegExp(`is open in process ${child.pid}\\b.*sqliteStore`)
  expect(() => jsonStore(folder)).toThrow(refused)
  expect(() => jsonStore(folder)).toThrow(expect.objectContaining({ code: 'store_busy', isRetryable: true }))
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGKILL')
  await gone

  const store = jsonStore(folder)
  expect(store.conversation('root-a')).toBeDefined()
  await store.commit(treeCommit('root-b'))
  await store.close()
  expect(readdirSync(folder)).toEqual(['store.journal'])
})

test('of many processes that open at once one at most has the store', { timeout: 60_000 }, async () => {
  const code = `
    import { closeSync, openSync, unlinkSync } from 'node:fs'
    for (let n = 0; n < 20; ) {
      try {
        const store = jsonStore(${JSON.stringify(folder)})
        const held = openSync(${JSON.stringify(join(folder, 'held'))}, 'wx')
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 3))
        closeSync(held)
        unlinkSync(${JSON.stringify(join(folder, 'held'))})
        await store.close()
        n++
      } catch (error) {
        if (error.code !== 'store_busy') throw error
      }
    }`

  const codes = await Promise.all([1, 2, 3].map(() => programs.start(code).ended))

  expect(codes).toEqual([0, 0, 0])
  expect(readdirSync(folder)).toEqual(['store.journal'])
})

test.each([
  ['of a machine that was started anew', { host: hostname(), bootId: 'another boot/pid:[1]', processStart: '1' }, true],
  [
    'of a process that is gone, its number taken by another',
    { pid: process.pid, host: hostname(), bootId: proveSelf().bootId, processStart: '1' },
    true,
  ],
  [
    'of a living process that could not read which boot it is',
    { pid: process.ppid, host: hostname(), bootId: `${hostname()}/unknown`, processStart: '' },
    false,
  ],
  ['of another machine', { host: 'elsewhere', bootId: 'x/y', processStart: '1' }, false],
  ['that cannot be read', 'what?', false],
])('a lock %s: is it free?', async (_, owner, isFree) => {
  const lock = join(folder, 'store.lock-7-abc')
  writeFileSync(lock, typeof owner === 'string' ? owner : JSON.stringify({ pid: 7, ...owner }))

  if (isFree) await jsonStore(folder).close()
  else expect(() => jsonStore(folder)).toThrow(`delete ${lock}`)

  expect(readdirSync(folder)).toEqual(isFree ? ['store.journal'] : ['store.lock-7-abc'])
})

test('a folder that may only be read is told as such', async ({ skip }) => {
  if (process.getuid?.() !== 0) skip('needs to become another user')
  const inner = join(folder, 'inner')
  mkdirSync(inner)
  chmodSync(folder, 0o755)
  chmodSync(inner, 0o555)

  const code = `try { jsonStore(${JSON.stringify(inner)}) } catch (error) { console.log(error.code, error.message) }`
  const said = programs.run(code, { uid: 65534 })

  expect(said).toMatch(/^store_readonly Cannot write .*change the permissions/)
})

test('a full disk refuses the commit whole, and the store goes on when there is room', async ({ skip }) => {
  const small = smallDisk(folder, 2)
  if (small === null) return skip('no file system of its own can be made here')
  const { disk, wrapper } = small
  const code = `
    import { unlinkSync, writeFileSync } from 'node:fs'
    writeFileSync('${disk}/filler', Buffer.alloc(1_000_000))
    const store = jsonStore({ folder: '${disk}/store', report: () => undefined })
    await store.commit(treeCommit('root-a'))
    const codes = new Set()
    const add = (n) => commitOf('root-a', { bodies: [{ hash: 'h' + n, text: 'x'.repeat(50_000) }], events: [warningEvent(placeIn('root-a'), 'e' + n)] })
    let accepted = 0
    for (let n = 0; n < 100; n++) try { await store.commit(add(n)); accepted++ } catch (error) { codes.add(error.code) }
    const whole = store.lastSeq('root-a') === accepted && store.body('h99') === undefined
    unlinkSync('${disk}/filler')
    await store.commit(add(100))
    await store.close()
    const again = jsonStore('${disk}/store')
    console.log(JSON.stringify({ codes: [...codes], whole, some: accepted > 0 && accepted < 100, after: again.lastSeq('root-a') - accepted }))`

  const said = programs.run(code, { wrapper })

  expect(JSON.parse(said)).toEqual({ codes: ['store_full'], whole: true, some: true, after: 1 })
})

function readDocument(name: string): SessionDocument {
  return parseOwnJson(readFileSync(join(folder, name), 'utf8')) as SessionDocument
}

async function writeUntilKilled(round: number): Promise<string[]> {
  const code = `
    import { writeSync } from 'node:fs'
    const store = jsonStore({ folder: ${JSON.stringify(folder)}, compactBytes: 60_000 })
    for (let n = 0; ; n++) {
      const id = 'r${round}-' + n
      const commit = treeCommit(id, { events: [warningEvent(placeIn(id), 'one')] })
      await store.commit(commit)
      const nodes = [next(commit.nodes[0], { state: 'finished', endedAt: 1 })]
      await store.commit(commitOf(id, { nodes, turns: [next(commit.turns[0], { state: 'ended' })], events: [warningEvent(placeIn(id), 'two')] }))
      writeSync(1, id + '\\n')
    }`
  const { child, ended, said, hears } = programs.start(code)
  await hears(`r${round}-0`)
  await new Promise((resolve) => setTimeout(resolve, 5 + Math.random() * 60))
  child.kill('SIGKILL')
  await ended
  return said
}
