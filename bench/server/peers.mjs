// Equal requests to Mastra and to the development server of LangGraph, each in a process of its own. LangGraph's server for
// production needs a licence, so only the development one can be compared. See peers.md for the folder.

import { spawn } from 'node:child_process'
import path from 'node:path'
import { quantile, readStream, round } from './measure.mjs'

const WARM_UPS = 5
const ROUNDS = 9

/** Medians of all three, in turns, and their ratios to ours. */
export async function measurePeers(host, folder) {
  const mastra = await startPeer({ folder, name: 'mastra', ready: 'ready', port: 4911 })
  const langgraph = await startPeer({ folder, name: 'langgraph', ready: 'Server running', port: 4912 })
  try {
    const ask = {
      legate: (count) => host.streamed(`${count} chunks`),
      mastra: (count) =>
        post(4911, '/api/agents/x/stream', { messages: [{ role: 'user', content: `${count} chunks` }] }),
      langgraph: (count) =>
        post(4912, '/runs/stream', { assistant_id: 'x', input: { text: `${count} chunks` }, stream_mode: ['custom'] }),
    }
    return Object.assign(
      {},
      ...(await [300, 5_000].reduce(async (before, count) => [...(await before), await compare(ask, count)], [])),
    )
  } finally {
    mastra.kill('SIGKILL')
    langgraph.kill('SIGKILL')
  }
}

async function compare(ask, count) {
  const times = { legate: [], mastra: [], langgraph: [] }
  for (let round = 0; round < WARM_UPS + ROUNDS; round++) {
    for (const [name, list] of Object.entries(times)) {
      const taken = await ask[name](count)
      if (round >= WARM_UPS) list.push(taken)
    }
  }
  const whole = (name) =>
    quantile(
      times[name].map((one) => one.whole),
      0.5,
    )
  const first = (name) =>
    quantile(
      times[name].map((one) => one.first),
      0.5,
    )
  const lines = Object.keys(times).map((name) => [
    `${count} deltas, ${name}`,
    `${round(whole(name))} ms (${round(whole(name) / whole('legate'))}x), first byte ${round(first(name))} ms`,
  ])
  return Object.fromEntries(lines)
}

function post(port, where, body) {
  return readStream(new URL(where, `http://127.0.0.1:${port}`), {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

/** Starts the peer's own `start` script: PORT says where it listens. */
async function startPeer({ folder, name, ready, port }) {
  const env = { ...process.env, PORT: String(port), LANGSMITH_TRACING: 'false' }
  const child = spawn('npm', ['start', '--silent'], { cwd: path.join(folder, name), env, detached: true })
  await new Promise((resolve, reject) => {
    const take = (text) => String(text).includes(ready) && resolve()
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    child.once('exit', (code) => reject(new Error(`${name} ended with ${code}.`)))
  })
  return { kill: () => process.kill(-child.pid, 'SIGKILL') }
}
