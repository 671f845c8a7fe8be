import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { runProgram, skipUnlessBuilt } from '../support/program.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { Receiver, verified } from './support/receiver.ts'

beforeEach(skipUnlessBuilt)

/** A server with an agent that needs no model of others. */
const SERVER = `
  import { agent, createRuntime } from 'legate'
  import { serve } from 'legate/server'
  import { sqliteStore } from 'legate/store/sqlite'
  const { LEGATE_PLACE: place, LEGATE_HOOK: url } = process.env
  const model = {
    id: 'test/model',
    async *stream() {
      yield { type: 'text-delta', text: 'Hello.' }
      yield { type: 'finish', reason: 'stop', usage: null }
    },
  }
  const greeter = agent({ name: 'greeter', instructions: 'Greet.', model })
  const runtime = createRuntime({ store: sqliteStore(place + '/rows.db'), agents: [greeter] })
  const webhooks = { allowPrivate: true, retryMs: Array(60).fill(100), leaseMs: 1_500, timeoutMs: 400 }
  const server = await serve(runtime, { port: 0, localTokenFile: place + '/token', webhooks })
  const headers = { authorization: 'Bearer ' + server.token, 'content-type': 'application/json' }
  const post = async (path, body) => {
    const answer = await fetch(server.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    return answer.json()
  }
`

/** Says its pid in the name of the webhook, so that the receiver can kill it. */
const TELLS = `${SERVER}
  const { secret } = await post('/v1/webhooks', { url, types: ['run.ended'] })
  await fetch(url, { method: 'POST', body: JSON.stringify({ type: 'pid', data: { pid: process.pid, secret } }) })
  const { conversationId } = await post('/v1/runs?wait=10', { agent: 'greeter', input: '1' })
  for (const input of ['2', '3']) await post('/v1/conversations/' + conversationId + '/messages?wait=10', { input })
  await new Promise((resolve) => setTimeout(resolve, 15_000))
`

/** Only serves, until the receiver has everything. */
const SERVES = `${SERVER}
  await new Promise((resolve) => setTimeout(resolve, 5_000))
  await server.close()
  await runtime.close()
`

test('kill -9 in the middle of a delivery: another server goes on, with the same message first', async () => {
  await using receiver = await new Receiver().listen()
  const env = { LEGATE_PLACE: tempFolder(onTestFinished), LEGATE_HOOK: receiver.url }
  const facts: { pid?: number; secret?: string } = {}
  receiver.manner = (message, nth) => {
    if (message.body.type === 'pid') Object.assign(facts, message.body.data)
    // The first message: it has come, and nobody will ever know.
    if (nth === 2) process.kill(facts.pid ?? 0, 'SIGKILL')
    return nth === 2 ? 'silent' : 200
  }
  await expect(runProgram(TELLS, env)).rejects.toMatchObject({ signal: 'SIGKILL' })
  const before = receiver.arrived.length
  expect(before).toBe(2)

  await Promise.all([runProgram(SERVES, env), runProgram(SERVES, env)])

  const [first, ...rest] = receiver.arrived.slice(1)
  expect(rest[0]?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
  const ids = rest.map(({ headers }) => headers['webhook-id'])
  expect(new Set(ids).size).toBe(ids.length)
  const runs = rest.map((one) => verified(facts.secret ?? '', one).data['seq'])
  expect(runs).toEqual(runs.toSorted((a, b) => Number(a) - Number(b)))
  expect(ids.length).toBeGreaterThanOrEqual(1)
}, 60_000)
