import { closeSync, openSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { TreeParser, verifyTree } from '../../../src/core/store/codec/tree-text.ts'
import { rowMark } from '../../../src/core/store/commit-chain.ts'
import { memoryStore } from '../../../src/core/store/memory/index.ts'
import { agent, createRuntime } from '../../../src/index.ts'
import { readJournal } from '../../../src/stores/json/journal.ts'
import { readLine, toLine } from '../../../src/stores/json/record.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { testGrowth } from '../../support/growth.ts'
import { localStore } from '../../support/rows.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { leaveUnaudited } from '../../support/unaudited.ts'
import { inChunks, JSON_TOKENS } from './tokens.ts'

const MOST = 4_000_000
const HEADER = toLine({ store: 'legate-json', version: 1 }, 0)

describe('a journal', () => {
  const file = path.join(tempFolder(afterAll), 'store.journal')
  const read = (text: string) => {
    writeFileSync(file, text)
    const descriptor = openSync(file, 'r')
    try {
      return readJournal(descriptor, file, () => undefined)
    } finally {
      closeSync(descriptor)
    }
  }

  testGrowth('a journal', {
    read,
    tokens: ['a', '\n', ' ', '\0', 'é', '00000000 1 {}\n', '\r\n', '{"commit":'],
    most: MOST,
    around: (body) => `${HEADER}${body}`,
  })
  testGrowth('a journal of many lines', {
    read: (text) =>
      read(
        HEADER +
          inChunks(text, 20)
            .map((title, at) => toLine({ rows: { title } } as never, at + 1))
            .join(''),
      ),
    tokens: ['a', '\n', '"', '\\', 'é', '{'],
    most: MOST / 4,
  })
  testGrowth('a line of a journal', { read: readLine, tokens: ['0', ' ', 'a', '{', '"', 'é'], most: MOST })
})

describe('an export', () => {
  testGrowth('lines of an export', {
    read: (text) => {
      const reader = new TreeParser()
      reader.take('{"legate":"tree","version":1,"rootId":"a","hash":"b"}')
      for (const line of text.split('\n')) reader.take(line)
    },
    tokens: [
      ...[
        '["row","n",null,{"node":"a"}]\n',
        '["edge","a","b","c","sequence"]\n',
        '["events",[]]\n',
        '\n',
        ' \n',
        '[1]\n',
      ],
      ...['["commit",{"kind":"a","at":1,"seq":1,"marks":"","hash":"a"}]\n["events",[]]\n', '["row","c","a",{}]\n'],
    ],
    most: MOST,
  })
  testGrowth('a line of an export', {
    read: (text) => new TreeParser().take(text),
    tokens: JSON_TOKENS,
    most: MOST * 4,
    around: (body) => `["row","n",null,${body}]`,
  })
  testGrowth('rows that end alike', {
    read: (text) => {
      const rows = inChunks(text, 10).map((_, at) => {
        return { letter: 'n' as const, id: `${at}-same-end`, turnId: null, text: `{"node":"${at}","version":1}` }
      })
      const marks = rows.map(({ letter, id, text: row }) => rowMark(letter, id, row)).join('')
      const record = { kind: 'a', at: 1, seq: 0, events: '[]', marks, hash: '' }
      return verifyTree({ rootId: 'a', rows, edges: [], bodies: [], records: [record] })
    },
    tokens: ['a'],
    most: MOST / 4,
  })

  test('4 times the turns are imported in at most 6 times the time', async () => {
    const short = await exported(30)
    const long = await exported(120)
    const ratios: number[] = []
    for (let time = 0; time < 8 && !ratios.some((ratio) => ratio <= 6); time++) {
      const first = await importing(short)
      ratios.push((await importing(long)) / Math.max(first, 5))
    }

    expect(Math.min(...ratios)).toBeLessThanOrEqual(6)
  })
})

const talker = agent({ name: 'talker', instructions: 'Talk.', model: scriptedModel(() => 'Yes.') })

async function exported(turns: number): Promise<readonly string[]> {
  const runtime = createRuntime({ store: memoryStore(), agents: [talker] })
  leaveUnaudited(localStore(runtime))
  const { conversationId } = await runtime.run(talker, 'Hello.').result
  for (let turn = 1; turn < turns; turn++) await runtime.run(talker, 'And?', { conversationId }).result
  const lines: string[] = []
  for await (const line of runtime.export(conversationId)) lines.push(line)
  await runtime.close()
  return lines
}

async function importing(lines: readonly string[]): Promise<number> {
  const runtime = createRuntime({ store: memoryStore(), agents: [talker] })
  leaveUnaudited(localStore(runtime))
  const began = process.cpuUsage()
  await runtime.import(lines)
  const { user, system } = process.cpuUsage(began)
  await runtime.close()
  return (user + system) / 1_000
}
