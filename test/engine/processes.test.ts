import { agent } from 'legate'
import { scriptedModel } from 'legate/testing'
import { afterEach, expect, test } from 'vitest'
import { startProcess } from '../support/process.ts'
import { memoryRows } from '../support/stores.ts'

const rows = memoryRows()
afterEach(() => rows.drop())

test('a runtime tells which processes run nodes of its store, and which of them are gone', async () => {
  const idle = agent({ name: 'idle', instructions: '', model: scriptedModel([]) })
  const [first, second] = [startProcess(rows, { agents: [idle] }), startProcess(rows, { agents: [idle] })]
  await first.runtime.resume()

  expect(await second.runtime.processes()).toMatchObject([{ pid: process.pid, isAlive: true }])

  await first.kill()

  expect(await second.runtime.processes()).toMatchObject([{ pid: process.pid, isAlive: false }])
  await second.runtime.close()
})
