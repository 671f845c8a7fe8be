// What a principal may not use stays out of its reach through every protocol, also in the process that takes over.

import { agent, type Principal, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { startProcess } from '../support/process.ts'
import { memoryRows } from '../support/stores.ts'
import { surfaces } from './support/surfaces.ts'

/** It waits for a person, then publishes. */
function newsroom() {
  const published: string[] = []
  const publish = tool({
    description: 'x',
    input: z.object({}),
    execute: () => {
      published.push('news')
      return 'published'
    },
  })
  const check = tool({ description: 'x', input: z.object({}), execute: () => 'checked' })
  const model = scriptedModel(({ messages }) => {
    const last = messages.findLastIndex(({ role }) => role === 'user')
    const done = messages.slice(last).filter(({ role }) => role === 'tool').length
    return [{ calls: [{ name: 'check', input: {} }] }, { calls: [{ name: 'publish', input: {} }] }][done] ?? 'Over.'
  })
  const grant = { ask: ['tool:check'] }
  const host = agent({ name: 'host', instructions: 'x', model, tools: { publish, check }, grant })
  return { host, published }
}

const WATCHED: Principal = { id: 'ann', scopes: ['start', 'read', 'cancel'], grant: { deny: ['tool:publish'] } }
const FREE: Principal = { id: 'ann', scopes: ['start', 'read', 'cancel'] }

test.each(surfaces)(
  '$name: a principal that may not publish publishes nothing, before and after kill -9 (I1)',
  async (surface) => {
    for (const [principal, expected] of [
      [WATCHED, []],
      [FREE, ['news']],
    ] as const) {
      const rows = memoryRows()
      const { host, published } = newsroom()
      const first = startProcess(rows, { agents: [host], mayFail: true })
      surface.say({ runtime: first.runtime, principal, agent: 'host', smuggled: {} }, 'Go.').catch(() => undefined)
      await expect.poll(() => first.runtime.approvals(), { timeout: 20_000, interval: 5 }).toHaveLength(1)
      await first.kill()
      const second = startProcess(rows, { agents: [host], mayFail: true })
      const [waiting] = await second.runtime.approvals()
      await second.runtime.answer(waiting?.nodeId ?? '', { allow: true })
      const [open] = await second.runtime.resume()
      expect((await open?.result)?.status).toBe('completed')
      expect(published).toEqual(expected)
      await second.runtime.close()
      await rows.drop()
    }
  },
)
