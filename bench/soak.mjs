// node --expose-gc bench/soak.mjs [--minutes 60] [--store FILE|postgres://...]: one process works on runs of many kinds for so long, and
// the heap that is left after a collection must not grow. Prints one line a quarter, and exits with 1 where it grows.
//
// Every ten seconds the heap is measured after two collections, with the work going on. A cache fills at first, so the first quarter
// does not count. The heap grows where the least figure of the last quarter is more than 10 % and 4 MB above that of the second.
// Build the package before: npm run build.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { agent, createRuntime, tool } from 'legate'
import { backgroundSubagents } from 'legate/background'
import { postgresStore } from 'legate/store/postgres'
import { sqliteStore } from 'legate/store/sqlite'

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '60' }, store: { type: 'string' } },
})
if (globalThis.gc === undefined) throw new Error('Start it with --expose-gc: the heap counts after a collection.')

const MEASURE_MS = 10_000
const IN_FLIGHT = 8
/** So many ended trees stay in the store: what it holds does not grow either. */
const KEPT = 2_000
const MOST_GROWTH = 1.1
const LEAST_BYTES = 4_000_000

const folder = mkdtempSync(path.join(tmpdir(), 'legate-soak-'))
const place = values.store ?? path.join(folder, 'runs.db')
const store = place.startsWith('postgres') ? postgresStore(place) : sqliteStore(place)
const runtime = createRuntime({ store, agents: agents() })
const endsAt = Date.now() + Number(values.minutes) * 60_000
const sums = { runs: 0, cancelled: 0, approved: 0, failed: 0 }
const samples = []

try {
  await Promise.all([...Array.from({ length: IN_FLIGHT }, (_, at) => work(at)), measure(), clear()])
} finally {
  await runtime.close()
  rmSync(folder, { recursive: true, force: true })
}
judge()

/** A host delegates twice and reads much; another has a child in the background; a third asks a person. */
function agents() {
  const says = (name, script, more = {}) =>
    agent({ name, description: `${name}s.`, instructions: name, model: scripted(script), ...more })
  const search = says('search', () => 'Found.')
  const read = tool({
    description: 'Reads.',
    input: { type: 'object' },
    effect: 'pure',
    execute: () => 'much '.repeat(5_000),
  })
  const send = tool({ description: 'Sends.', input: { type: 'object' }, approval: 'required', execute: () => 'sent' })
  const calls = (...names) => names.map((name) => ({ name, input: name === 'search' ? { message: 'x' } : {} }))
  const lead = says('lead', (isFirst) => (isFirst ? calls('search', 'search', 'read') : 'Done.'), {
    subagents: { search },
    tools: { read },
  })
  const careful = says('careful', (isFirst) => (isFirst ? calls('send') : 'Sent.'), { tools: { send } })
  const spawns = [{ name: 'subagent_spawn', input: { name: 'search', prompt: 'Look.' } }]
  const boss = says('boss', (isFirst) => (isFirst ? spawns : 'It works.'), {
    tools: backgroundSubagents({ agent: search }),
  })
  return [lead, careful, boss, search]
}

/** A model that calls tools first and speaks then, in small pieces. */
function scripted(script) {
  return {
    id: 'soak/model',
    async *stream({ messages }) {
      const said = script(messages.at(-1).role !== 'tool')
      if (typeof said === 'string') for (const word of said.split(' ')) yield { type: 'text-delta', text: `${word} ` }
      else for (const [at, call] of said.entries()) yield { type: 'tool-call', id: `call_${at}`, ...call }
      yield { type: 'finish', reason: typeof said === 'string' ? 'stop' : 'tool-calls', usage: null }
    },
  }
}

async function work(number) {
  const [lead, careful, boss] = agents()
  let conversationId
  for (let turn = 0; Date.now() < endsAt; turn++) {
    const kind = (turn + number) % 5
    const owner = `owner ${number % 3}`
    if (kind === 0) await cancelled(runtime.run(lead, 'go', { owner }))
    else if (kind === 1) await approved(runtime.run(careful, 'go', { owner }))
    else if (kind === 2) await ended(runtime.run(boss, 'go', { owner }))
    else {
      // A talk of twenty turns, then another one.
      const goesOn = conversationId !== undefined && turn % 50 < 40
      const run = runtime.run(lead, 'go', goesOn ? { owner, conversationId } : { owner })
      conversationId = (await ended(run)).conversationId
    }
    // A process that is never idle has no time for others either.
    await sleep(1)
  }
}

async function ended(run) {
  const outcome = await run.result
  sums.runs++
  if (outcome.status !== 'completed' && outcome.status !== 'cancelled') sums.failed++
  return outcome
}

async function cancelled(run) {
  for await (const event of run) if (event.type === 'delegation-start') break
  await run.cancel('The soak cancels some.')
  await ended(run)
  sums.cancelled++
}

async function approved(run) {
  for await (const event of run) {
    if (event.type !== 'approval-request') continue
    await runtime.answer(event.nodeId, { allow: true })
    break
  }
  await ended(run)
  sums.approved++
}

async function clear() {
  while (Date.now() < endsAt) {
    await sleep(5_000)
    await runtime.prune({ keep: KEPT })
  }
}

async function measure() {
  while (Date.now() < endsAt) {
    await sleep(MEASURE_MS)
    globalThis.gc()
    globalThis.gc()
    samples.push(process.memoryUsage().heapUsed)
  }
}

function judge() {
  const size = Math.floor(samples.length / 4)
  if (size === 0) throw new Error('Too short: give it --minutes 2 at least.')
  const quarters = Array.from({ length: 4 }, (_, at) =>
    samples.slice(at * size, at === 3 ? undefined : (at + 1) * size),
  )
  const least = quarters.map((some) => Math.min(...some))
  for (const [at, some] of quarters.entries()) {
    console.log(`quarter ${at + 1}: least heap ${mega(least[at])} MB, most ${mega(Math.max(...some))} MB`)
  }
  console.log(`${sums.runs} runs, ${sums.cancelled} cancelled, ${sums.approved} approved, ${sums.failed} failed`)
  const [, second = 0, , last = 0] = least
  const grows = last > second * MOST_GROWTH && last - second > LEAST_BYTES
  console.log(grows ? 'The heap grows.' : 'The heap is flat.')
  process.exitCode = grows || sums.failed > 0 ? 1 : 0
}

function mega(bytes) {
  return (bytes / 1e6).toFixed(1)
}
