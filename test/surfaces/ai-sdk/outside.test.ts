// Calls that a page of `useChat` executes.

import { type AnyAgent, agent, createRuntime, type Principal, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { stores } from '../../support/stores.ts'
import { ANN, askedOf, fetchFrom, loaded, openPage, type Page, type PageMessage, plain, untilReady } from './support.ts'

const ONLY_STARTS: Principal = { id: 'ann', scopes: ['start', 'read'] }

const place = tool({ description: 'x', input: z.object({ of: z.string() }), output: z.string(), execute: 'outside' })
const till = tool({ description: 'x', input: z.object({}), execute: 'outside', by: 'till-7' })
const deploy = tool({ description: 'x', input: z.object({ to: z.string() }), execute: ({ to }) => `deployed to ${to}` })

let calls = 0

/** Calls once in each turn, then says what it read. Providers give each call an id of its own. */
function caller(...names: readonly string[]) {
  const model = scriptedModel(({ messages }) => {
    const last = messages.findLastIndex(({ role }) => role === 'user')
    const results = messages.slice(last).filter(({ role }) => role === 'tool')
    if (results.length > 0) return `I read: ${results.map(({ content }) => String(content)).join(', ')}`
    const inputs: Record<string, object> = { place: { of: 'ann' }, deploy: { to: 'prod' }, till: {} }
    return {
      calls: names.map((name) => ({ id: `call_${++calls}`, name, input: (inputs[name] ?? {}) as never })),
    }
  })
  return agent({
    name: 'host',
    instructions: 'x',
    model,
    tools: { place, till, deploy },
    grant: { ask: ['tool:deploy'] },
  })
}

const partsOf = (message: PageMessage | undefined, prefix: string) =>
  message?.parts.filter(({ type }) => type.startsWith(prefix)) ?? []

describe.each(stores)('a page that executes tools, with a store in %s', (_, create) => {
  function open(host: AnyAgent) {
    const rows = create()
    const runtime = createRuntime({ store: rows.open(), agents: [host] })
    onTestFinished(async () => {
      await runtime.close()
      await rows.drop()
    })
    return { runtime, fetch: fetchFrom(runtime, ONLY_STARTS) }
  }

  test('sends the result with its next request, and the same message goes on, in each turn', async () => {
    const { fetch } = open(caller('place'))
    const inputs: unknown[] = []
    const page = openPage(fetch, {
      tools: {
        place: (input) => {
          inputs.push(input)
          return 'Wien'
        },
      },
    })
    for (const text of ['Where am I?', 'And now?']) {
      await page.chat.sendMessage({ text })
      await untilReady(page)
    }

    expect(page.errors).toEqual([])
    expect(inputs).toEqual([{ of: 'ann' }, { of: 'ann' }])
    expect(page.chat.messages).toHaveLength(4)
    expect(page.chat.lastMessage?.parts.at(-1)).toMatchObject({ type: 'text', text: 'I read: Wien' })
    expect(partsOf(page.chat.lastMessage, 'tool-')).toMatchObject([{ state: 'output-available', output: 'Wien' }])
    expect(partsOf(page.chat.lastMessage, 'data-question')).toMatchObject([{ data: { to: 'outside', by: 'ann' } }])
    expect(await loaded(fetch)).toEqual(plain(page.chat.messages))
  })

  test('the words of its failure reach the model', async () => {
    const { fetch } = open(caller('place'))
    const refuse = () => Promise.reject(new Error('Nobody knows.'))
    const page = openPage(fetch, { tools: { place: refuse } })
    await page.chat.sendMessage({ text: 'Where am I?' })
    await untilReady(page)

    expect(page.errors).toEqual([])
    expect(page.chat.lastMessage?.parts.at(-1)).toMatchObject({ text: expect.stringContaining('Nobody knows.') })
    expect(await loaded(fetch)).toEqual(plain(page.chat.messages))
  })

  test('with an approval beside it, both go with one request', async () => {
    const { runtime } = open(caller('deploy', 'place'))
    const fetch = fetchFrom(runtime, ANN)
    const page = openPage(fetch, { tools: { place: () => 'Wien' } })
    await page.chat.sendMessage({ text: 'Go.' })
    await untilReady(page)
    expect(page.chat.lastMessage?.metadata).toMatchObject({ status: 'waiting' })
    await page.chat.addToolApprovalResponse({ id: askedOf(page)[0]?.id ?? '', approved: true })
    await untilReady(page)

    expect(page.errors).toEqual([])
    expect(page.chat.lastMessage?.parts.at(-1)).toMatchObject({ text: 'I read: deployed to prod, Wien' })
    expect(await loaded(fetch)).toEqual(plain(page.chat.messages))
  })

  test('a page that was loaded anew is asked again, by another process too', async () => {
    const rows = create()
    const host = caller('place')
    const start = () => createRuntime({ store: rows.open(), agents: [host] })
    let runtime = start()
    onTestFinished(async () => {
      await runtime.close()
      await rows.drop()
    })
    const fetch: typeof globalThis.fetch = (input, init) => fetchFrom(runtime, ONLY_STARTS)(input, init)
    await openPage(fetch).chat.sendMessage({ text: 'Where am I?' })
    await runtime.close()
    runtime = start()
    const page = openPage(fetch, { messages: await loaded(fetch), tools: { place: () => 'Graz' } })
    await page.chat.resumeStream()
    await untilReady(page)

    expect(page.errors).toEqual([])
    expect(page.chat.messages).toHaveLength(2)
    expect(page.chat.lastMessage?.parts.at(-1)).toMatchObject({ text: 'I read: Graz' })
  })

  /** Posts the page's messages, with this output in each part of a tool. */
  async function postOutput(fetch: typeof globalThis.fetch, { chat }: Page, output: unknown) {
    const messages = plain(chat.messages) as { parts: { type: string }[] }[]
    const parts = messages[1]?.parts.filter(({ type }) => type.startsWith('tool-')) ?? []
    for (const part of parts) Object.assign(part, { state: 'output-available', output })
    const body = JSON.stringify({ id: chat.id, messages })
    const response = await fetch('http://legate.test/ai-sdk/host', { method: 'POST', body })
    return [response.status, await response.text()] as const
  }

  test('a result counts once, and one that does not fit not at all', async () => {
    const { runtime, fetch } = open(caller('place'))
    const page = openPage(fetch, { isAutomatic: false })
    await page.chat.sendMessage({ text: 'Where am I?' })
    expect((await postOutput(fetch, page, { city: 7 }))[0]).toBe(400)
    expect(await runtime.questions({ outside: true })).toHaveLength(1)
    const first = await postOutput(fetch, page, 'Wien')
    const again = await postOutput(fetch, page, 'Graz')

    expect([first[0], again[0]]).toEqual([200, 200])
    for (const [, text] of [first, again]) expect(text).toContain('I read: Wien')
  })

  test('a result for a call that the server executes is no result, and no approval', async () => {
    const { runtime } = open(caller('deploy'))
    const fetch = fetchFrom(runtime, ANN)
    const page = openPage(fetch, { isAutomatic: false })
    await page.chat.sendMessage({ text: 'Go.' })

    expect((await postOutput(fetch, page, 'deployed'))[0]).toBe(400)
    expect(await runtime.approvals()).toHaveLength(1)
  })

  test('a call that another principal executes is not for the page: the stream stays open', async () => {
    const { runtime, fetch } = open(caller('till'))
    const page = openPage(fetch)
    const sent = page.chat.sendMessage({ text: 'Pay.' })
    for (;;) {
      const [asked] = await runtime.questions({ outside: true })
      if (asked !== undefined) {
        expect(page.chat.status).not.toBe('ready')
        const robot = runtime.as({ id: 'till-7', scopes: ['start'], sees: ['ann'] })
        await robot.answer(asked.nodeId, { result: 'paid', seen: asked.seen })
        break
      }
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    await sent

    expect(page.errors).toEqual([])
    expect(page.chat.lastMessage?.parts.at(-1)).toMatchObject({ text: 'I read: paid' })
  })

  test('a page that sends a message instead of the result that is pending is answered at once', async () => {
    const { fetch } = open(caller('place'))
    const page = openPage(fetch)
    await page.chat.sendMessage({ text: 'Where am I?' })
    await page.chat.sendMessage({ text: 'Never mind.' })

    expect(page.errors).toEqual([])
    expect(page.chat.messages).toHaveLength(4)
    expect(page.chat.lastMessage?.metadata).toMatchObject({ status: 'waiting' })
    expect((await loaded(fetch))[1]?.metadata).toMatchObject({ status: 'cancelled' })
  })
})
