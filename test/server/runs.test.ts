import type { Principal } from 'legate'
import { describe, expect, test } from 'vitest'
import { patient } from './support/patient.ts'
import { startServer } from './support/server.ts'
import { allFrames } from './support/sse.ts'

const ann: Principal = { id: 'ann', scopes: ['start', 'read', 'cancel', 'history', 'approve', 'export', 'delete'] }
const bob: Principal = { ...ann, id: 'bob' }

describe('runs over HTTP', () => {
  test('starts, waits, reads and lists the events', async () => {
    await using setting = await startServer()
    const token = await setting.tokenFor(ann)

    const answer = await setting.post('/v1/runs?wait=10', { agent: 'greeter', input: 'Hi' }, { token })
    const run = (await answer.json()) as { runId: string; conversationId: string; state: string; owner: string }

    expect(answer.status).toBe(200)
    expect(answer.headers.get('location')).toBe(`/v1/runs/${run.runId}`)
    expect(run).toMatchObject({ state: 'ended', owner: 'ann', input: 'Hi', agent: 'greeter' })
    expect(run).toMatchObject({ outcome: { status: 'completed', text: 'Hello there, friend.' } })
    const result = await setting.get(`/v1/runs/${run.runId}/result`, { token })
    expect(await result.json()).toMatchObject({ outcome: { status: 'completed', text: 'Hello there, friend.' } })
    const events = await setting.get(`/v1/runs/${run.runId}/events`, { token, headers: { accept: 'application/json' } })
    const page = (await events.json()) as { events: { type: string; seq: number }[]; next: null }
    expect(page.events.map(({ type }) => type)).toContain('run-end')
    expect(page.next).toBe(null)
    for (const path of ['why', 'usage', 'nodes', 'timeline', `diff/${run.runId}`, 'explain?request=tool:x']) {
      expect([path, (await setting.get(`/v1/runs/${run.runId}/${path}`, { token })).status]).toEqual([path, 200])
    }
    for (const path of [
      '',
      '/transcript',
      '/tree',
      '/lanes',
      '/usage',
      '/sessions',
      '/messages',
      '/picture',
      '/graph',
    ]) {
      const read = await setting.get(`/v1/conversations/${run.conversationId}${path}`, { token })
      expect([path, read.status]).toEqual([path, 200])
    }
  })

  test('a run goes on while nobody waits, and 202 says that it is recorded', async () => {
    const { slow, go } = patient()
    await using setting = await startServer({}, { agents: [slow] })

    const answer = await setting.post('/v1/runs', { agent: 'patient', input: 'Hi' })
    const { runId } = (await answer.json()) as { runId: string }

    expect(answer.status).toBe(202)
    const early = await setting.get(`/v1/runs/${runId}/result`)
    expect(early.status).toBe(202)
    go()
    expect((await setting.get(`/v1/runs/${runId}/result?wait=10`)).status).toBe(200)
  })

  test('cancels, exports and deletes', async () => {
    const { slow } = patient()
    await using setting = await startServer({}, { agents: [slow] })
    const { runId, conversationId } = (await (
      await setting.post('/v1/runs', { agent: 'patient', input: 'x' })
    ).json()) as {
      runId: string
      conversationId: string
    }

    expect((await setting.post(`/v1/runs/${runId}/cancel`, { reason: 'Enough.' })).status).toBe(204)
    const ended = (await (await setting.get(`/v1/runs/${runId}/result?wait=10`)).json()) as {
      outcome: { status: string }
    }
    expect(ended.outcome.status).toBe('cancelled')
    const lines = await (await setting.get(`/v1/conversations/${conversationId}/export`)).text()
    expect(lines.trim().split('\n').length).toBeGreaterThan(2)
    expect((await setting.get(`/v1/conversations/${conversationId}`, { method: 'DELETE' })).status).toBe(200)
    expect((await setting.get(`/v1/conversations/${conversationId}`)).status).toBe(404)
    const back = await setting.post('/v1/import', lines, { headers: { 'content-type': 'application/x-ndjson' } })
    expect([back.status, await back.json()]).toEqual([201, { conversationId }])
    expect((await setting.get(`/v1/conversations/${conversationId}`)).status).toBe(200)
  })

  test('one more message goes on in the conversation, and history changes it', async () => {
    await using setting = await startServer()
    const token = await setting.tokenFor(ann)
    const first = await setting.post('/v1/runs?wait=10', { agent: 'greeter', input: 'Hi' }, { token })
    const { runId, conversationId } = (await first.json()) as { runId: string; conversationId: string }

    const more = await setting.post(
      `/v1/conversations/${conversationId}/messages?wait=10`,
      { input: 'Again' },
      { token },
    )
    expect([more.status, await more.json()]).toMatchObject([200, { conversationId, state: 'ended' }])
    const { nodes } = (await (await setting.get(`/v1/runs/${runId}/nodes`, { token })).json()) as {
      nodes: { id: string; kind: string }[]
    }
    const answer = nodes.find(({ kind }) => kind === 'agent_message')
    const forked = await setting.post(`/v1/conversations/${conversationId}/fork`, { nodeId: answer?.id }, { token })
    expect([forked.status, await forked.json()]).toMatchObject([200, { conversationId: expect.any(String) }])
    const whole = await setting.get(`/v1/results/${answer?.id}`, { token })
    expect([await whole.text(), whole.headers.get('content-disposition')]).toEqual([
      'Hello there, friend.',
      'attachment',
    ])
    const part = await setting.get(`/v1/results/${answer?.id}`, { token, headers: { range: 'bytes=6-10' } })
    expect([part.status, await part.text(), part.headers.get('content-range')]).toEqual([206, 'there', 'bytes 6-10/20'])
    const beyond = await setting.get(`/v1/results/${answer?.id}`, { token, headers: { range: 'bytes=99-' } })
    expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, 'bytes */20'])
    expect((await setting.get(`/v1/nodes/${answer?.id}/request`, { token })).status).toBe(200)
    expect((await setting.get(`/v1/nodes/${answer?.id}/context`, { token })).status).toBe(200)
    expect((await setting.get(`/v1/nodes/${answer?.id}/versions`, { token })).status).toBe(200)
  })

  test('what belongs to another owner looks like what does not exist, to the byte', async () => {
    await using setting = await startServer()
    const [own, other] = [await setting.tokenFor(ann), await setting.tokenFor(bob)]
    const made = await setting.post('/v1/runs?wait=10', { agent: 'greeter', input: 'Hi' }, { token: own })
    const { runId } = (await made.json()) as { runId: string }
    const unknown = `${runId.slice(0, -4)}0000`

    for (const path of ['', '/events', '/result', '/why', '/usage', '/nodes']) {
      const foreign = await setting.get(`/v1/runs/${runId}${path}`, { token: other })
      const missing = await setting.get(`/v1/runs/${unknown}${path}`, { token: other })
      const nonsense = await setting.get(`/v1/runs/..%2f..%2fetc${path}`, { token: other })
      expect([foreign.status, missing.status, nonsense.status]).toEqual([404, 404, 404])
      const text = await foreign.text()
      expect(text).toBe(await missing.text())
      expect(text).toBe(await nonsense.text())
    }
  })

  test('a run can be read as its answer', async () => {
    await using setting = await startServer()

    const answer = await setting.post(
      '/v1/runs',
      { agent: 'greeter', input: 'Hi' },
      { headers: { accept: 'text/event-stream' } },
    )
    const frames = await allFrames(answer)

    expect(answer.headers.get('content-type')).toMatch('text/event-stream')
    expect(frames[0]?.event).toBe('hello')
    expect(frames.at(-1)?.event).toBe('end')
    expect(frames.map(({ event }) => event)).toContain('run-end')
  })

  test('bodies and queries that do not fit are refused with the place', async () => {
    await using setting = await startServer()
    const details = async (answer: Promise<Response>) => {
      const { status, detail } = (await (await answer).json()) as { status: number; detail: string }
      return `${status} ${detail}`
    }

    expect(await details(setting.post('/v1/runs', {}))).toMatch(
      "400 The body does not fit: it must have required property 'agent'",
    )
    expect(await details(setting.post('/v1/runs', { agent: 5 }))).toMatch(
      '400 The body does not fit: "agent" must be string',
    )
    expect(await details(setting.post('/v1/runs', { agent: 'x', evil: 1 }))).toMatch('it has no property "evil"')
    expect(await details(setting.post('/v1/runs', '{"agent":'))).toMatch('400 The body cannot be read')
    expect(await details(setting.post('/v1/runs', `${'['.repeat(65)}${']'.repeat(65)}`))).toMatch('64 levels')
    expect(await details(setting.post('/v1/runs?wait=99', { agent: 'x' }))).toMatch('from 0 to 60')
    expect(await details(setting.post('/v1/runs?other=1', { agent: 'x' }))).toMatch('400 The query has no "other"')
    expect(await details(setting.post('/v1/runs', { agent: 'unknown' }))).toMatch('404')
    const text = setting.post('/v1/runs', { agent: 'x' }, { headers: { 'content-type': 'text/plain' } })
    expect(await details(text)).toMatch('415')
  })
})

test('an import says whether the tree is new, there already, or another one', async () => {
  await using from = await startServer()
  await using to = await startServer()
  const begun = await from.post('/v1/runs?wait=10', { agent: 'greeter', input: 'One.' })
  const { conversationId } = (await begun.json()) as { conversationId: string }
  const exported = async () => (await from.get(`/v1/conversations/${conversationId}/export`)).text()
  const headers = { 'content-type': 'application/x-ndjson' }
  const take = async (lines: string) => {
    const answer = await to.post('/v1/import', lines, { headers })
    return { status: answer.status, body: await answer.json() }
  }

  const first = await exported()
  expect(await take(first)).toEqual({ status: 201, body: { conversationId } })
  expect(await take(first)).toEqual({ status: 200, body: { conversationId } })
  await from.post(`/v1/conversations/${conversationId}/messages?wait=10`, { input: 'Two.' })
  const second = await take(await exported())
  expect(second).toMatchObject({ status: 409, body: { code: 'conflict' } })
  expect((await take('{"rootId":"x"}\n')).status).toBe(400)
})
