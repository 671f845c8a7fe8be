import { agent, createRuntime, type Json } from 'legate'
import { sqliteStore } from 'legate/store/sqlite'
import { expect, test } from 'vitest'
import { startProcess } from '../support/process.ts'
import { memoryRows } from '../support/stores.ts'
import { tempFolder } from '../support/temp-folder.ts'

const NET = { use: ['tool:*', 'net:a.example'] }

/** Says that it ran. */
function caller(ran: string[], grant: object = NET) {
  return agent({
    name: 'caller',
    grant,
    needs: (asked) => [`net:${String(asked)}`],
    reply: (asked) => {
      ran.push(String(asked))
      return 'called'
    },
  })
}

test('what code needs is decided before it runs', async () => {
  const ran: string[] = []
  await using runtime = createRuntime()
  expect((await runtime.run(caller(ran), 'a.example').result).text).toBe('called')
  const denied = await runtime.run(caller(ran), 'b.example').result
  expect([denied.status, denied.error?.message]).toEqual(['denied', expect.stringContaining('net:b.example')])
  const broken = agent({ name: 'broken', grant: NET, reply: () => 'x', needs: () => JSON.parse('no') })
  expect((await runtime.run(broken, 'a.example').result).status).toBe('denied')
  expect(ran).toEqual(['a.example'])
})

test('a person who must allow it is asked, and the run waits as a row', async () => {
  const ran: string[] = []
  const asking = caller(ran, { ...NET, ask: ['net:*'] })
  await using runtime = createRuntime({ store: sqliteStore(`${tempFolder()}/rows.db`) })
  for (const allow of [true, false]) {
    const run = runtime.run(asking, 'a.example')
    await expect.poll(async () => (await runtime.approvals()).length).toBe(1)
    const [asked] = await runtime.approvals()
    expect([asked?.request, asked?.tool]).toEqual(['net:a.example', null])
    await runtime.answer(asked?.nodeId ?? '', { allow })
    expect((await run.result).status).toBe(allow ? 'completed' : 'denied')
  }
  expect(ran).toEqual(['a.example'])
})

test('options that belong to code are refused without a reply', () => {
  const wrong = { name: 'x', instructions: 'x', needs: () => [] } as never
  expect(() => agent(wrong)).toThrow(/needs is of code that answers/)
  expect(() => agent({ name: 'x', reply: () => 'x', needs: ['net:*'] as never })).toThrow(/must be a function/)
})

test('code that runs again finds what it kept', async () => {
  const rows = memoryRows()
  const seen: Json[] = []
  const keeper = agent({
    name: 'keeper',
    effect: 'idempotent',
    reply: async (_, { kept, keep, signal }) => {
      seen.push(kept)
      if (kept !== null) return `It is job ${(kept as { job: number }).job}.`
      await keep({ job: 1 })
      await keep({ job: 2 })
      await expect(keep('x'.repeat(100_001))).rejects.toThrow(/at most 100000 bytes/)
      seen.push('kept')
      return new Promise<string>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    },
  })
  const first = startProcess(rows, { agents: [keeper] })
  const { id } = first.runtime.run(keeper, 'go')
  await expect.poll(() => seen.length).toBe(2)
  await first.kill()
  const second = startProcess(rows, { agents: [keeper] })
  await second.runtime.resume()

  expect((await (await second.runtime.attach(id)).result).text).toBe('It is job 2.')
  expect(seen).toEqual([null, 'kept', { job: 2 }])
  await second.runtime.close()
  await rows.drop()
})
