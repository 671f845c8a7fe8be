// Lists of one owner over HTTP, in a store of many owners and in a small one: they must cost the same.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createRuntime } from 'legate'
import { serve } from 'legate/server'
import { sqliteStore } from 'legate/store/sqlite'
import { quantile, round } from './measure.mjs'
import { clerk, fillStore, NODES_OF_TREE } from './trees.mjs'

/** Measures both, and their ratio. */
export async function measureLists({ trees, owners }) {
  // Both have a full page for each owner.
  const small = await measure({ trees: 100, owners: 2 })
  const large = await measure({ trees, owners })
  return {
    'nodes, owners': `${trees * NODES_OF_TREE}, ${owners}`,
    'filled in, s': round(large.filledMs / 1_000),
    'compared with a store of': `${small.trees * NODES_OF_TREE} nodes`,
    'GET /v1/runs p50, p99, ms': both(large.runs, small.runs),
    'a transcript p50, p99, ms': both(large.thread, small.thread),
  }
}

function both(large, small) {
  const words = [0.5, 0.99].map((share) => {
    const [one, other] = [quantile(large, share), quantile(small, share)]
    return `${round(one)} (${round(one / other)}x)`
  })
  return words.join(', ')
}

async function measure({ trees, owners, rounds = 300 }) {
  const folder = mkdtempSync(path.join(tmpdir(), 'legate-lists-'))
  const store = sqliteStore(path.join(folder, 'lists.db'))
  const begun = performance.now()
  const conversationId = await fillStore(store, { trees, owners })
  const filledMs = performance.now() - begun
  const runtime = createRuntime({ store, agents: [clerk] })
  const authenticate = () => ({ id: 'owner-1', scopes: ['read'] })
  const server = await serve(runtime, {
    port: 0,
    localToken: false,
    authenticate,
    limits: { readsPerMinute: 1e9, perAddressPerMinute: 1e9 },
  })
  try {
    const runs = await times(`${server.url}/v1/runs`, rounds)
    const thread = await times(`${server.url}/v1/conversations/${conversationId}/transcript`, rounds)
    return { trees, filledMs, runs, thread }
  } finally {
    await server.close()
    await runtime.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function times(url, rounds) {
  const taken = []
  for (let n = 0; n < rounds + 20; n++) {
    const begun = performance.now()
    const answer = await fetch(url, { headers: { authorization: 'Bearer x' } })
    await answer.arrayBuffer()
    if (!answer.ok) throw new Error(`${url}: ${answer.status}`)
    if (n >= 20) taken.push(performance.now() - begun)
  }
  return taken
}
