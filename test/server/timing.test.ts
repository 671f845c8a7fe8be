import type { Principal } from 'legate'
import { expect, test } from 'vitest'
import { figure } from '../crash/support/figure.ts'
import { isFull } from '../crash/support/full.ts'
import { startServer } from './support/server.ts'

// I9 over HTTP: how long an answer takes says no more about an id than the answer itself.

const ROUNDS = 4_000
const UNKNOWN = '01890000-0000-7000-8000-00000000dead'
const ann: Principal = { id: 'ann', scopes: ['start', 'read'] }
const bob: Principal = { id: 'bob', scopes: ['read', 'history', 'cancel'] }
const PLENTY = { readsPerMinute: 1e9, perAddressPerMinute: 1e9 }

const ROUTES = [
  ['GET', (run: string, talk: string) => [`/v1/runs/${run}`, `/v1/conversations/${talk}/tree`]],
  ['POST', (run: string) => [`/v1/runs/${run}/cancel`]],
] as const

test.skipIf(!isFull)('I9: foreign and unknown ids take the same time over HTTP', { timeout: 600_000 }, async () => {
  await using setting = await startServer({ limits: PLENTY })
  const started = await setting.post(
    '/v1/runs?wait=20',
    { agent: 'greeter', input: 'Hi' },
    { token: await setting.tokenFor(ann) },
  )
  const { runId, conversationId } = (await started.json()) as { runId: string; conversationId: string }
  const token = await setting.tokenFor(bob)
  const ask = async (method: string, path: string): Promise<number> => {
    const begun = performance.now()
    const answer = await fetch(`${setting.server.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(method === 'POST' ? { body: '{}' } : {}),
    })
    await answer.text()
    expect(answer.status).toBe(404)
    return performance.now() - begun
  }
  for (const [method, paths] of ROUTES) {
    const [foreign, unknown] = [paths(runId, conversationId), paths(UNKNOWN, UNKNOWN)]
    for (const [at, path] of foreign.entries()) {
      const times = await inTurns(
        () => ask(method, path),
        () => ask(method, unknown[at] ?? ''),
      )
      const share = shareOfLonger(times.first, times.second)
      // One half: the time of an answer tells nothing. A guess by it would be right in this share of all cases.
      expect(Math.abs(share - 0.5)).toBeLessThan(0.05)
      figure(`time of ids of others, ${method} ${path.replaceAll(/[0-9a-f-]{36}/g, '{id}')}`, words(share))
    }
  }
})

function words(share: number): string {
  return `${ROUNDS} answers each, a foreign id took longer than an unknown one in ${(share * 100).toFixed(1)} %`
}

/** Times of two things, taken by chance one after the other, so that both meet the same machine. */
async function inTurns(first: () => Promise<number>, second: () => Promise<number>) {
  const times = { first: [] as number[], second: [] as number[] }
  for (let round = 0; round < ROUNDS + 20; round++) {
    const isFirst = Math.random() < 0.5
    const one = await (isFirst ? first : second)()
    const other = await (isFirst ? second : first)()
    if (round < 20) continue
    times.first.push(isFirst ? one : other)
    times.second.push(isFirst ? other : one)
  }
  return times
}

/** How often a time of one list is longer than one of the other: the statistic of Mann and Whitney as a share. */
function shareOfLonger(first: readonly number[], second: readonly number[]): number {
  const sorted = second.toSorted((a, b) => a - b)
  const below = (time: number): number => {
    let [from, to] = [0, sorted.length]
    while (from < to) {
      const middle = (from + to) >> 1
      if ((sorted[middle] ?? 0) < time) from = middle + 1
      else to = middle
    }
    return from
  }
  return first.reduce((sum, time) => sum + below(time), 0) / (first.length * second.length)
}
