import { setTimeout as sleep } from 'node:timers/promises'
import { type AnyAgent, agent, isLegateError, type Run, type Runtime, tool } from 'legate'
import type { Message } from 'legate/models'
import { type CrashWorker, countEffect, crashWorker, scriptedModel, tellTest, workerRole } from 'legate/testing'
import { machineMs, writeLine } from '../../../src/testing/crash/failpoints.ts'
import { ANYTHING, call, counted } from '../../crash/programs/parts.ts'
import type { CrewRole } from '../support/crew-role.ts'
import type { CancelLine, ReadLine } from '../support/history.ts'

/**
 * One of several processes on one database. A job is a run three levels deep: the last one pays, asks a person first, or waits
 * until it is cancelled. A job has a key, so that it is begun once, whoever begins it.
 */
const role = JSON.parse(workerRole()) as CrewRole
if (role.aheadMs !== 0) setClock(role.aheadMs)

/** The words of a job. Every fifth asks a person, every fifth is cancelled. */
function wordsOf(job: number): string {
  return { 3: 'sign', 4: 'wait' }[job % 5] ?? 'pay'
}

const wait = tool({
  description: 'Waits until it is stopped.',
  input: ANYTHING,
  effect: 'pure',
  execute: async (_, { signal }) => {
    await sleep(60_000, undefined, { signal })
    return 'nobody came.'
  },
})

const leaf = agent({
  name: 'leaf',
  instructions: 'Work.',
  grant: { ask: ['tool:sign'] },
  tools: { pay: counted('pay', 'effectful', { lastsMs: 5 }), sign: counted('sign', 'effectful'), wait },
  model: working((words) => call(words)),
})
const mid = host('mid', leaf)
const top = host('top', mid)

function host(name: string, below: AnyAgent): AnyAgent {
  return agent({
    name,
    instructions: 'Delegate.',
    subagents: { ask: { agent: below, briefing: 'none' } },
    model: working((message) => call('ask', { message })),
  }) as AnyAgent
}

/** Calls once with the last words of its user, then is done. */
function working(calls: (words: string) => ReturnType<typeof call>) {
  return scriptedModel(async ({ messages, path }) => {
    await countEffect('model', path.join('/'))
    await sleep(3)
    return messages.some(({ role: from }) => from === 'tool') ? 'done' : { calls: [calls(wordsIn(messages))] }
  })
}

function wordsIn(messages: readonly Message[]): string {
  const said = JSON.stringify(messages.findLast(({ role: from }) => from === 'user')?.content ?? '')
  return /pay|sign|wait/.exec(said)?.[0] ?? 'pay'
}

/** How often it looks whether all is over. */
const LOOK_MS = 500
/** How long after the other a lane of jobs begins. */
const RAMP_MS = 30
/** How often it reads on. */
const READ_MS = 250
/** How many events a reader asks for at once. */
const PAGE = 20

const quiet = () => undefined
await crashWorker({
  options: {
    agents: [top],
    engine: { leaseMs: role.leaseMs, sweepMs: role.sweepMs, graceMs: 500, workers: role.workers },
    logger: { debug: quiet, info: quiet, warn: quiet, error: quiet },
  },
  drive: async (worker) => {
    let isOver = false
    const aside = [readAll(worker, () => isOver), ...(role.begins ? [answerAll(worker.runtime, () => isOver)] : [])]
    if (role.begins) await beginAll(worker.runtime)
    while (!(await hasEnded(worker))) await sleep(LOOK_MS)
    isOver = true
    await Promise.all(aside)
  },
})

async function hasEnded({ store }: CrashWorker): Promise<boolean> {
  if ((await store.openTurns(1)).length > 0) return false
  return (await store.roots({ limit: role.jobs })).length >= role.jobs
}

async function beginAll(runtime: Runtime): Promise<void> {
  let next = 0
  const lane = async (_: unknown, at: number) => {
    // A process that has just started compiles its code: many runs at once would all wait for that.
    await sleep(at * RAMP_MS)
    while (next < role.jobs) await oneJob(runtime, next++)
  }
  await Promise.all(Array.from({ length: role.width }, lane))
}

async function oneJob(runtime: Runtime, job: number): Promise<void> {
  const words = wordsOf(job)
  await patiently(async () => {
    const run = runtime.run(top, words, { key: `job-${job}`, title: `job-${job}` })
    run.result.catch(quiet)
    if (words === 'wait') await cancelSoon(run, job >= role.warmUp)
    await run.result
  })
  tellTest(`ended ${job}`)
}

/** Cancels a run at some moment of its life, and notes how long its tree took to end. */
async function cancelSoon(run: Run, isMeasured: boolean): Promise<void> {
  for await (const _ of run) break
  await sleep(Math.random() * 400)
  const began = performance.now()
  await run.cancel('Enough.')
  await run.result
  if (isMeasured) note({ type: 'cancel', pid: process.pid, ms: performance.now() - began })
}

/** Does it again while the database is away; a job has a key, and a run that was cancelled is cancelled. */
async function patiently(act: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await act()
    } catch (error) {
      if (!isLegateError(error, 'store_busy')) throw error
      await sleep(100)
    }
  }
}

/** Plays the person who is asked; another process may play them too, and be faster. */
async function answerAll(runtime: Runtime, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await patiently(async () => {
      for (const { nodeId } of await runtime.approvals()) {
        await runtime.answer(nodeId, { allow: true }).catch(unlessLate)
      }
    })
    await sleep(50)
  }
}

function unlessLate(error: unknown): void {
  if (!isLegateError(error, 'conflict') && !isLegateError(error, 'not_found')) throw error
}

/** Reads some trees while others write them, each on from where it stopped. */
async function readAll({ store }: CrashWorker, isOver: () => boolean): Promise<void> {
  const seen = new Map<string, number>()
  for (let isLast = false; !isLast; ) {
    isLast = isOver()
    if (seen.size < role.reads) await patiently(() => findJobs(store, seen))
    for (const [rootId, after] of seen) {
      await patiently(async () => {
        seen.set(rootId, await readOn({ store }, rootId, after))
      })
    }
    await sleep(READ_MS)
  }
}

/** Finds the trees that are to be read. They are the first that are begun, so they are found while there are few. */
async function findJobs(store: CrashWorker['store'], seen: Map<string, number>): Promise<void> {
  for (const { id, title } of await store.roots({ limit: role.jobs })) {
    if (Number(title?.slice('job-'.length)) < role.reads) seen.set(id, seen.get(id) ?? 0)
  }
}

async function readOn({ store }: Pick<CrashWorker, 'store'>, rootId: string, after: number): Promise<number> {
  const asked = machineMs()
  const page = await store.events(rootId, after, PAGE)
  const answered = machineMs()
  const events = page.map(({ seq, body }) => [seq, body.type] as const)
  const reader = `reader of ${process.pid}`
  note({ type: 'read', pid: process.pid, reader, rootId, asked, answered, after, events, isFull: page.length === PAGE })
  return page.at(-1)?.seq ?? after
}

function note(line: ReadLine | CancelLine): void {
  writeLine(line as never)
}

/** All clocks that this process can be asked for; not the one that it measures with. */
function setClock(aheadMs: number): void {
  const { now } = Date
  Date.now = () => now() + aheadMs
  Object.defineProperty(performance, 'timeOrigin', { value: performance.timeOrigin + aheadMs })
}
