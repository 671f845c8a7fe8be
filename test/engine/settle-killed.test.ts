import { readFileSync } from 'node:fs'
import path from 'node:path'
import type { SettleDecision } from 'legate'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { runProgram, skipUnlessBuilt } from '../support/program.ts'
import { tempFolder } from '../support/temp-folder.ts'

beforeEach(skipUnlessBuilt)

/** An agent that pays once and says what came of it. With LEGATE_DIES, its process ends as by `kill -9` once it has paid. */
const AGENT = `
  import { appendFileSync } from 'node:fs'
  import { agent, createRuntime, tool } from 'legate'
  import { jsonStore } from 'legate/store/json'
  import { sqliteStore } from 'legate/store/sqlite'
  const marks = process.env.LEGATE_MARKS
  const model = {
    id: 'test/model',
    async *stream({ messages }) {
      const result = messages.findLast(({ role }) => role === 'tool')
      if (result === undefined) yield { type: 'tool-call', id: 'call_1', name: 'pay', input: { amount: 5 } }
      else yield { type: 'text-delta', text: 'In the end: ' + result.content }
      yield { type: 'finish', reason: result === undefined ? 'tool-calls' : 'stop', usage: null }
    },
  }
  const pay = tool({
    description: 'Pays.',
    input: { type: 'object' },
    execute: (_, { idempotencyKey }) => {
      appendFileSync(marks, idempotencyKey + '\\n')
      if (process.env.LEGATE_DIES === '1') process.kill(process.pid, 'SIGKILL')
      return 'paid by the tool'
    },
  })
  const payer = agent({ name: 'payer', instructions: 'You pay.', tools: { pay }, model })
  const place = process.env.LEGATE_PLACE
  const store = process.env.LEGATE_KIND === 'json' ? jsonStore(place) : sqliteStore(place + '/runs.db')
  const runtime = createRuntime({ store, agents: [payer] })
`

const PAY = `${AGENT}
  await runtime.run(payer, 'go').result
`

/** Goes on with what the killed process left, and tells what is uncertain then. */
const RECOVER = `${AGENT}
  const [run] = await runtime.resume()
  const { status, uncertain } = await run.result
  const inbox = await runtime.inbox()
  console.log(JSON.stringify({ runId: run.id, status, uncertain, inbox: inbox.map(({ type, nodeId }) => [type, nodeId]) }))
  await runtime.close()
`

/** Settles it, lets the run that follows come to its end, and tells of it. */
const SETTLE = `${AGENT}
  const { nodeId, word, runId } = JSON.parse(process.env.LEGATE_WORD)
  const settled = await runtime.settle(nodeId, word, { by: 'ann' })
  await runtime.resume()
  const outcome = settled.runId === null ? null : await (await runtime.attach(settled.runId)).result
  const inbox = await runtime.inbox()
  const { findings } = await runtime.audit()
  const { uncertain } = (await (await runtime.attach(runId)).result)
  console.log(JSON.stringify({ settled, outcome, uncertain, inbox, findings }))
  await runtime.close()
`

const WAYS: readonly (readonly [name: string, word: SettleDecision, text: string | null, paid: number])[] = [
  ['happened', { happened: true, result: { receipt: 7 } }, 'In the end: {"receipt":7}', 1],
  ['not_happened', { happened: false }, 'In the end: paid by the tool', 2],
  ['left', { leave: true }, null, 1],
]

describe.each(['sqlite', 'json'])('I4: kill -9 in the middle of an effect, on a store of %s', (kind) => {
  test.each(WAYS)('another process says %s', async (how, word, text, paid) => {
    const folder = tempFolder(onTestFinished)
    const marks = path.join(folder, 'marks')
    const env = { LEGATE_PLACE: path.join(folder), LEGATE_KIND: kind, LEGATE_MARKS: marks }
    await expect(runProgram(PAY, { ...env, LEGATE_DIES: '1' })).rejects.toMatchObject({ signal: 'SIGKILL' })

    const found = JSON.parse(await runProgram(RECOVER, env))
    const [nodeId] = found.uncertain
    expect(found).toMatchObject({ status: 'completed', inbox: [['uncertain', nodeId]] })
    const said = { nodeId, word, runId: found.runId }
    const told = JSON.parse(await runProgram(SETTLE, { ...env, LEGATE_WORD: JSON.stringify(said) }))

    expect(told).toMatchObject({ settled: { how, obstacle: null }, inbox: [], findings: [], uncertain: [nodeId] })
    expect(told.outcome?.text ?? null).toBe(text)
    expect(told.outcome?.uncertain ?? []).toEqual([])
    const keys = readFileSync(marks, 'utf8').trim().split('\n')
    expect(keys).toHaveLength(paid)
    expect(new Set(keys)).toEqual(new Set([nodeId]))
  })
})
