import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { tempFolder } from '../../../test/support/temp-folder.ts'
import { parseOwnJson } from '../../core/base/json.ts'
import type { SessionDocument } from '../../core/rules/delegation/session-document.ts'
import type { LocalStore } from '../../core/store/store.ts'
import { snapshot } from '../../testing/conformance/store-commit-laws.ts'
import { storeConformance } from '../../testing/conformance/store-conformance.ts'
import { fullCommit } from '../../testing/conformance/store-read-laws.ts'
import {
  commitOf,
  conversationRow,
  next,
  nodeRow,
  placeIn,
  treeCommit,
  turnRow,
  warningEvent,
} from '../../testing/conformance/store-rows.ts'

import { jsonStore } from './index.ts'
import { toLine } from './record.ts'

/** No process has such a number. */
const GONE = 2 ** 30

const reopen = (store: LocalStore) => store.reopen()

storeConformance({ name: 'json', open: (folder) => jsonStore(folder), durable: true, shared: false, reopen, test })
storeConformance({
  name: 'json (always written anew)',
  open: (folder) => jsonStore({ folder, compactBytes: 1 }),
  durable: true,
  shared: false,
  test,
})

let folder: string
let journal: string

beforeEach(() => {
  folder = tempFolder()
  journal = join(folder, 'store.journal')
})

describe('the journal', () => {
  test('is for the owner only, and with the documents all that is left after closing', async () => {
    const deep = join(folder, 'a')
    const store = jsonStore(deep)
    await end(store, 'root-a')
    await store.close()

    expect(statSync(join(folder, 'a')).mode & 0o777).toBe(0o700)
    expect(readdirSync(deep).sort()).toEqual(['root-a.json', 'store.journal'])
    for (const file of readdirSync(deep)) expect(statSync(join(deep, file)).mode & 0o777).toBe(0o600)
  })

  test('a missing folder above it is not made: it may be a slip of the pen', () => {
    const deep = join(folder, 'a/b')
    expect(() => jsonStore(deep)).toThrow(
      `There is no folder ${join(folder, 'a')} for the store ${deep}. Make the folder first, or name another path.`,
    )
    expect(readdirSync(folder)).toEqual([])
  })

  test('I3: torn anywhere in its last line it opens with all that was acknowledged before, and goes on', async () => {
    const store = jsonStore(folder)
    await store.commit(fullCommit())
    const before = await snapshot(store)
    const events = store.lastSeq('root-a')
    const whole = statSync(journal).size
    await store.commit(commitOf('root-a', { events: [warningEvent(placeIn('root-a'), 'ünïcödé 会话')] }))
    await store.close()
    const bytes = readFileSync(journal)

    for (let cut = whole; cut < bytes.length; cut += 2) {
      writeFileSync(journal, bytes.subarray(0, cut))
      const again = jsonStore(folder)
      expect(await snapshot(again)).toEqual(before)
      expect(statSync(journal).size).toBe(whole)
      await again.commit(commitOf('root-a', { events: [warningEvent(placeIn('root-a'), 'more')] }))
      await again.close()
    }
    const last = jsonStore(folder)
    expect(last.lastSeq('root-a')).toBe(events + 1)
    await last.close()
  })

  test('a last line without an end that is no beginning of a line is torn too', async () => {
    for (const garbage of ['\0\0\0\0', '12345678 9 {"x":1}']) {
      const store = jsonStore(folder)
      await store.commit(treeCommit(`root-${garbage.length}`))
      await store.close()
      const bytes = readFileSync(journal)
      writeFileSync(journal, Buffer.concat([bytes, Buffer.from(garbage)]))

      const again = jsonStore(folder)
      expect(again.conversation(`root-${garbage.length}`)).toBeDefined()
      await again.close()
      expect(readFileSync(journal).equals(bytes)).toBe(true)
    }
  })

  test('a line that has an end and cannot be read is damage, although it is the last', async () => {
    const store = jsonStore(folder)
    await store.commit(treeCommit('root-a'))
    await store.close()
    const bytes = readFileSync(journal)

    for (const garbage of ['12345678 9 {"x":1}\n', 'not a line\nnor this\n', '\n']) {
      const damaged = Buffer.concat([bytes, Buffer.from(garbage)])
      writeFileSync(journal, damaged)
      expect(() => jsonStore(folder)).toThrow(/store\.journal is damaged at line 3: .*Restore it from a backup/)
      expect(readFileSync(journal).equals(damaged)).toBe(true)
    }
  })

  test('a changed byte anywhere, also in the last line and at its end, is reported as damage, and the file stays as it is', async () => {
    const store = jsonStore(folder)
    for (const id of ['a', 'b', 'c']) await store.commit(treeCommit(`root-${id}`))
    await store.close()
    const bytes = readFileSync(journal)
    const firstEnd = bytes.indexOf(10)
    const lastStart = bytes.lastIndexOf(10, bytes.length - 2)
    const places = Array.from({ length: Math.floor((lastStart - firstEnd) / 97) }, (_, n) => firstEnd + 1 + n * 97)
    for (let at = bytes.length - 1; at > lastStart; at -= 41) places.push(at)

    for (const at of places) {
      const damaged = Buffer.from(bytes)
      damaged.writeUInt8(damaged.readUInt8(at) ^ 1, at)
      writeFileSync(journal, damaged)
      expect(() => jsonStore(folder)).toThrow(/damaged at line [234].*Restore it from a backup/)
      expect(readFileSync(journal).equals(damaged)).toBe(true)
    }
    expect(readdirSync(folder)).toEqual(['store.journal'])
  })

  test('a line that is missing, or there twice, is damage', async () => {
    const store = jsonStore(folder)
    for (const id of ['a', 'b', 'c']) await store.commit(treeCommit(`root-${id}`))
    await store.close()
    const lines = readFileSync(journal, 'utf8').split('\n')

    for (const wrong of [lines.toSpliced(2, 1), lines.toSpliced(2, 0, lines[2] ?? '')]) {
      writeFileSync(journal, wrong.join('\n'))
      expect(() => jsonStore(folder)).toThrow(expect.objectContaining({ code: 'store' }))
    }
  })

  test.each([
    ['a text file', 'my notes\n', 'store_foreign_file'],
    ['an empty file', '', 'store_foreign_file'],
    ['a journal of another program', toLine({ store: 'other', version: 1 }, 0), 'store_foreign_file'],
    ['a newer version', toLine({ store: 'legate-json', version: 3 }, 0), 'store_newer_schema'],
  ])('%s in its place is refused and left as it is', (_, text, code) => {
    writeFileSync(journal, text)

    expect(() => jsonStore(folder)).toThrow(expect.objectContaining({ code }))
    expect(readFileSync(journal, 'utf8')).toBe(text)
    expect(readdirSync(folder)).toEqual(['store.journal'])
  })

  test('a link to a file that is not there is refused: an empty journal in its place would hide what it had', async () => {
    const elsewhere = join(folder, 'elsewhere')
    symlinkSync(elsewhere, journal)

    expect(() => jsonStore(folder)).toThrow('Bring that file back')
    expect(readdirSync(folder)).toEqual(['store.journal'])
    writeFileSync(elsewhere, toLine({ store: 'legate-json', version: 1 }, 0))
    await jsonStore(folder).close()
  })

  test.each([
    ['a folder', (lock: string) => mkdirSync(lock)],
    ['a link to itself', (lock: string) => symlinkSync(lock, lock)],
  ])('%s where a lock would be is somebody’s: it is named, and nothing is left behind', async (_, put) => {
    const lock = join(folder, 'store.lock-1-aa')
    put(lock)

    expect(() => jsonStore(folder)).toThrow(expect.objectContaining({ code: 'store_busy' }))
    expect(() => jsonStore(folder)).toThrow(`delete ${lock}`)
    expect(readdirSync(folder)).toEqual(['store.lock-1-aa'])
    rmSync(lock, { recursive: true })
    await jsonStore(folder).close()
  })

  test('a document that is a device or a pipe is written anew', async () => {
    const first = jsonStore(folder)
    await end(first, 'root-a')
    await first.close()
    rmSync(join(folder, 'root-a.json'))
    symlinkSync('/dev/zero', join(folder, 'root-a.json'))
    const reports: Error[] = []

    await jsonStore({ folder, report: (error) => reports.push(error) }).close()

    expect(reports.map(({ message }) => message)).toEqual([expect.stringContaining('is not a file')])
    expect(read('root-a.json')).toMatchObject({ session_id: 'root-a' })
  })

  test('a file in place of the folder, and no folder at all, are refused', () => {
    const file = join(folder, 'file')
    writeFileSync(file, '')

    expect(() => jsonStore(file)).toThrow(expect.objectContaining({ code: 'store' }))
    expect(() => jsonStore(join(file, 'x'))).toThrow(expect.objectContaining({ code: 'store' }))
    expect(() => jsonStore('')).toThrow('jsonStore("sessions")')
    expect(() => jsonStore(undefined as never)).toThrow()
  })

  test('is written anew when it has grown: the same rows, a fraction of the bytes', async () => {
    const store = jsonStore({ folder, compactBytes: 100_000 })
    let node = nodeRow(placeIn('root-a'), 'counter')
    await store.commit(treeCommit('root-a', { nodes: [node], bodies: [{ hash: 'h', text: 'kept' }] }))
    let largest = 0
    for (let n = 0; n < 400; n++) {
      node = next(node, { preview: 'x'.repeat(500) })
      await store.commit(commitOf('root-a', { nodes: [node], events: [warningEvent(placeIn('root-a'), `${n}`)] }))
      largest = Math.max(largest, statSync(journal).size)
    }
    const before = await snapshot(store)
    await store.close()

    expect(largest).toBeLessThan(400_000)
    const again = jsonStore(folder)
    expect(await snapshot(again)).toEqual(before)
    expect(again.node('counter')?.version).toBe(401)
    expect(again.body('h')).toBe('kept')
    await again.close()
  })

  test('what a killed process was about to put in place is cleared away; what is new and of one that runs is not', async () => {
    const { pid } = process
    const old = [`x.json.${pid}-0123abcd.new`, `store.lock-${pid}-aa.new`].map((name) => join(folder, name))
    const others = [`y.json.${pid}-0123abcd.new`, `z.json.${GONE}-0123abcd.new`]
    for (const file of [...old, ...others.map((name) => join(folder, name))]) writeFileSync(file, '')
    for (const file of old) utimesSync(file, 1, 1)
    writeFileSync(join(folder, 'store.journal.new'), 'half')

    await jsonStore(folder).close()

    expect(readdirSync(folder).filter((name) => name.endsWith('.new'))).toEqual([`y.json.${pid}-0123abcd.new`])
  })
})

describe('the documents', () => {
  test('are never read: what somebody writes into one, or deletes, changes no row', async () => {
    const store = jsonStore(folder)
    await end(store, 'root-a')
    await end(store, 'root-b')
    await store.close()
    writeFileSync(join(folder, 'root-a.json'), '{ "format": "legate-session", "session_id": "root-c" }')
    rmSync(join(folder, 'root-b.json'))
    const again = jsonStore(folder)

    expect(
      again
        .roots({ limit: 9 })
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(['root-a', 'root-b'])
    expect(again.conversation('root-c')).toBeUndefined()
    await again.close()
  })

  test('are one per conversation, valid after every turn, and say what was said', async () => {
    const store = jsonStore(folder)
    await end(store, 'root-a')
    const place = { ...placeIn('root-a'), turnId: 't-2' }
    const said = nodeRow(place, 'said', {
      kind: 'user_message',
      state: 'finished',
      input: { content: 'Hi' },
      endedAt: 2,
    })
    const answer = { content: 'Hello', calls: [{ id: '1', name: 'look', input: {} }] }
    const spoke = nodeRow(place, 'spoke', {
      kind: 'agent_message',
      state: 'finished',
      output: answer,
      ordinal: 1,
      endedAt: 3,
    })
    await store.commit(
      commitOf('root-a', { turns: [turnRow(place, { ordinal: 1, state: 'ended' })], nodes: [said, spoke] }),
    )

    const document = read('root-a.json')
    expect(document).toMatchObject({ format: 'legate-session', session_id: 'root-a', turn_count: 2, host: null })
    expect(document.turns[1]?.messages).toEqual([
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hello' }, // its call was never answered: nobody is shown it
    ])
    await store.close()
  })

  test.each([
    '..',
    '.',
    'a/b',
    '../../etc/passwd',
    '\0',
    'x'.repeat(10_000),
    '会话',
    'CON',
    'con',
    'A',
    '',
    'store.journal',
  ])('the id %j stays in the folder', async (id) => {
    const inner = join(folder, 'inner')
    const store = jsonStore(inner)
    const place = placeIn(id)
    const turn = turnRow(place, { state: 'ended' })
    await store.commit(treeCommit(id, { conversations: [conversationRow(id)], turns: [turn] }))
    const names = readdirSync(inner).filter((name) => name.endsWith('.json'))
    await store.close()

    expect(readdirSync(folder)).toEqual(['inner'])
    expect(names).toEqual([expect.stringMatching(/^~[0-9a-f]{64}\.json$/)])
    expect(parse(join(inner, names[0] ?? '')).session_id).toBe(id)
  })

  test('a document that is missing or outdated after a crash is written when the store is opened', async () => {
    const store = jsonStore(folder)
    for (const id of ['root-a', 'root-b', 'root-c']) await end(store, id)
    await store.close()
    rmSync(join(folder, 'root-a.json'))
    const whole = readFileSync(join(folder, 'root-b.json'), 'utf8')
    writeFileSync(join(folder, 'root-b.json'), whole.replace('"turn_count": 1', '"turn_count": 0'))
    writeFileSync(join(folder, 'root-c.json'), whole.slice(0, 40))

    await jsonStore(folder).close()

    for (const id of ['root-a', 'root-b', 'root-c'])
      expect(read(`${id}.json`)).toMatchObject({ session_id: id, turn_count: 1 })
  })

  test('a document that cannot be written costs no commit: the store warns and writes it with the next turn', async () => {
    const told: Error[] = []
    const store = jsonStore({ folder, report: (error) => told.push(error) })
    mkdirSync(join(folder, 'root-a.json'))
    await end(store, 'root-a')

    expect(told).toHaveLength(1)
    expect(told[0]).toMatchObject({ code: 'store', message: expect.stringContaining('root-a.json') })
    expect(store.turn(placeIn('root-a').turnId)?.state).toBe('ended')
    rmSync(join(folder, 'root-a.json'), { recursive: true })
    const place = { ...placeIn('root-a'), turnId: 't-2' }
    await store.commit(commitOf('root-a', { turns: [turnRow(place, { ordinal: 1, state: 'ended' })] }))
    expect(read('root-a.json').turn_count).toBe(2)
    await store.close()
  })

  test('a large one is not written with every turn, but with the last', async () => {
    const store = jsonStore(folder)
    const turn = (n: number) => {
      const place = { ...placeIn('root-a'), turnId: `t-${n}` }
      const input = { content: 'x'.repeat(300_000) }
      const said = nodeRow(place, `n-${n}`, { kind: 'user_message', state: 'finished', input, endedAt: 2 })
      return { turns: [turnRow(place, { ordinal: n + 1, state: 'ended' })], nodes: [said] }
    }
    await store.commit(treeCommit('root-a'))
    await store.commit(commitOf('root-a', turn(0)))
    for (let n = 1; n < 10; n++) await store.commit(commitOf('root-a', turn(n)))
    expect(read('root-a.json').turn_count).toBe(1)

    await store.close()

    expect(read('root-a.json').turn_count).toBe(10)
  })

  test('go with the trees that are forgotten', async () => {
    const store = jsonStore({ folder, keep: 2 })
    for (const id of ['root-a', 'root-b', 'root-c']) await end(store, id)
    expect(store.roots({ limit: 9 }).map(({ id }) => id)).toEqual(['root-c', 'root-b'])
    await store.close()

    expect(readdirSync(folder).sort()).toEqual(['root-b.json', 'root-c.json', 'store.journal'])
    const again = jsonStore({ folder, keep: 2 })
    expect(again.roots({ limit: 9 }).map(({ id }) => id)).toEqual(['root-c', 'root-b'])
    await again.close()
  })
})

test('what is not a number to keep deletes nothing', async () => {
  const store = jsonStore(folder)
  for (const id of ['root-a', 'root-b']) await end(store, id)
  await store.close()

  for (const keep of [-1, 1.5, Number.NaN, null, '1', false]) {
    expect(() => jsonStore({ folder, keep: keep as number }), String(keep)).toThrow(/keep.*whole number/)
  }

  const again = jsonStore({ folder, keep: Number.POSITIVE_INFINITY })
  expect(again.roots({ limit: 9 })).toHaveLength(2)
  await again.close()
})

/** A tree whose only turn has ended. */
async function end(store: LocalStore, id: string): Promise<void> {
  const turn = turnRow(placeIn(id))
  const node = nodeRow(placeIn(id), `${id}-node`, { state: 'finished', endedAt: 1 })
  await store.commit(treeCommit(id, { turns: [turn], nodes: [node] }))
  await store.commit(commitOf(id, { kind: 'end', turns: [next(turn, { state: 'ended' })] }))
}

function read(name: string): SessionDocument {
  return parse(join(folder, name))
}

function parse(file: string): SessionDocument {
  return parseOwnJson(readFileSync(file, 'utf8')) as SessionDocument
}

test('a closed store does not reopen', async () => {
  const store = jsonStore(folder)
  await store.close()

  expect(() => store.reopen()).toThrow(expect.objectContaining({ code: 'store_closed' }))
})
