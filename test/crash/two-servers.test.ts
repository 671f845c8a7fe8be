import type { RunEvent } from 'legate'
import type { LegateClient } from 'legate/client'
import type { WorkerProcess } from 'legate/testing'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { tempFolder } from '../support/temp-folder.ts'
import { useCounter } from './support/counter.ts'
import { figure } from './support/figure.ts'
import { isFull } from './support/full.ts'
import { freePort, ServingCase } from './support/serving.ts'

const APPROVALS = isFull ? 200 : 9
const counter = await useCounter()
const tokens = tempFolder(afterAll)

/** Two servers that run nothing, and a worker that serves nothing, on one store. */
async function threeProcesses() {
  const serving = new ServingCase(counter, tokens)
  onTestFinished(() => serving.crash.drop())
  const [portA, portB] = [await freePort(), await freePort()]
  const startA = () => serving.start({ port: portA, workers: 0, isUsual: true })
  const startB = () => serving.start({ port: portB, workers: 0, isUsual: true })
  const startWorker = () => serving.start({ port: null, workers: 8, isUsual: true })
  const [a, b, worker] = await Promise.all([startA(), startB(), startWorker()])
  return { serving, a, b, worker, portA, portB, startWorker, onA: serving.client(portA), onB: serving.client(portB) }
}

/** Reads a run to its end in the background. */
function reading(client: LegateClient, runId: string, after = 0) {
  const events: RunEvent[] = []
  const done = (async () => {
    for await (const event of client.events(runId, { after })) events.push(event)
  })()
  done.catch(() => undefined)
  const has = (type: RunEvent['type']) => events.some((event) => event.type === type)
  return { events, done, has, hears: () => has('text-delta') || has('live') }
}

type Read = ReturnType<typeof reading>

/** The recorded events that a reader has. */
function stored({ events }: Read) {
  return events.filter(({ seq }) => Number.isInteger(seq))
}

async function kill(serving: ServingCase, worker: WorkerProcess): Promise<void> {
  worker.signal('SIGKILL')
  await serving.crash.ended(worker)
}

/** What a reader has heard of the last message before it was there. */
function lastWords({ events }: Read): string {
  let text = ''
  for (const event of events) {
    if (event.type === 'reset' || event.type === 'retry') text = ''
    if (event.type === 'live') text = event.text
    if (event.type === 'text-delta') text = event.cumulative === true ? event.text : text + event.text
  }
  return text
}

test('start on A, read on both, answer on B, cancel on A; a worker elsewhere does the work', async () => {
  const { serving, a, b, worker, onA, onB } = await threeProcesses()
  const spoken = await onA.run('orator', 'Go.')
  const readers = [reading(onA, spoken.runId), reading(onB, spoken.runId)]
  await expect.poll(() => readers.every((reader) => reader.hears()), { timeout: 10_000 }).toBe(true)
  const late = reading(onB, spoken.runId)
  await Promise.all([...readers, late].map(({ done }) => done))
  const whole = (await onA.result(spoken.runId)).text

  expect(whole).toContain('word 29')
  for (const reader of [...readers, late]) {
    expect(stored(reader)).toEqual((await onA.eventPage(spoken.runId)).events)
    expect(whole.startsWith(lastWords(reader))).toBe(true)
    expect(lastWords(reader)).not.toBe('')
  }
  expect(late.events.find(({ type }) => type === 'live' || type === 'text-delta')?.type).toBe('live')

  const paid = await onA.run('payer', 'Go.')
  const watching = reading(onB, paid.runId)
  await expect.poll(() => watching.has('approval-request'), { timeout: 10_000 }).toBe(true)
  const [{ nodeId, seen } = { nodeId: '', seen: '' }] = (await onB.approvals()).approvals
  await onB.approve(nodeId, { allow: true, seen })
  await expect(onA.approve(nodeId, { allow: false, seen })).rejects.toMatchObject({ status: 409 })
  expect(await onA.result(paid.runId)).toMatchObject({ status: 'completed' })
  await watching.done

  const asked = await onB.run('asker', 'Go.')
  await expect.poll(async () => (await onA.questions()).questions.length, { timeout: 10_000 }).toBe(1)
  const waiting = reading(onB, asked.runId)
  await onA.cancel(asked.runId, 'enough')
  expect(await onB.result(asked.runId)).toMatchObject({ status: 'cancelled' })
  await waiting.done
  await serving.stop(worker, a, b)
  await serving.crash.conclude()
})

test('a worker that is killed has a successor, and readers of a killed server move to the other one', async () => {
  const { serving, a, b, worker, portA, portB, startWorker, onB } = await threeProcesses()
  let port = portA
  const moving = serving.client(() => port)
  const { runId } = await moving.run('orator', 'Go.', { key: 'one' })
  const readers = [reading(moving, runId), reading(moving, runId), reading(onB, runId)]
  await expect.poll(() => readers.every((reader) => reader.hears()), { timeout: 10_000 }).toBe(true)
  await kill(serving, worker)
  const next = await startWorker()
  const before = readers.map(({ events }) => events.length)
  const goesOn = () => readers.every(({ events }, at) => events.length > (before[at] ?? 0) + 2)
  await expect.poll(goesOn, { timeout: 10_000 }).toBe(true)
  await kill(serving, a)
  port = portB
  await Promise.all(readers.map(({ done }) => done))

  expect(await moving.run('orator', 'Go.', { key: 'one' })).toMatchObject({ runId, state: 'ended' })
  const { events } = await onB.eventPage(runId)
  const { text } = await onB.result(runId)
  for (const reader of readers) {
    expect(stored(reader)).toEqual(events)
    expect(text.startsWith(lastWords(reader))).toBe(true)
  }
  await serving.stop(next, b)
  await serving.crash.conclude()
})

test('an approval on a server wakes the worker soon', async () => {
  const { serving, a, b, worker, onA, onB } = await threeProcesses()
  const took: number[] = []
  for (let n = 0; n < APPROVALS; n++) {
    const { runId } = await onA.run('payer', 'Go.')
    const find = async () => (await onB.approvals()).approvals.find((approval) => approval.runId === runId)
    await expect.poll(async () => (await find()) !== undefined, { timeout: 10_000 }).toBe(true)
    const { nodeId = '', seen = '' } = (await find()) ?? {}
    const said = Date.now()
    await onB.approve(nodeId, { allow: true, seen })
    await onA.result(runId)
    took.push(((await onA.nodeInfo(nodeId)).startedAt ?? 0) - said)
  }
  took.sort((x, y) => x - y)
  const [p50 = 0, p95 = 0] = [took[Math.floor(took.length / 2)], took[Math.floor(took.length * 0.95)]]
  figure('approval in another process', `p50 ${p50} ms, p95 ${p95} ms`)

  expect(p50).toBeGreaterThanOrEqual(0)
  // The goal is 150 ms; other tests run beside this one.
  expect(p50).toBeLessThan(600)
  await serving.stop(worker, a, b)
  await serving.crash.conclude()
})
