// node bench/sqlite.mjs [park] [resume] [audit] [--small]: what one file of SQLite carries, for docs/capacity.md. Each part is a process
// of its own, so that its CPU and heap are of nothing else. Build the package before: npm run build.
//
//   park     8,000 runs that wait for a person: CPU of the first and of the last 500
//   resume   a process takes up 10,000 such runs: CPU, and for how long nothing else ran
//   audit    `audit --verify` of 3,500 trees with 100 nodes each, and of a tenth of them: CPU, longest stop, heap
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { agent, createRuntime, tool } from 'legate'
import { sqliteStore } from 'legate/store/sqlite'

const { values, positionals } = parseArgs({
  options: { small: { type: 'boolean', default: false }, file: { type: 'string' }, count: { type: 'string' } },
  allowPositionals: true,
})
const ANYTHING = { type: 'object' }
const LOT = 250
const CALLS = 97
const sized = (count) => (values.small ? Math.ceil(count / 100) : count)

const PARTS = {
  park: (file) => tell('park', ask('parkRuns', file, sized(8_000))),
  resume: (file) => {
    ask('parkRuns', file, sized(10_000))
    tell('resume', ask('resumeRuns', file))
  },
  audit: (file) => {
    for (const count of [sized(350), sized(3_500)]) {
      ask('makeTrees', `${file}-${count}`, count)
      tell(`audit ${count}`, { MB: inMB(statSync(`${file}-${count}`).size), ...ask('audit', `${file}-${count}`) })
    }
  },
}
/** What a process of its own does. */
const STEPS = { parkRuns, resumeRuns, makeTrees, audit }

if (values.file === undefined) main(positionals.length === 0 ? Object.keys(PARTS) : positionals)
else console.log(JSON.stringify(await STEPS[positionals[0]](values.file, Number(values.count))))

function main(names) {
  const folder = mkdtempSync(path.join(tmpdir(), 'legate-sqlite-'))
  try {
    for (const name of names) PARTS[name](path.join(folder, name))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function ask(step, file, count = 0) {
  const args = ['--expose-gc', import.meta.filename, step, '--file', file, '--count', String(count)]
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${step} failed: ${stderr}`)
  return JSON.parse(stdout)
}

function tell(name, figures) {
  const told = Object.entries(figures).map(([key, value]) => `${key} ${value}`)
  console.log(`${name.padEnd(12)} ${told.join(', ')}`)
}

async function parkRuns(file, count) {
  const runtime = open(file)
  const costs = []
  for (let at = 0; at < count; at += LOT) {
    const before = process.cpuUsage()
    await Promise.all(Array.from({ length: Math.min(LOT, count - at) }, () => parked(runtime.run(careful(), 'go'))))
    costs.push(msSince(before) / Math.min(LOT, count - at))
  }
  await runtime.close()
  const mean = (list) => (list.reduce((sum, one) => sum + one, 0) / list.length).toFixed(2)
  return { runs: count, 'ms each of the first': mean(costs.slice(0, 2)), 'of the last': mean(costs.slice(-2)) }
}

async function parked(run) {
  for await (const { type } of run) if (type === 'approval-request') return
}

async function resumeRuns(file) {
  const runtime = open(file)
  const stop = watch()
  const before = process.cpuUsage()
  await runtime.resume()
  const cpuMs = Math.round(msSince(before))
  const found = { 'CPU ms': cpuMs, ...stop(), open: (await runtime.approvals({ limit: 1_000_000 })).length }
  await runtime.close()
  return found
}

async function makeTrees(file, count) {
  const runtime = open(file)
  for (let at = 0; at < count; at += 10) {
    const runs = Array.from({ length: Math.min(10, count - at) }, () => runtime.run(busy(), 'go').result)
    for (const { status } of await Promise.all(runs)) if (status !== 'completed') throw new Error(status)
    if (at % 500 === 0) await sleep(1)
  }
  await runtime.close()
  return {}
}

async function audit(file) {
  const runtime = open(file)
  gc()
  const stop = watch()
  const before = process.cpuUsage()
  const { checked, findings } = await runtime.audit({ verify: true })
  const found = { 'CPU ms': Math.round(msSince(before)), ...stop(), nodes: checked.nodes, findings: findings.length }
  await runtime.close()
  return found
}

/** The longest time for which no timer ran, and the most heap that was seen. */
function watch() {
  let [last, longest, heap] = [performance.now(), 0, 0]
  const look = () => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
    heap = Math.max(heap, process.memoryUsage().heapUsed)
  }
  const timer = setInterval(look, 1)
  return () => {
    look()
    clearInterval(timer)
    return { 'longest stop ms': Math.round(longest), 'heap MB': inMB(heap) }
  }
}

function open(file) {
  return createRuntime({ store: sqliteStore(file), agents: [careful(), busy()], engine: { workers: 1_000 } })
}

/** It asks a person. */
function careful() {
  const send = tool({ description: 'Sends.', input: ANYTHING, approval: 'required', execute: () => 'sent' })
  return agent({ name: 'careful', instructions: 'Send.', model: calling('send', 1), tools: { send } })
}

/** Its run has 100 nodes. */
function busy() {
  const look = tool({ description: 'Looks.', input: ANYTHING, effect: 'pure', execute: () => 'seen' })
  const budget = { toolCalls: CALLS }
  return agent({ name: 'busy', instructions: 'Look.', model: calling('look', CALLS), tools: { look }, budget })
}

/** A model that calls a tool so many times, and ends. */
function calling(name, count) {
  return {
    id: `bench/${name}`,
    async *stream({ messages }) {
      const isFirst = messages.at(-1).role !== 'tool'
      if (isFirst) for (let at = 0; at < count; at++) yield { type: 'tool-call', id: `call_${at}`, name, input: {} }
      else yield { type: 'text-delta', text: 'done' }
      yield { type: 'finish', reason: isFirst ? 'tool-calls' : 'stop', usage: null }
    },
  }
}

function msSince(before) {
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}

function inMB(bytes) {
  return Math.round(bytes / 1e6)
}
