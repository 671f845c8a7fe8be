import { once } from 'node:events'
import { agent } from 'legate'
import { askTools } from 'legate/background'
import { serve } from 'legate/server'
import { crashWorker, tellTest, workerRole } from 'legate/testing'
import type { ServingRole } from '../support/serving.ts'
import { call, counted, QUICK, slowed, steppingModel } from './parts.ts'

/** A server, a worker, or both in one process, as its role says. It ends when it is told to: with SIGTERM. */
const { port, tokenFile, workers, isUsual = false }: ServingRole = JSON.parse(workerRole())

const chunks = Array.from({ length: 30 }, (_, at) => `word ${at} – 零 `)

const speaker = agent({ name: 'speaker', instructions: 'Speak.', model: slowed(steppingModel({ chunks }), 10) })

/** Speaks for two seconds. */
const orator = agent({
  name: 'orator',
  instructions: 'Speak.',
  model: slowed(steppingModel({ chunks: [...chunks, ...chunks, ...chunks, ...chunks] }), 16),
})

const helper = agent({
  name: 'helper',
  instructions: 'Help.',
  tools: { look: counted('look', 'pure') },
  model: slowed(steppingModel({ calls: [call('look')] }, { chunks: chunks.slice(0, 8) }), 5),
})

/** Needs a person before it pays, and may not pay twice. */
const payer = agent({
  name: 'payer',
  instructions: 'Pay.',
  tools: { pay: counted('pay', 'effectful', { lastsMs: 5 }) },
  grant: { use: ['tool:pay', 'agent:helper'], ask: ['tool:pay'] },
  subagents: [helper],
  model: slowed(
    steppingModel(
      { calls: [call('pay')] },
      { calls: [call('call_helper', { message: 'Go.' })] },
      { chunks: chunks.slice(0, 8) },
    ),
    5,
  ),
})

const asker = agent({
  name: 'asker',
  instructions: 'Ask.',
  tools: askTools(),
  model: slowed(
    steppingModel({ calls: [call('ask_person', { question: 'Which port?' })] }, { chunks: chunks.slice(0, 8) }),
    5,
  ),
})

const NO_LIMIT = 1_000_000
const limits = {
  startsPerMinute: NO_LIMIT,
  readsPerMinute: NO_LIMIT,
  perAddressPerMinute: NO_LIMIT,
  streamsPerPrincipal: NO_LIMIT,
}

await crashWorker({
  options: { agents: [speaker, orator, helper, payer, asker], engine: { ...(isUsual ? {} : QUICK), workers } },
  drive: async ({ runtime }) => {
    const stop = once(process, 'SIGTERM')
    // A worker that serves nothing and has nothing to do would end by itself.
    const alive = setInterval(() => undefined, 60_000)
    const server = port === null ? undefined : await serve(runtime, { port, localTokenFile: tokenFile, limits })
    tellTest('serving')
    await stop
    clearInterval(alive)
    await server?.close()
  },
})
