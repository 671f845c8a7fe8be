// What the server sends and allocates for a frame that it delivers: many readers, in a process of their own, of one run.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setImmediate as pause } from 'node:timers/promises'
import { memoryStore } from '../../dist/core/store/memory/index.js'
import { agent, createRuntime } from '../../dist/index.js'
import { serve } from '../../dist/server/index.js'

const READERS = 20
const CHUNKS = 400
const ROUNDS = 4

/** The least of the rounds after the first, which also compiles. */
export async function measureServer() {
  const folder = mkdtempSync(path.join(tmpdir(), 'legate-speed-'))
  const speaker = agent({ name: 'speaker', instructions: 'Speak.', model: { id: 'bench/speaker', stream: speak } })
  const runtime = createRuntime({ store: memoryStore(), agents: [speaker] })
  const server = await serve(runtime, { port: 0, localTokenFile: path.join(folder, 'token'), limits: WIDE })
  const rounds = []
  for (let round = 0; round < ROUNDS; round++) rounds.push(await readAll(runtime, speaker, server))
  await server.close()
  await runtime.close()
  rmSync(folder, { recursive: true })
  const [, ...warm] = rounds
  const least = (name) => Math.round(Math.min(...warm.map((round) => round[name])))
  return { sent: least('sent'), bytes: least('bytes') }
}

const WIDE = { perAddressPerMinute: 1e9, streams: 1_000, streamsPerPrincipal: 1_000, readsPerMinute: 1e9 }

let go
async function* speak() {
  await new Promise((resolve) => {
    go = resolve
  })
  for (let at = 0; at < CHUNKS; at++) {
    yield { type: 'text-delta', text: 'twenty bytes of text' }
    await pause()
  }
  yield FINISH
}

const FINISH = {
  type: 'finish',
  reason: 'stop',
  usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 },
}

async function readAll(runtime, speaker, { url, token }) {
  const run = runtime.run(speaker, 'go')
  const readers = fork(path.join(import.meta.dirname, '../server/readers.mjs'), { execArgv: [] })
  const open = Array.from({ length: READERS }, () => ({ path: `/v1/runs/${run.id}/events` }))
  readers.send({ open, port: Number(new URL(url).port), token })
  await once(readers, 'message')
  gc()
  const before = process.memoryUsage().heapUsed
  go()
  const [{ frames, bytes }] = await once(readers, 'message')
  const allocated = process.memoryUsage().heapUsed - before
  await run.result
  readers.kill()
  return { sent: bytes / frames, bytes: allocated / frames, frames }
}
