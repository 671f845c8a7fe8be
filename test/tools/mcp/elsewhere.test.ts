// A server that starts in one process and not in another: the nodes go where it starts.

import { createRuntime } from 'legate'
import { mcpServer } from 'legate/mcp'
import { sqliteStore } from 'legate/store/sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { tempFolder } from '../../support/temp-folder.ts'
import { caller, mark, noneRunning, oddServer } from './support.ts'

const CALL: [string, unknown] = ['all__echo', { message: 'x' }]

function broken() {
  return caller({ all: mcpServer({ command: 'node', args: ['/nowhere/server.mjs'], required: true }) }, [CALL])
}

function open(file: string, { who }: ReturnType<typeof caller>) {
  const runtime = createRuntime({ store: sqliteStore(file), agents: [who], engine: { sweepMs: 50 } })
  onTestFinished(() => runtime.close())
  return runtime
}

test('a source that fails three times in one process frees its nodes for others, and the list of processes says so', async () => {
  const file = `${tempFolder()}/runs.db`
  const word = mark()
  const healthy = open(file, caller({ all: oddServer('x', { args: [word], required: true }) }, [CALL]))
  await healthy.resume()
  const sick = broken()
  const runtime = open(file, sick)

  const run = runtime.run(sick.who, 'go')
  const warnings: string[] = []
  for await (const event of run) if (event.type === 'warning') warnings.push(event.message)

  expect((await run.result).status).toBe('completed')
  expect(warnings).toEqual([expect.stringContaining('Another process goes on with it.')])
  const health = async () => (await runtime.processes()).flatMap(({ sources }) => sources)
  const failing = { name: 'all', failures: 3, leaves: ['caller'], error: expect.stringMatching(/./) }
  const working = { name: 'all', failures: 0, leaves: [], error: null }
  await expect
    .poll(health, { timeout: 10_000 })
    .toEqual(expect.arrayContaining([expect.objectContaining(failing), expect.objectContaining(working)]))
  await noneRunning(word)
})

test('where no other process could run it, a source that does not start ends the run after one try', async () => {
  const sick = broken()
  const runtime = open(`${tempFolder()}/runs.db`, sick)

  const { status, error } = await runtime.run(sick.who, 'go').result

  expect([status, error?.code]).toEqual(['unavailable', 'unavailable'])
})
