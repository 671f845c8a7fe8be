// The keys of conversations and runs on a server: whose they are, what an answer tells of those of others, and what somebody can do
// who knows how ids are made of keys.

import { agent, createRuntime, type Principal, type RuntimeOptions } from 'legate'
import { scriptedModel } from 'legate/testing'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { foreignId } from '../../src/core/base/id.ts'
import { type Setting, startServer } from '../server/support/server.ts'
import { exported, forged, rowsOf } from '../support/forged-tree.ts'
import { stores } from '../support/stores.ts'

const USUAL = ['start', 'read', 'cancel'] as const
const ANN: Principal = { id: 'ann', scopes: USUAL }
const EVE: Principal = { id: 'eve', scopes: USUAL }
/** She may import history. */
const MALLORY: Principal = { id: 'mallory', scopes: [...USUAL, 'export', 'delete', 'admin'] }

/** Repeats all that people have said to it. */
const clerk = () =>
  agent({
    name: 'clerk',
    instructions: 'You listen.',
    model: scriptedModel(({ messages }) => {
      return messages.flatMap(({ role, content }) => (role === 'user' ? [String(content)] : [])).join(', ')
    }),
  })

interface Said {
  readonly status: number
  readonly text: string | undefined
  readonly body: Record<string, unknown>
}

async function say(setting: Setting, token: string, body: object, key?: string): Promise<Said> {
  const headers = key === undefined ? {} : { 'idempotency-key': key }
  const answer = await setting.post('/v1/runs?wait=20', { agent: 'clerk', ...body }, { token, headers })
  const given = (await answer.json()) as Record<string, unknown> & { readonly outcome?: { readonly text: string } }
  const { runId } = given
  if (typeof runId !== 'string') return { status: answer.status, text: undefined, body: given }
  const result = await (await setting.get(`/v1/runs/${runId}/result`, { token })).json()
  const { outcome } = result as { readonly outcome: { readonly text: string } }
  return { status: answer.status, text: outcome.text, body: given }
}

const conversationIdOf = (owner: string, key: string) =>
  foreignId({ owner, surface: 'conversation', agent: 'clerk', key })

describe.each(stores)('with rows in %s', (_, create) => {
  let options: RuntimeOptions = {}
  beforeEach(() => {
    const rows = create()
    onTestFinished(() => rows.drop())
    options = { store: rows.open(), agents: [clerk()] }
  })

  async function opened(): Promise<Setting> {
    const setting = await startServer({}, options)
    onTestFinished(() => setting[Symbol.asyncDispose]())
    return setting
  }

  test('two principals with one key have a conversation each, and the second hears nothing of the first (I9)', async () => {
    const setting = await opened()
    const [ann, eve] = [await setting.tokenFor(ANN), await setting.tokenFor(EVE)]
    const body = (input: string) => ({ input, conversationKey: 'release' })
    const first = await say(setting, ann, body('secret'), 'k')
    const second = await say(setting, eve, body('hello'), 'k')

    expect([first.text, second.text]).toEqual(['secret', 'hello'])
    expect([second.status, Object.keys(second.body)]).toEqual([first.status, Object.keys(first.body)])
    expect(second.body['conversationId']).not.toBe(first.body['conversationId'])
    expect((await say(setting, ann, body('more'))).text).toBe('secret, more')
    expect((await say(setting, eve, body('more'))).text).toBe('hello, more')
  })

  test('who names the id that a key of another stands for is told the same before and after it is used (I9)', async () => {
    const setting = await opened()
    const [ann, eve] = [await setting.tokenFor(ANN), await setting.tokenFor(EVE)]
    const probe = { input: 'hi', conversationId: conversationIdOf('ann', 'release') }
    const before = await say(setting, eve, probe)
    const { body } = await say(setting, ann, { input: 'secret', conversationKey: 'release' })
    expect(body['conversationId']).toBe(probe.conversationId)

    expect(await say(setting, eve, probe)).toEqual(before)
    expect(before.status).toBe(404)
    for (const path of [`/v1/conversations/${probe.conversationId}`, `/v1/trees/${probe.conversationId}`]) {
      expect((await setting.get(path, { token: eve })).status).toBe(404)
    }
  })

  test.each([
    ['a conversation', { conversationKey: 'release' }, undefined, conversationIdOf],
    [
      'a run',
      {},
      'release',
      (owner: string, key: string) => foreignId({ owner, surface: 'conversation of a run', agent: '', key }),
    ],
  ])(
    'the id of %s that somebody has imported first leads its owner on to another one',
    async (_what, named, key, idOf) => {
      const setting = await opened()
      const mallory = await setting.tokenFor(MALLORY)
      for (const owner of ['ann', 'local'])
        await importAs(setting, mallory, { owner: 'mallory', id: idOf(owner, 'release') })
      // The person at this machine sees what everybody has.
      const people = { ann: await setting.tokenFor(ANN), local: setting.token }
      for (const [owner, token] of Object.entries(people)) {
        const { status, text, body } = await say(setting, token, { input: 'secret', ...named }, key)
        expect([status < 300, text]).toEqual([true, 'secret'])
        expect(body['conversationId']).not.toBe(idOf(owner, 'release'))
        expect((await setting.get(`/v1/runs/${body['runId']}`, { token: mallory })).status).toBe(404)

        const again = await say(setting, token, { input: 'secret', ...named }, key)
        const [expected, count] = key === undefined ? ['secret, secret', 2] : ['secret', 1]
        expect([again.text, again.body['conversationId']]).toEqual([expected, body['conversationId']])
        expect(new Set([body['runId'], again.body['runId']]).size).toBe(count)

        const gone = await setting.get(`/v1/conversations/${idOf(owner, 'release')}`, {
          token: mallory,
          method: 'DELETE',
        })
        expect(gone.status).toBe(200)
        const later = await say(setting, token, { input: 'secret', ...named }, key)
        expect(later.body['conversationId']).toBe(body['conversationId'])
      }
    },
  )

  test('a run that somebody has imported under the key of another is not its run', async () => {
    const setting = await opened()
    const mallory = await setting.tokenFor(MALLORY)
    const forger = createRuntime({ agents: [clerk()] })
    // The very request that will be made, with an answer of hers.
    const request = forger.run('clerk', 'secret', { key: 'k', owner: 'local' })
    await request.result
    const text = forged(await exported(forger, request.conversationId), (tree) => {
      for (const row of rowsOf(tree, 'c')) row.owner = 'mallory'
    })
    await forger.close()
    await sendTree(setting, mallory, text)

    const { status, body } = await say(setting, setting.token, { input: 'secret' }, 'k')
    expect([status, body['code'], body['detail']]).toEqual([
      409,
      'conflict',
      'This key is used already: use a new key.',
    ])
    expect(body['details'] ?? {}).toEqual({})
  })
})

/** Imports a conversation of this owner under an id of her choice. */
async function importAs(setting: Setting, token: string, { owner, id }: { owner: string; id: string }): Promise<void> {
  const forger = createRuntime({ agents: [clerk()] })
  await forger.run('clerk', 'forged', { conversationId: id, createConversation: true, owner }).result
  const text = await exported(forger, id)
  await forger.close()
  await sendTree(setting, token, text)
}

async function sendTree(setting: Setting, token: string, text: string): Promise<void> {
  const headers = { 'content-type': 'application/x-ndjson' }
  expect((await setting.post('/v1/import', text, { token, headers })).status).toBe(201)
}

test('a principal begins no conversation under an id of its choice', async () => {
  const runtime = createRuntime({ agents: [clerk()] })
  onTestFinished(() => runtime.close())
  const where = { conversationId: conversationIdOf('ann', 'release'), createConversation: true }

  expect(() => runtime.as(EVE).run('clerk', 'hi', where as object)).toThrow('createConversation')
})
