// The server that is measured, in a process of its own: a scripted agent that streams as many chunks as it is asked for.
//
// node host.mjs FOLDER PORT [WORKERS]: prints { url, token, pid } when it listens, and its CPU time and memory when asked.

import path from 'node:path'
import { agent, createRuntime } from 'legate'
import { serve } from 'legate/server'
import { sqliteStore } from 'legate/store/sqlite'

const [folder = '.', port = '0', workers = '1000'] = process.argv.slice(2)

let go = () => undefined
/** All readers are there. */
const word = new Promise((resolve) => {
  go = resolve
})

const FORM = /(\d+) chunks(?: of (\d+))?(?: at ([\d.]+))?( on go)?/
/** "200 chunks of 200 at 20 on go": how many, how long each, how many a second, and whether they wait for the word. */
const model = {
  id: 'bench/speaker',
  async *stream({ messages }) {
    const asked = String(messages.at(-1)?.content ?? '')
    const [, count = '300', length = '20', pace = '0', onGo] = FORM.exec(asked) ?? []
    if (onGo !== undefined) await word
    const begun = Date.now()
    const filler = 'x'.repeat(Math.max(0, Number(length) - 13))
    for (let at = 0; at < Number(count); at++) {
      if (Number(pace) > 0) await until(begun + (at * 1_000) / Number(pace))
      // It begins with the time, from which readers know how late it is.
      yield { type: 'text-delta', text: `${Date.now()}${filler}` }
    }
    yield {
      type: 'finish',
      reason: 'stop',
      usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 },
    }
  },
}
const speaker = agent({ name: 'speaker', instructions: 'Speak.', model })

async function until(moment) {
  const wait = moment - Date.now()
  if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
}

const store = sqliteStore(path.join(folder, 'bench.db'))
const runtime = createRuntime({ store, agents: [speaker], engine: { workers: Number(workers) } })
const server = await serve(runtime, {
  port: Number(port),
  localTokenFile: path.join(folder, 'serve.token'),
  limits: {
    perAddressPerMinute: 1e9,
    streams: 20_000,
    streamsPerPrincipal: 20_000,
    startsPerMinute: 1e9,
    readsPerMinute: 1e9,
  },
})
process.send?.({ url: server.url, token: server.token, pid: process.pid })
process.on('message', (told) => {
  if (told === 'go') go()
  if (told === 'figures') process.send?.({ cpu: process.cpuUsage(), rss: process.memoryUsage().rss })
  if (told === 'stop')
    server.close().then(
      () => process.exit(0),
      () => process.exit(1),
    )
})
