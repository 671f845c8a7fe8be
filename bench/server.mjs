// The server under load, on loopback only: node bench/server.mjs [readers runs idle drops first lists peers] [--peers FOLDER]
//
// Every measurement has the server in one process and its readers in another. Compare ratios within one run of this
// program, never two runs. `peers` needs a folder with Mastra and LangGraph: see bench/server/peers.md.

import { execFileSync, fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { quantile, readStream, round } from './server/measure.mjs'

const here = import.meta.dirname
const flags = process.argv.slice(2)
const at = flags.indexOf('--peers')
const peersFolder = at === -1 ? undefined : flags[at + 1]
const wanted = flags.filter((word, index) => !word.startsWith('--') && (at === -1 || index !== at + 1))
const isSmall = flags.includes('--small')

/** Fewer of everything, for a test of this program. */
const size = (large, small) => (isSmall ? small : large)

const children = new Set()
const BENCHES = { readers, runs, idle, drops, first, lists, peers }

for (const name of wanted.length > 0 ? wanted : Object.keys(BENCHES)) {
  if (BENCHES[name] === undefined)
    throw new Error(`No measurement "${name}": there are ${Object.keys(BENCHES).join(', ')}.`)
  if (name === 'peers' && peersFolder === undefined) continue
  console.log(`\n${name}`)
  const figures = await BENCHES[name]()
  for (const [what, value] of Object.entries(figures)) console.log(`  ${what.padEnd(34)} ${value}`)
}

/** Many readers of one run. */
async function readers() {
  const count = size(1_000, 20)
  return withHost(async (host) => {
    const run = await host.start(`${size(200, 20)} chunks of 200 at 100 on go`)
    const readers = await openReaders(
      host,
      Array.from({ length: count }, () => ({ path: `/v1/runs/${run}/events` })),
    )
    const before = await host.figures()
    host.go()
    const { frames, gaps, doubled, p50, p99, deltas, tookMs } = await readers.done
    const after = await host.figures()
    return {
      readers: count,
      deliveries: frames,
      'deliveries a second': Math.round((deltas / tookMs) * 1_000),
      'CPU of a delivery, us': round(cpuBetween(before, after) / frames),
      'latency p50, p99, ms': `${p50}, ${p99}`,
      'gaps, doubled': `${gaps}, ${doubled}`,
      'text deltas': deltas,
      'memory of the server, MB': mb(after.rss),
    }
  })
}

/** As many runs as readers, each at 20 chunks a second. */
async function runs() {
  const count = size(1_000, 10)
  return withHost(async (host) => {
    const ids = []
    for (let n = 0; n < count; n++) ids.push(await host.start(`${size(100, 20)} chunks of 20 at 20 on go`))
    const readers = await openReaders(
      host,
      ids.map((id) => ({ path: `/v1/runs/${id}/events` })),
    )
    host.go()
    const { frames, gaps, doubled, p50, p99 } = await readers.done
    const { rss } = await host.figures()
    return {
      runs: count,
      deliveries: frames,
      'latency p50, p99, ms': `${p50}, ${p99}`,
      'gaps, doubled': `${gaps}, ${doubled}`,
      'memory of the server, MB': mb(rss),
    }
  })
}

/** Streams on which nothing happens. */
async function idle() {
  const count = size(10_000, 100)
  return withHost(async (host) => {
    const run = await host.start('2 chunks at 0.001')
    const before = await host.figures()
    const perProcess = 2_500
    for (let left = count; left > 0; left -= perProcess) {
      await openReaders(
        host,
        Array.from({ length: Math.min(left, perProcess) }, () => ({ path: `/v1/runs/${run}/events` })),
        true,
      )
    }
    await pause(size(5_000, 500))
    const settled = await host.figures()
    await pause(size(20_000, 1_000))
    const after = await host.figures()
    return {
      streams: count,
      'memory of a stream, kB': round((settled.rss - before.rss) / count / 1_000),
      'share of a core, %': round((cpuBetween(settled, after) / size(20_000_000, 1_000_000)) * 100),
    }
  })
}

/** Readers that drop at random and come back, while the server is killed twice. */
async function drops() {
  const count = size(2_000, 20)
  const folder = mkdtempSync(path.join(tmpdir(), 'legate-bench-'))
  try {
    let host = await startHost(folder)
    const run = await host.start(`${size(400, 60)} chunks of 20 at 20 on go`)
    const lines = Array.from({ length: count }, () => ({ path: `/v1/runs/${run}/events`, dropEvery: 100 }))
    const readers = await openReaders(host, lines)
    host.go()
    for (let kill = 0; kill < 2; kill++) {
      await pause(size(4_000, 500))
      host.kill()
      host = await startHost(folder, host.port)
      host.go()
    }
    const { gaps, doubled, lasts, wrongTexts, records } = await readers.done
    const last = await host.lastSeq(run)
    const record = recordOf(folder, run)
    await host.stop()
    return {
      readers: count,
      'server killed': 2,
      'lost, doubled, wrong texts': `${gaps}, ${doubled}, ${wrongTexts}`,
      'last event, of all': `${last}, ${lasts.join(' ')}`,
      'as legate log --json has it': records.length === 1 && records[0] === record,
    }
  } finally {
    endReaders()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The hash of all recorded events of a run, as the command line prints them. */
function recordOf(folder, run) {
  const args = [path.join(here, '../dist/cli/main.js'), 'log', run, '--json', '--store', path.join(folder, 'bench.db')]
  const lines = execFileSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 1e9 }).trim().split('\n')
  const hash = createHash('sha256')
  for (const line of lines) hash.update(line)
  return hash.digest('hex')
}

/** The first byte of a run that is started with its stream, and one reader of many deltas. */
async function first() {
  return withHost(async (host) => {
    const bytes = []
    for (let n = 0; n < size(200, 10); n++) bytes.push((await host.streamed('1 chunks')).first)
    const warm = bytes.slice(5)
    const many = []
    for (let n = 0; n < size(14, 6); n++) many.push((await host.streamed('5000 chunks')).whole)
    return {
      'first byte p50, p99, ms': `${round(quantile(warm, 0.5))}, ${round(quantile(warm, 0.99))}`,
      '5,000 deltas to one reader, ms': round(quantile(many.slice(5), 0.5)),
    }
  })
}

/** Lists of one owner in a small store and in a large one. */
async function lists() {
  const { measureLists } = await import('./server/lists.mjs')
  return measureLists(size({ trees: 100_000, owners: 1_000 }, { trees: 200, owners: 4 }))
}

/** One reader against Mastra and the development server of LangGraph. */
async function peers() {
  const { measurePeers } = await import('./server/peers.mjs')
  return withHost((host) => measurePeers(host, peersFolder))
}

async function withHost(measure) {
  const folder = mkdtempSync(path.join(tmpdir(), 'legate-bench-'))
  const host = await startHost(folder)
  try {
    return await measure(host)
  } finally {
    await host.stop()
    endReaders()
    rmSync(folder, { recursive: true, force: true })
  }
}

function endReaders() {
  for (const child of children) child.kill('SIGKILL')
  children.clear()
}

async function startHost(folder, port = 0) {
  const child = fork(path.join(here, 'server/host.mjs'), [folder, String(port)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const { url, token } = await next(child)
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const ask = async (method, where, body) => {
    const answer = await fetch(new URL(where, url), {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (!answer.ok) throw new Error(`${method} ${where}: ${answer.status} ${await answer.text()}`)
    return answer.json()
  }
  return {
    url,
    token,
    port: Number(new URL(url).port),
    start: async (input) => (await ask('POST', '/v1/runs', { agent: 'speaker', input })).runId,
    lastSeq: async (run) => (await ask('GET', `/v1/runs/${run}`)).lastSeq,
    streamed: (input) =>
      readStream(new URL('/v1/runs', url), {
        headers: { ...headers, accept: 'text/event-stream' },
        body: JSON.stringify({ agent: 'speaker', input }),
      }),
    figures: () => {
      const told = next(child)
      child.send('figures')
      return told
    },
    go: () => child.send('go'),
    kill: () => child.kill('SIGKILL'),
    stop: async () => {
      child.send('stop')
      await new Promise((resolve) => child.once('exit', resolve))
    },
  }
}

async function openReaders(host, open, isIdle = false) {
  const child = fork(path.join(here, 'server/readers.mjs'), [], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  children.add(child)
  child.send({ open, port: host.port, token: host.token, isIdle })
  await next(child)
  return { done: isIdle ? undefined : next(child) }
}

function next(child) {
  return new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`A process of the measurement ended with ${code}.`)))
  })
}

function cpuBetween(before, after) {
  return after.cpu.user + after.cpu.system - before.cpu.user - before.cpu.system
}

function mb(bytes) {
  return Math.round(bytes / 1_000_000)
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
