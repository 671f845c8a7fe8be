import type { Principal } from 'legate'
import { describe, expect, test } from 'vitest'
import { patient } from './support/patient.ts'
import { head, RawConnection } from './support/raw.ts'
import { greeter, type Setting, startServer } from './support/server.ts'

const ann: Principal = { id: 'ann', scopes: ['start', 'read', 'history', 'approve'] }
const UNKNOWN = '01890000-0000-7000-8000-000000000000'

describe('the starts of a minute', () => {
  test.each([
    ['fork', { nodeId: UNKNOWN }],
    ['retry', { nodeId: UNKNOWN }],
    ['rerun', { nodeId: UNKNOWN }],
    ['edit', { nodeId: UNKNOWN, content: 'x' }],
    ['merge', { laneIds: [UNKNOWN] }],
  ])('count %s too', async (name, body) => {
    await using setting = await startServer({ limits: { startsPerMinute: 2 } })
    const token = await setting.tokenFor(ann)
    const change = () => setting.post(`/v1/conversations/${UNKNOWN}/${name}`, body, { token })

    expect([(await change()).status, (await change()).status, (await change()).status]).toEqual([404, 404, 429])
    expect((await setting.post('/v1/runs', { agent: 'greeter', input: 'x' }, { token })).status).toBe(429)
    expect((await setting.get('/v1', { token })).status).toBe(200)
  })

  test('count words on uncertain calls, and answers that a chat wants anew', async () => {
    await using setting = await startServer({ limits: { startsPerMinute: 2 } })
    const token = await setting.tokenFor(ann)
    const chat = (trigger: string) => {
      const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hello.' }] }]
      return setting.post('/ai-sdk/greeter', { id: 'chat-1', messages, trigger }, { token })
    }

    const said = await chat('submit-message')
    expect([said.status, (await said.text()).length > 0]).toEqual([200, true])
    expect(
      (await setting.post(`/v1/uncertain/${UNKNOWN}`, { leave: true, seen: '0'.repeat(64) }, { token })).status,
    ).toBe(404)
    expect((await chat('regenerate-message')).status).toBe(429)
  })

  test('let a fork that starts a run through only as often as they say', async () => {
    await using setting = await startServer({ limits: { startsPerMinute: 4 } })
    const token = await setting.tokenFor(ann)
    const begun = await setting.post('/v1/runs?wait=10', { agent: 'greeter', input: 'x' }, { token })
    const { runId, conversationId } = (await begun.json()) as { runId: string; conversationId: string }
    const { nodes } = (await (await setting.get(`/v1/runs/${runId}/nodes`, { token })).json()) as {
      nodes: { id: string }[]
    }
    const fork = (key: string) =>
      setting.post(`/v1/conversations/${conversationId}/fork`, { nodeId: nodes[0]?.id, key }, { token })

    const statuses: number[] = []
    for (const key of ['a', 'b', 'c', 'd', 'e']) statuses.push((await fork(key)).status)
    expect(statuses).toEqual([200, 200, 200, 429, 429])
  })
})

interface Begun {
  readonly runId: string
}

async function begin(setting: Setting, token: string): Promise<string> {
  const answer = await setting.post('/v1/runs', { agent: 'patient', input: 'x' }, { token })
  return ((await answer.json()) as Begun).runId
}

const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

describe('who waits for an outcome', () => {
  test('does not get it with a token that was revoked meanwhile', async () => {
    const { slow, go } = patient()
    await using setting = await startServer({}, { agents: [slow] })
    const [token, other] = [await setting.tokenFor(ann), await setting.tokenFor(ann)]
    const runId = await begin(setting, token)
    const polls = [
      setting.get(`/v1/runs/${runId}/result?wait=20`, { token }),
      setting.post('/v1/runs?wait=20', { agent: 'patient', input: 'y' }, { token }),
    ]
    const kept = setting.get(`/v1/runs/${runId}/result?wait=20`, { token: other })
    await later(1_200)
    // Revoked by another process: nobody tells this server.
    await setting.runtime.store.registry.drop('token', token.slice(4, 20))
    go()

    for (const answer of await Promise.all(polls)) {
      expect(answer.status).toBe(401)
      expect(await answer.text()).not.toMatch('At last.')
    }
    expect(await (await kept).text()).toMatch('At last.')
  })

  test('is counted like a stream, and one too many begins nothing', async () => {
    const { slow, go } = patient()
    const limits = { streamsPerPrincipal: 2 }
    await using setting = await startServer({ limits }, { agents: [slow, greeter] })
    const token = await setting.tokenFor(ann)
    const runId = await begin(setting, token)
    const polls = [1, 2].map(() => setting.get(`/v1/runs/${runId}/result?wait=20`, { token }))
    await later(300)

    const refused = await setting.get(`/v1/runs/${runId}/result?wait=20`, { token })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5'])
    expect((await setting.get(`/v1/runs/${runId}/events`, { token })).status).toBe(429)
    const started = await setting.post('/v1/runs?wait=1', { agent: 'greeter', input: 'x' }, { token })
    expect(started.status).toBe(429)
    expect(await setting.runtime.runs({ agent: 'greeter' })).toEqual([])
    expect((await setting.get(`/v1/runs/${runId}/result`, { token })).status).toBe(202)
    const bob = { token: await setting.tokenFor({ ...ann, id: 'bob' }) }
    expect((await setting.post('/v1/runs?wait=10', { agent: 'greeter', input: 'x' }, bob)).status).toBe(200)
    go()
    for (const answer of await Promise.all(polls)) expect(answer.status).toBe(200)
    expect((await setting.get(`/v1/runs/${runId}/result?wait=1`, { token })).status).toBe(200)
  })
})

describe('large bodies', () => {
  const LENGTH = 200_000
  const BODY = JSON.stringify({ agent: 'greeter', input: 'x' }).padEnd(LENGTH, ' ')

  /** A request whose body does not come yet. */
  function announce(setting: Setting, token: string): RawConnection {
    const headers = {
      Host: new URL(setting.server.url).host,
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      'Content-Length': String(LENGTH),
      Connection: 'close',
    }
    return new RawConnection(setting.server.url).send(head('POST /v1/runs HTTP/1.1', headers))
  }

  test('of one principal take turns, and too many are refused', async () => {
    await using setting = await startServer()
    const token = await setting.tokenFor(ann)
    const first = Array.from({ length: 4 }, () => announce(setting, token))
    await later(200)
    const waiting = Array.from({ length: 16 }, () => announce(setting, token).send(BODY))
    await later(500)
    const refused = announce(setting, token)

    expect(await refused.end()).toMatch(/^HTTP\/1\.1 429 [\s\S]*retry-after: 2/i)
    expect(waiting.map(({ text }) => text)).toEqual(waiting.map(() => ''))
    expect((await setting.post('/v1/runs', { agent: 'greeter', input: 'x' }, { token })).ok).toBe(true)
    const bob = { token: await setting.tokenFor({ ...ann, id: 'bob' }) }
    expect((await setting.post('/v1/runs', BODY, bob)).ok).toBe(true)
    for (const one of first) one.send(BODY)
    for (const one of [...first, ...waiting]) expect(await one.end()).toMatch(/^HTTP\/1\.1 20[02] /)
    expect((await setting.post('/v1/runs', BODY, { token })).ok).toBe(true)
  })

  test('of callers who left make room, and who waits for an outcome keeps nobody waiting', async () => {
    const { slow, go } = patient()
    await using setting = await startServer({}, { agents: [slow, greeter] })
    const token = await setting.tokenFor(ann)
    const gone = Array.from({ length: 4 }, () => announce(setting, token))
    await later(200)
    for (const one of gone) one.close()
    const body = JSON.stringify({ agent: 'patient', input: 'x' }).padEnd(LENGTH, ' ')
    const polls = Array.from({ length: 4 }, () => setting.post('/v1/runs?wait=30', body, { token }))
    await later(300)

    const began = Date.now()
    expect((await setting.post('/v1/runs', BODY, { token })).ok).toBe(true)
    expect(Date.now() - began).toBeLessThan(5_000)
    go()
    for (const answer of await Promise.all(polls)) expect(answer.status).toBe(200)
  })
})
