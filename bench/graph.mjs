#!/usr/bin/env node
// node bench/graph.mjs [--turns 100,1000,10000,100000] [--peer-turns 100,300,1000] [--seconds 600] [--peer-seconds 150]
//   [--only memory,sqlite,MemorySaver,SqliteSaver] [--write]
// How the cost of one conversation grows with its length: a turn, a look for work, pages, contexts and forks. LangGraph's savers
// do the same turns, as far as they come in the time there is. Needs dist, and the peers of the benchmark folder (npm run bench
// -- --peers langchain-store once, or LEGATE_BENCH). --write puts the table into bench/RESULTS.md.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { cpus, tmpdir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

const { values: options } = parseArgs({
  options: {
    turns: { type: 'string', default: '100,1000,10000,100000' },
    'peer-turns': { type: 'string', default: '100,300,1000' },
    seconds: { type: 'string', default: '600' },
    'peer-seconds': { type: 'string', default: '150' },
    only: { type: 'string', default: 'memory,sqlite,MemorySaver,SqliteSaver' },
    worker: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
})
/** Growth is told from here on, where a conversation is that long: before, all of it is warm. */
const BASE = 1_000
const OPERATIONS = [
  'append',
  'look for work',
  'claim',
  'page',
  'page in the middle',
  'context',
  'fork',
  'fork in the middle',
]

if (options.worker === undefined) main()
else console.log(JSON.stringify(await measureAll(options.worker)))

function main() {
  const results = options.only.split(',').map((name) => ({ name, ...inProcess(name) }))
  const report = tables(results)
  console.log(report)
  if (options.write) write(report)
}

function boundsOf(name) {
  const isPeer = name.endsWith('Saver')
  const sizes = (isPeer ? options['peer-turns'] : options.turns).split(',').map(Number)
  return { sizes, seconds: isPeer ? options['peer-seconds'] : options.seconds }
}

/** Every store in a process of its own. */
function inProcess(name) {
  const { sizes, seconds } = boundsOf(name)
  const asked = ['--worker', name, '--turns', sizes.join(), '--seconds', seconds]
  const args = ['--max-old-space-size=6000', '--expose-gc', import.meta.filename, ...asked]
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 1e8 })
  if (status === 0) return JSON.parse(stdout)
  console.error(stderr)
  return { sizes: [], stopped: `ended with ${status}` }
}

/** What each operation costs at each length, in microseconds of CPU. */
async function measureAll(name) {
  const folder = mkdtempSync(path.join(tmpdir(), 'legate-graph-'))
  const talk = name.endsWith('Saver') ? await langGraph(name, folder) : await legate(name, folder)
  const giveUpAt = Date.now() + Number(options.seconds) * 1000
  const sizes = []
  let turns = 0
  try {
    for (const size of options.turns.split(',').map(Number)) {
      while (turns < size && Date.now() < giveUpAt) {
        await talk.turn(turns)
        turns++
      }
      if (turns < size) return { sizes, stopped: turns, bytes: talk.bytes() }
      sizes.push({ size, bytes: talk.bytes(), ...(await talk.measure()) })
      turns = talk.length?.() ?? turns
    }
    return { sizes, stopped: null }
  } finally {
    await talk.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function legate(name, folder) {
  const { agent, createRuntime } = await import('legate')
  const { memoryStore } = await import('legate/store/memory')
  const { sqliteStore } = await import('legate/store/sqlite')
  const { scriptedModel } = await import('legate/testing')
  const file = path.join(folder, 'rows.db')
  const store = name === 'sqlite' ? sqliteStore(file) : memoryStore()
  const who = agent({ name: 'who', instructions: '', model: scriptedModel(() => 'Yes, of course.') })
  const runtime = createRuntime({ store, agents: [who], kinds: { check: { execute: () => 'checked' } } })
  const { conversationId } = await runtime.run(who, question(0)).result
  const talk = await runtime.conversation(conversationId)
  const turn = (at) => runtime.run(who, question(at), { conversationId }).result
  /** A node that is put in, claimed, run and ended, with its turn. */
  const claim = async () => {
    const id = await talk.mutate((graph) => {
      graph.createNode({ kind: 'check', effect: 'pure' })
      return graph.runId
    })
    const run = await runtime.attach(id)
    await run.result
  }
  return {
    turn,
    bytes: () => (name === 'sqlite' ? sizeOf(file) : heapUsed()),
    close: () => runtime.close(),
    async measure() {
      const count = store.conversation(conversationId).turnCount
      const [last] = store.turnsOf(conversationId, { limit: 1 })
      const [middle] = store.turnsOf(conversationId, { last: count >> 1, limit: 1 })
      const answerOf = ({ id }) => store.nodesOf(id).at(-1).id
      const [answer, early] = [answerOf(last), answerOf(middle)]
      const look = { now: Date.now(), limit: 10, kinds: ['agent_message', 'task'], agents: ['who'] }
      return {
        'look for work': await cost(200, () => store.runnable(look)),
        page: await cost(50, () => talk.transcriptPage({ limitTurns: 20 })),
        'page in the middle': await cost(50, () => talk.transcriptPage({ limitTurns: 20, beforeRunId: middle.id })),
        context: await cost(50, () => talk.contextFor(answer, { limitTurns: 50 })),
        fork: await cost(20, () => talk.history.fork(answer)),
        'fork in the middle': await cost(20, () => talk.history.fork(early)),
        append: await cost(50, turn),
        claim: await cost(20, claim),
      }
    },
  }
}

async function langGraph(name, folder) {
  const bench = process.env.LEGATE_BENCH ?? path.join(tmpdir(), 'legate-bench')
  const require = createRequire(path.join(bench, 'peers/langchain-store/deps.mjs'))
  const load = (id) => import(pathToFileURL(require.resolve(id)).href)
  const { StateGraph, MessagesAnnotation, MemorySaver, START } = await load('@langchain/langgraph')
  const { AIMessage } = await load('@langchain/core/messages')
  const file = path.join(folder, 'langgraph.db')
  const { SqliteSaver } = name === 'SqliteSaver' ? await load('@langchain/langgraph-checkpoint-sqlite') : {}
  const checkpointer = name === 'SqliteSaver' ? SqliteSaver.fromConnString(file) : new MemorySaver()
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('answer', () => ({ messages: [new AIMessage('Yes, of course.')] }))
    .addEdge(START, 'answer')
    .compile({ checkpointer })
  const config = { configurable: { thread_id: 't' } }
  const turn = (at) => graph.invoke({ messages: [{ role: 'user', content: question(at) }] }, config)
  let count = 0
  return {
    turn: async (at) => {
      count++
      await turn(at)
    },
    bytes: () => (name === 'SqliteSaver' ? sizeOf(file) : heapUsed()),
    length: () => count,
    close: () => undefined,
    async measure() {
      const { config: last } = await graph.getState(config)
      return {
        append: await cost(3, async (at) => {
          count++
          await turn(at)
        }),
        // It keeps the messages of a thread as one value: to read some is to read all.
        page: await cost(5, async () => (await graph.getState(config)).values.messages.slice(-40)),
        'page in the middle': null,
        context: await cost(5, async () => (await graph.getState(config)).values.messages.slice(-100)),
        fork: await cost(3, () => graph.updateState(last, { messages: [] })),
        'fork in the middle': null,
      }
    },
  }
}

function question(at) {
  return `What about number ${at}, is it like the ones before?`
}

/** The fastest of some batches: a busy machine only adds. */
async function cost(times, operate) {
  let best = Number.POSITIVE_INFINITY
  for (let batch = 0; batch < 5; batch++) {
    const start = process.cpuUsage()
    for (let at = 0; at < times; at++) await operate(at)
    const { user, system } = process.cpuUsage(start)
    best = Math.min(best, (user + system) / times)
  }
  return Math.round(best * 10) / 10
}

function heapUsed() {
  globalThis.gc?.()
  const { heapUsed: heap, external } = process.memoryUsage()
  return heap + external
}

function sizeOf(file) {
  return [file, `${file}-wal`].reduce((sum, one) => sum + (statSync(one, { throwIfNoEntry: false })?.size ?? 0), 0)
}

function tables(results) {
  const cpu = cpus()
  const head = `${new Date().toISOString().slice(0, 10)}, ${cpu[0].model.split(' ').slice(0, 2).join(' ')}, ${cpu.length} cores, Node ${process.version}`
  const blocks = results.map(({ name, sizes, stopped }) => {
    const title = name.endsWith('Saver') ? `LangGraph, ${name}` : `Legate, ${name}`
    const asked = boundsOf(name)
    const columns = asked.sizes.map((size) => `${size.toLocaleString('en-US')} turns`)
    const first = `| µs of CPU | ${columns.join(' | ')} | growth |\n|---|${'---:|'.repeat(columns.length + 1)}`
    const rows = OPERATIONS.flatMap((operation) => row(operation, sizes, asked.sizes))
    const kept = asked.sizes.map((size) => megabytes(sizes.find((one) => one.size === size)?.bytes))
    const note = stopped === null ? '' : `\n\nStopped after ${asked.seconds} s, at ${stopped} turns.`
    return `**${title}**\n\n${first}\n${[...rows, `| kept | ${kept.join(' | ')} |  |`].join('\n')}${note}`
  })
  return [head, ...blocks].join('\n\n')
}

function row(operation, sizes, asked) {
  const found = sizes.filter((one) => typeof one[operation] === 'number')
  if (found.length === 0) return []
  const cells = asked.map((size) => sizes.find((one) => one.size === size)?.[operation]?.toLocaleString('en-US') ?? '-')
  const base = found.find(({ size }) => size >= Math.min(BASE, asked.at(-1) / 10)) ?? found[0]
  const last = found.at(-1)
  const growth = base === last ? '-' : `${(last[operation] / base[operation]).toFixed(1)}x`
  return [`| ${operation} | ${cells.join(' | ')} | ${growth} |`]
}

function megabytes(bytes) {
  return bytes === undefined ? '-' : `${(bytes / 1e6).toFixed(1)} MB`
}

function write(report) {
  const file = path.join(import.meta.dirname, 'RESULTS.md')
  const text = readFileSync(file, 'utf8')
  const [before, rest = ''] = text.split('<!-- graph:start -->')
  const after = rest.split('<!-- graph:end -->')[1] ?? ''
  writeFileSync(file, `${before}<!-- graph:start -->\n${report}\n<!-- graph:end -->${after}`)
}
