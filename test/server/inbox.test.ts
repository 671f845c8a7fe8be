import { agent, type Principal, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { expect, test } from 'vitest'
import { type Setting, startServer } from './support/server.ts'

const ann: Principal = { id: 'ann', scopes: ['start', 'read', 'approve', 'delete'] }

function deployer() {
  const deployed: unknown[] = []
  const deploy = tool({
    description: 'Deploys.',
    input: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] } as const,
    execute: (input) => {
      deployed.push(input)
      return 'Done.'
    },
  })
  const made = agent({
    name: 'deployer',
    instructions: 'Deploy.',
    tools: { deploy },
    grant: { use: ['tool:deploy'], ask: ['tool:deploy'] },
    model: scriptedModel(({ messages }) =>
      messages.some(({ role }) => role === 'tool')
        ? { text: 'Deployed.' }
        : { calls: [{ name: 'deploy', input: { to: 'prod' } }] },
    ),
  })
  return { made, deployed }
}

interface Approval {
  readonly nodeId: string
  readonly seen: string
  readonly request: string
}

async function approvalsOf(setting: Setting, token: string): Promise<Approval[]> {
  const answer = await setting.get('/v1/approvals', { token })
  return ((await answer.json()) as { approvals: Approval[] }).approvals
}

test('an approval is answered once, and only as it was seen; the loser is told who won', async () => {
  const { made, deployed } = deployer()
  await using setting = await startServer({}, { agents: [made] })
  const [one, two, other] = [
    await setting.tokenFor(ann),
    await setting.tokenFor({ id: 'root', scopes: ['approve', 'admin'], sees: 'all' }),
    await setting.tokenFor({ ...ann, id: 'bob' }),
  ]
  const started = await setting.post('/v1/runs', { agent: 'deployer', input: 'Go' }, { token: one })
  const { runId } = (await started.json()) as { runId: string }
  await expect.poll(async () => (await approvalsOf(setting, one)).length).toBe(1)
  const [{ nodeId, seen, request } = { nodeId: '', seen: '', request: '' }] = await approvalsOf(setting, one)

  expect(request).toBe('tool:deploy')
  expect(await approvalsOf(setting, other)).toEqual([])
  const inbox = await setting.get('/v1/inbox', { token: one })
  expect(((await inbox.json()) as { items: object[] }).items).toHaveLength(1)
  const changed = await setting.post(`/v1/approvals/${nodeId}`, { allow: true, seen: '0'.repeat(64) }, { token: one })
  expect(changed.status).toBe(409)
  const always = await setting.post(`/v1/approvals/${nodeId}`, { allow: true, seen, always: true }, { token: one })
  expect(always.status).toBe(403)
  expect((await setting.post(`/v1/approvals/${nodeId}`, { allow: true, seen }, { token: other })).status).toBe(404)
  expect(deployed).toEqual([])
  const first = await setting.post(`/v1/approvals/${nodeId}`, { allow: true, seen }, { token: two })
  expect(first.status).toBe(204)
  const second = await setting.post(`/v1/approvals/${nodeId}`, { allow: false, seen }, { token: one })
  expect(second.status).toBe(409)
  expect(await second.text()).toMatch('root')
  expect((await setting.get(`/v1/runs/${runId}/result?wait=10`, { token: one })).status).toBe(200)
  expect(deployed).toEqual([{ to: 'prod' }])
})

test('a repeated key gives the same run; with another request 409; after its deletion 410', async () => {
  await using setting = await startServer()
  const token = await setting.tokenFor(ann)
  const start = (input: string, key: string, as = token) =>
    setting.post('/v1/runs?wait=10', { agent: 'greeter', input }, { token: as, headers: { 'idempotency-key': key } })

  const first = (await (await start('Hi', 'k1')).json()) as { runId: string; conversationId: string }
  const again = await Promise.all([start('Hi', 'k1'), start('Hi', 'k1'), start('Hi', 'k1')])
  for (const answer of again) expect(await answer.json()).toMatchObject({ runId: first.runId })
  expect((await start('Other', 'k1')).status).toBe(409)
  expect((await start('Hi', 'a key with spaces')).status).toBe(400)
  const bobs = (await (await start('Hi', 'k1', await setting.tokenFor({ ...ann, id: 'bob' }))).json()) as {
    runId: string
  }
  expect(bobs.runId).not.toBe(first.runId)
  const list = (await (await setting.get('/v1/runs', { token })).json()) as { runs: { runId: string }[]; next: null }
  expect(list).toMatchObject({ runs: [{ runId: first.runId }], next: null })
  expect((await setting.get(`/v1/conversations/${first.conversationId}`, { token, method: 'DELETE' })).status).toBe(200)
  expect((await start('Hi', 'k1')).status).toBe(410)
})

test('lists are pages, newest first, of what the caller sees', async () => {
  await using setting = await startServer()
  const token = await setting.tokenFor(ann)
  const ids: string[] = []
  for (let count = 0; count < 5; count++) {
    const made = await setting.post('/v1/runs?wait=10', { agent: 'greeter', input: `${count}` }, { token })
    ids.unshift(((await made.json()) as { conversationId: string }).conversationId)
  }

  const found: string[] = []
  let next: string | null = ''
  while (next !== null) {
    const page = await setting.get(`/v1/conversations?limit=2${next === '' ? '' : `&before=${next}`}`, { token })
    const read = (await page.json()) as { conversations: { id: string }[]; next: string | null }
    found.push(...read.conversations.map(({ id }) => id))
    next = read.next
  }
  expect(found).toEqual(ids)
  expect(await (await setting.get('/v1/runs?state=open', { token })).json()).toEqual({ runs: [], next: null })
})
