import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { gunzipSync } from 'node:zlib'
import { agent, createRuntime, type Runtime, tool } from 'legate'
import { backgroundSubagents } from 'legate/background'
import type { ModelRequest } from 'legate/models'
import { jsonStore } from 'legate/store/json'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { memoryTools } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../src/core/base/clock.ts'
import type { LocalStore } from '../../src/core/store/store.ts'
import { readInline } from '../../src/recipes/inline/inline-agent.ts'
import { readLine, toLine } from '../../src/stores/json/record.ts'
import { localStore } from '../support/rows.ts'
import { testStored, toldOf } from '../support/stored-2043270a.ts'
import { tempFolder } from '../support/temp-folder.ts'

const fixture = (name: string) => gunzipSync(readFileSync(path.join(import.meta.dirname, 'fixtures', name)))

/** Those who wrote the fixtures; see make-c28c880.mjs. */
const NOTHING = { type: 'object' } as const
const says = (name: string, script: Parameters<typeof scriptedModel>[0], more: object = {}) =>
  agent({ name, description: `${name}s.`, instructions: `${name}.`, model: scriptedModel(script), ...more })
function agents() {
  const search = says('search', () => 'Found.')
  const lookup = tool({ description: 'Looks up.', input: NOTHING, effect: 'pure', execute: () => 'long' })
  const deploy = tool({ description: 'Deploys.', input: NOTHING, approval: 'required', execute: () => 'ok' })
  const helper = says('helper', () => 'Helped.')
  const slow = says('slow', () => 'Not so slow.')
  return [
    says('lead', () => 'Here.', { subagents: { search }, tools: { lookup } }),
    says('boss', () => 'Here.', { tools: { ...backgroundSubagents({ agent: helper }) } }),
    says('careful', () => 'Deployed.', { tools: { deploy } }),
    says('waiting', () => 'Waited.', { subagents: { slow } }),
    slow,
    helper,
    search,
  ]
}

const sqliteOf = (name: string) => () => {
  const file = path.join(tempFolder(), 'old.db')
  writeFileSync(file, fixture(name))
  return () => sqliteStore(file)
}

/** b23e353 has a seal for each row in a table of their own. */
const KINDS: [string, () => () => LocalStore][] = [
  ['SQLite store of commit c28c880', sqliteOf('c28c880.db.gz')],
  ['SQLite store of commit b23e353', sqliteOf('b23e353.db.gz')],
  [
    'JSON store of commit c28c880',
    () => {
      const folder = path.join(tempFolder(), 'old')
      mkdirSync(folder)
      writeFileSync(path.join(folder, 'store.journal'), fixture('c28c880.journal.gz'))
      return () => jsonStore(folder)
    },
  ],
]

/** A minute after the fixture was written: the lease of its process is over, and the run that waits a day for a person still waits. */
function clockOf(store: LocalStore): Clock {
  const events = store.roots({ limit: 100 }).flatMap(({ id }) => store.events(id, 0, 1_000))
  const behind = systemClock.now() - (Math.max(...events.map(({ at }) => at)) + 60_000)
  return {
    now: () => systemClock.now() - behind,
    at: (time, run, options) => systemClock.at(time + behind, run, options),
  }
}

async function findingsIn(runtime: Runtime): Promise<string[]> {
  const { findings } = await runtime.audit({ verify: true })
  return findings.filter(({ type }) => BYTES.includes(type)).map(({ message }) => message)
}

const BYTES: readonly string[] = [
  ...['altered_row', 'missing_row', 'unknown_row', 'altered_body', 'altered_index', 'broken_chain', 'unreadable'],
]

describe.each(KINDS)('a %s', (_, place) => {
  test('verifies, is exported and imported, and goes on with all that was open', async () => {
    const open = place()
    const store = open()
    const clock = clockOf(store)
    const runtime = createRuntime({ store, clock, agents: agents() })
    expect(await findingsIn(runtime)).toEqual([])
    const roots = localStore(runtime)
      .roots({ limit: 100 })
      .map(({ id }) => id)
    expect(roots).toHaveLength(4)
    const events = roots.flatMap((id) => localStore(runtime).events(id, 0, 1_000))
    expect(events.length).toBeGreaterThan(20)
    expect(events.filter(({ runId }) => localStore(runtime).turn(runId) === undefined)).toEqual([])
    // They were written before the event had a status of its own.
    const ends = events.flatMap(({ body }) => (body.type === 'run-end' ? [[body.status, body.outcome.status]] : []))
    expect(ends.length).toBeGreaterThan(0)
    for (const [status, ofOutcome] of ends) expect(status).toBe(ofOutcome)

    const folder = tempFolder()
    const copy = createRuntime({ store: jsonStore(folder), agents: agents() })
    for (const id of roots) {
      const { openTurns } = {
        openTurns: localStore(runtime)
          .turnsOf(id, { limit: 9 })
          .some(({ state }) => state !== 'ended'),
      }
      if (!openTurns) await copy.import(runtime.export(id))
    }
    expect(await findingsIn(copy)).toEqual([])
    await copy.close()

    const runs = await runtime.resume()
    const [node] = localStore(runtime).awaiting({ limit: 1 })
    await runtime.answer(node?.id ?? '', { allow: true })
    const outcomes = await Promise.all(runs.map(({ result }) => result))
    expect(outcomes.map(({ text }) => text)).toEqual(expect.arrayContaining(['Deployed.', 'Waited.']))
    expect(await findingsIn(runtime)).toEqual([])
    await runtime.close()

    const again = createRuntime({ store: open(), clock, agents: agents() })
    expect(await findingsIn(again)).toEqual([])
    expect(
      localStore(again)
        .roots({ limit: 100 })
        .map(({ id }) => id),
    ).toEqual(roots)
    await again.close()
  })
})

testStored('a SQLite store of commit 2043270a', async () => ({
  open: sqliteOf('2043270a.db.gz')(),
  told: toldOf('sqlite'),
}))

describe('the journal of a JSON store', () => {
  const journalIn = (text: string | Buffer) => {
    const folder = path.join(tempFolder(), 'old')
    mkdirSync(folder)
    writeFileSync(path.join(folder, 'store.journal'), text)
    return folder
  }
  const linesIn = (folder: string) => readFileSync(path.join(folder, 'store.journal'), 'utf8').split('\n')

  test('of version 1 is written anew in the version of today when it is opened', async () => {
    const folder = journalIn(fixture('c28c880.journal.gz'))
    await jsonStore(folder).close()

    expect(readLine(linesIn(folder)[0] ?? '')?.entry).toEqual({ store: 'legate-json', version: 2 })
    await jsonStore(folder).close()
  })

  test('of version 1 whose rows have another form is refused in one line, and left as it is', () => {
    const text = fixture('c28c880.journal.gz').toString()
    const older = text.split('\n').map((line, number) => {
      const entry = readLine(line)?.entry
      if (entry === undefined || !('commit' in entry)) return line
      const turns = entry.commit.turns.map((turn) => ({ ...turn, attributes: { ...turn.attributes, form: 'older' } }))
      return toLine({ ...entry, commit: { ...entry.commit, turns } }, number).trimEnd()
    })
    const folder = journalIn(older.join('\n'))

    expect(() => jsonStore(folder)).toThrow(/^The JSON store in .* older version.*Export.*import.*$/)
    expect(linesIn(folder)).toEqual(older)
  })

  test('of a version that is not known yet is refused in one line', () => {
    const folder = journalIn(toLine({ store: 'legate-json', version: 3 }, 0))

    expect(() => jsonStore(folder)).toThrow(/version 3, and this program knows 2\. Update.*export.*import/)
  })
})

test('what commit 2043270a remembered in its folder is there for a run without an owner', async () => {
  const directory = tempFolder()
  writeFileSync(path.join(directory, 'taste.jsonl'), '{"text":"Likes tea.","tags":[],"at":1795029923842}\n')
  const recall = { calls: [{ name: 'memory_recall', input: { category: 'taste' } }] }
  const knowing = says(
    'knowing',
    ({ messages }: ModelRequest) => {
      const last = messages.at(-1)
      return last?.role === 'tool' ? String(last.content) : recall
    },
    { tools: memoryTools({ directory }) },
  )
  const runtime = createRuntime()

  expect((await runtime.run(knowing, 'What do I like?').result).text).toContain('Likes tea.')
  await runtime.close()
})

test('the row of an agent made from a file may say turns for model calls', () => {
  const { budget } = readInline({ form: 1, name: 'old', budget: { turns: 4, usd: 1 } })

  expect(budget).toEqual({ modelCalls: 4, usd: 1 })
})
