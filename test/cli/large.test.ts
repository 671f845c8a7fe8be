// Lists and texts that do not fit into one page of a server: read through a server, they are the same as read from the store.

import { agent, createRuntime, tool } from 'legate'
import { sqliteStore } from 'legate/store/sqlite'
import { beforeEach, expect, test } from 'vitest'
import { Place, skipUnlessBuilt } from './support/cli.ts'
import { type Served, served } from './support/served.ts'

beforeEach(skipUnlessBuilt)

const LONG_MS = 120_000

/** Says as many characters as it is asked for. */
const sayer = agent({ name: 'sayer', reply: async (input) => 'x'.repeat(Number(input)) })

/** Holds a conversation in a store, and gives the ids of its runs. */
async function talk(place: Place, inputs: readonly string[]): Promise<string[]> {
  const runtime = createRuntime({ store: sqliteStore(place.store), agents: [sayer] })
  const ids: string[] = []
  let conversationId: string | undefined
  for (const input of inputs) {
    const run = runtime.run(sayer, input, conversationId === undefined ? {} : { conversationId })
    conversationId = run.conversationId
    await run.result
    ids.push(run.id)
  }
  await runtime.close()
  return ids
}

function quiet(place: Place): Promise<Served> {
  return served(place, ['--workers', '0'])
}

async function bothWays(place: Place, { url }: Served, args: readonly string[]) {
  const [local, remote] = await Promise.all([place.run(args), place.run([...args, '--server', url])])
  // Where both were cut in the same way, they would be the same too.
  expect({ ...remote, stdout: remote.stdout.length }).toEqual({ ...local, stdout: local.stdout.length })
  expect(remote.stdout === local.stdout).toBe(true)
  return local
}

test('a transcript of several pages, with an answer that is larger than a page', { timeout: LONG_MS }, async () => {
  const place = new Place()
  const [id = ''] = await talk(place, ['10', '5000000', '5000000', '9000000', '5000000'])
  const server = await quiet(place)
  const { stdout } = await bothWays(place, server, ['transcript', id.slice(-8), '--json'])
  expect(
    stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { text: string }).text.length),
  ).toEqual([...[2, 10, 7, 5_000_000, 7, 5_000_000, 7, 9_000_000, 7, 5_000_000]])
  const two = await bothWays(place, server, ['transcript', id.slice(-8), '--json', '--turns', '2'])
  expect(two.stdout.trim().split('\n')).toHaveLength(4)
})

test('all runs of a conversation with long answers', { timeout: LONG_MS }, async () => {
  const place = new Place()
  const ids = await talk(place, ['10', '700000', '700000', '700000'])
  const { stdout } = await bothWays(place, await quiet(place), ['ps', '--all', '-q'])
  expect(stdout.trim().split('\n').sort()).toEqual(ids.map((id) => id.slice(-8)).sort())
})

/** Requests that wait for a person, each in a run of its own. */
async function parked(place: Place, count: number): Promise<void> {
  const careful = agent({
    name: 'careful',
    instructions: 'x',
    tools: { look: tool({ description: 'x', input: { type: 'object' }, effect: 'pure', execute: () => '' }) },
    grant: { use: ['tool:look', 'model:*'], ask: ['tool:look'] },
    model: {
      id: 'test/model',
      async *stream() {
        yield { type: 'tool-call' as const, id: 'a', name: 'look', input: {} }
        yield { type: 'finish' as const, reason: 'tool-calls' as const, usage: USAGE }
      },
    },
  })
  const runtime = createRuntime({ store: sqliteStore(place.store), agents: [careful] })
  const runs = Array.from({ length: count }, () => runtime.run(careful, 'Look.'))
  await Promise.all(
    runs.map(async (run) => {
      for await (const { type } of run) if (type === 'approval-request') return
    }),
  )
  await runtime.close()
}

test.each([
  [['approvals', '--json'], 1_050],
  [['inbox', '--json'], 1_050],
  [['ps', '-q'], 230],
] as const)(
  'legate %j lists %i waiting runs, which are more than a page has',
  { timeout: LONG_MS },
  async (args, count) => {
    const place = new Place()
    await parked(place, count)
    const { stdout } = await bothWays(place, await quiet(place), args)
    expect(stdout.trim().split('\n')).toHaveLength(count)
  },
)

const USAGE = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 }

test('a command says that it leaves something out where a tree is too large', { timeout: LONG_MS }, async () => {
  const place = new Place()
  const ids = await talk(
    place,
    Array.from({ length: 1_002 }, () => '1'),
  )
  const server = await quiet(place)
  const there = ['--server', server.url]
  const old = ['show', ids[500] ?? '', '--nodes']
  const cut = /^legate: This tree is too large to be read whole through a server/
  expect((await place.run([...old, ...there])).stderr).toMatch(cut)
  expect((await place.run([...old])).stderr).toBe('')
  expect((await place.run(['log', ids.at(-1) ?? '', ...there])).stderr).toBe('')
})

test('whoever does not see all trees names an old one by its whole id', { timeout: LONG_MS }, async () => {
  const place = new Place()
  const runtime = createRuntime({ store: sqliteStore(place.store), agents: [sayer] })
  const ann = runtime.as({ id: 'ann', scopes: ['start', 'read'] })
  const runs = Array.from({ length: 230 }, () => ann.run(sayer, '1'))
  for (const { result } of runs) await result
  await runtime.close()
  const token = (await place.run(['token', 'add', 'ann', '--scopes', 'read'])).stdout.trim()
  const { base } = await quiet(place)
  const shown = await place.run(['show', runs[0]?.id ?? '', '--server', base, '--token', token])
  expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining('sayer') })
})
