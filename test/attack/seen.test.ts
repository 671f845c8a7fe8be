// One call asks for three things, one after the other, under the id of one node. A yes that was shown for the first is never taken
// for the second, through any door, and no door fills in what a person did not say.

import { agent, createRuntime, type Json, type ScopedRuntime, tool } from 'legate'
import { atThisMachine } from 'legate/grant'
import { handler } from 'legate/server'
import { scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { digestOf } from '../../src/core/rules/turn/approval-of.ts'
import { type Setting, startServer } from '../server/support/server.ts'
import { makeGate } from '../support/gate.ts'
import { fetchFrom } from '../surfaces/ai-sdk/support.ts'
import { connected, message, newClient, send, textIn } from '../surfaces/mcp/support/clients.ts'
import {
  allowed,
  asksThrice,
  PERSON,
  stand,
  THREE,
  type Thrice,
  thriceOptions,
  waiting,
} from './support/asks-thrice.ts'

const [TOOL = '', EXEC = '', LIST = ''] = THREE
/** What a door says to a yes that does not name what was seen. */
const NEEDED = /give `seen`, the hash that it was shown with, all 64 hex digits of it/
const OTHER = /he node .* asks for something else now, exec:touch PWNED/

function open(): Thrice & { readonly person: ScopedRuntime } {
  const thrice = asksThrice()
  onTestFinished(() => thrice.runtime.close())
  return { ...thrice, person: thrice.runtime.as(PERSON) }
}

async function served(): Promise<Thrice & { readonly setting: Setting }> {
  const { options, isDone } = thriceOptions()
  const setting = await startServer({}, options)
  onTestFinished(() => setting[Symbol.asyncDispose]())
  return { setting, runtime: setting.runtime, isDone }
}

function begin({ runtime }: Thrice): void {
  runtime
    .as(PERSON)
    .run('host', 'Go.')
    .result.catch(() => undefined)
}

describe('in code', () => {
  test('a yes without what was seen is refused, and says what it needs', async () => {
    const thrice = open()
    begin(thrice)
    const { nodeId, seen } = await waiting(thrice, TOOL)
    const words = [
      { allow: true },
      { allow: true, always: true },
      { allow: true, edit: { command: 'ls' } },
      { allow: true, seen: '' },
      { allow: true, seen: seen.slice(0, 16) },
      { allow: true, seen: seen.slice(0, 63) },
      { allow: true, seen: `${seen.slice(0, 63)}z` },
      { allow: true, seen: `${seen}0` },
      { allow: true, seen: seen.toUpperCase() },
      { allow: 'yes' },
      {},
    ]
    for (const word of words) await expect(thrice.person.answer(nodeId, word as never)).rejects.toThrow(NEEDED)
    expect(await stand(thrice)).toEqual([[TOOL], false])
  })

  test('a yes to the first request is not taken for the second, and all 64 digits of the right one are needed', async () => {
    const thrice = open()
    const run = thrice.person.run('host', 'Go.')
    const first = await allowed(thrice, TOOL)
    const second = await waiting(thrice, EXEC)
    expect(second.nodeId).toBe(first.nodeId)
    for (const seen of [first.seen, '0'.repeat(64)]) {
      await expect(thrice.person.answer(first.nodeId, { allow: true, seen })).rejects.toThrow(OTHER)
      await expect(thrice.person.answer(first.nodeId, { allow: false, seen })).rejects.toThrow(OTHER)
    }
    expect(await stand(thrice)).toEqual([[EXEC], false])
    const cut = second.seen.slice(0, 16)
    await expect(thrice.person.answer(first.nodeId, { allow: true, seen: cut })).rejects.toThrow(NEEDED)
    await expect(thrice.person.answer(first.nodeId, { allow: false, seen: cut })).rejects.toThrow(NEEDED)
    await thrice.person.answer(first.nodeId, { allow: true, seen: second.seen })
    await allowed(thrice, LIST)
    await run.result
    expect(thrice.isDone()).toBe(true)
  })

  test('a no may go without what was seen: it allows nothing', async () => {
    const thrice = open()
    const run = thrice.person.run('host', 'Go.')
    await allowed(thrice, TOOL)
    const { nodeId } = await waiting(thrice, EXEC)
    await thrice.person.answer(nodeId, { allow: false, reason: 'No.' })
    await run.result
    expect(await stand(thrice)).toEqual([[], false])
  })

  test('a word is said on what was checked, and not on what the node asks for meanwhile', async () => {
    const thrice = open()
    const narrow = thrice.runtime.as({ ...PERSON, mayApprove: { requests: [TOOL] } })
    begin(thrice)
    const { nodeId } = await waiting(thrice, TOOL)
    const early = await narrow.checkAnswer(nodeId, { allow: false })
    // Everybody can work out the hash of a request before it is asked.
    const guess = { allow: true, seen: digestOf({ request: EXEC }, { command: 'touch PWNED' }) } as const
    await expect(narrow.checkAnswer(nodeId, guess)).rejects.toThrow('asks for something else now, tool:shell')
    await allowed(thrice, TOOL)
    expect((await waiting(thrice, EXEC)).seen).toBe(guess.seen)
    await expect(early()).rejects.toThrow(OTHER)
    await expect(narrow.checkAnswer(nodeId, guess)).rejects.toThrow('may not answer exec:touch PWNED')
    expect(await stand(thrice)).toEqual([[EXEC], false])
  })

  test('a word on a node that asks nothing is not kept for what it asks later', async () => {
    const gate = makeGate()
    const approval = async () => {
      await gate.opened
      return 'ask' as const
    }
    const ship = tool({ description: 'x', input: z.object({}), approval: approval as never, execute: () => 'shipped' })
    const model = scriptedModel([{ calls: [{ name: 'ship', input: {} }] }, 'Done.'])
    await using runtime = createRuntime({ agents: [agent({ name: 'host', instructions: '', model, tools: { ship } })] })
    const narrow = runtime.as({ ...PERSON, mayApprove: { requests: ['tool:other'] } })
    const run = runtime.as(PERSON).run('host', 'Go.')
    for await (const event of run) {
      if (event.type === 'tool-call') {
        const seen = digestOf({ request: 'tool:ship' }, {})
        const say = await narrow.checkAnswer(event.nodeId ?? '', { allow: true, seen })
        gate.open()
        const asked = await waiting({ runtime }, 'tool:ship')
        expect(asked.seen).toBe(seen)
        await expect(say()).rejects.toThrow('asks for something else now, tool:ship')
        await runtime.answer(asked.nodeId, { allow: false })
      }
    }
  })
})

describe('calls', () => {
  test('an uncertain call is settled only as it was seen', async () => {
    const pay = tool({
      description: 'x',
      input: z.object({ to: z.string() }),
      effect: 'effectful',
      execute: (_, { signal }) => new Promise((_resolve, reject) => signal.addEventListener('abort', reject)),
    })
    const model = scriptedModel([{ calls: [{ name: 'pay', input: { to: 'ann' } }] }, 'Paid.'])
    const host = agent({ name: 'host', instructions: '', model, tools: { pay } })
    await using runtime = createRuntime({ agents: [host], grant: { ask: ['tool:pay'] } })
    const person = runtime.as({ ...PERSON, scopes: [...PERSON.scopes, 'read'] })
    const run = person.run('host', 'Go.')
    const asked = await waiting({ runtime }, 'tool:pay')
    await person.answer(asked.nodeId, { allow: true, seen: asked.seen })
    await expect.poll(async () => (await person.node(asked.nodeId)).state).toBe('running')
    await person.cancel(run.id)
    await run.result

    const [item] = await person.inbox()
    if (item?.type !== 'uncertain') throw new Error('It is certain.')
    const nodeId = item.nodeId ?? ''
    expect((await person.nodeInfo(nodeId)).seen).toBe(item.seen)
    for (const word of [{ happened: true }, { happened: false }, { leave: true }]) {
      await expect(person.settle(nodeId, word as never)).rejects.toThrow(NEEDED)
      // The yes to the call was no word on what became of it.
      const other = person.settle(nodeId, { ...word, seen: asked.seen } as never)
      await expect(other).rejects.toMatchObject({
        code: 'conflict',
        details: { request: { tool: 'pay', seen: item.seen } },
      })
    }
    expect((await person.settle(nodeId, { leave: true, seen: item.seen })).how).toBe('left')
  })

  test('a result is taken only for the call that its executor was shown, and words for a question need nothing', async () => {
    const pick = tool({ description: 'x', input: z.object({ of: z.string() }), execute: 'outside', approval: 'ask' })
    const model = scriptedModel([{ calls: [{ name: 'pick', input: { of: 'red' } }] }, 'Picked.'])
    const asker = agent({
      name: 'asker',
      effect: 'idempotent',
      reply: async (_, { ask }) => `You said ${await ask('Which?')}.`,
    })
    const host = agent({ name: 'host', instructions: '', model, tools: { pick } })
    await using runtime = createRuntime({ agents: [host, asker] })
    const person = runtime.as(PERSON)
    const run = person.run('host', 'Go.')
    const asked = await waiting({ runtime }, 'tool:pick')
    await person.answer(asked.nodeId, { allow: true, edit: { of: 'blue' }, seen: asked.seen })
    await expect.poll(() => person.questions({ outside: true })).toHaveLength(1)
    const [call] = await person.questions({ outside: true })
    const nodeId = call?.nodeId ?? ''
    await expect(person.answer(nodeId, { result: 'red' } as never)).rejects.toThrow(NEEDED)
    await expect(person.answer(nodeId, { result: 'red', seen: asked.seen })).rejects.toThrow('pick({"of":"blue"})')
    await person.answer(nodeId, { result: 'blue', seen: call?.seen ?? '' })
    await run.result

    const talk = person.run('asker', 'Go.')
    await expect.poll(() => person.questions()).toHaveLength(1)
    const [question] = await person.questions()
    const words = { text: 'This.', seen: '0'.repeat(64) }
    await expect(person.answer(question?.nodeId ?? '', words)).rejects.toMatchObject({ code: 'conflict' })
    await person.answer(question?.nodeId ?? '', { text: 'That.' })
    expect((await talk.result).text).toBe('You said That..')
  })

  test('a node that was put in by hand is shown with a hash too', async () => {
    const host = agent({ name: 'host', instructions: '', model: scriptedModel(() => 'Done.') })
    await using runtime = createRuntime({ agents: [host] })
    const run = runtime.run(host, 'Go.', { owner: 'local' })
    await run.result
    const conversation = await runtime.conversation(run.conversationId)
    await conversation.mutate((rows) => {
      rows.createNode({ kind: 'agent_message', state: 'awaiting_approval' })
    })
    const person = runtime.as(PERSON)
    const [asked] = await person.approvals()
    expect(asked?.seen).toMatch(/^[0-9a-f]{64}$/)
    await expect(person.answer(asked?.nodeId ?? '', { allow: true } as never)).rejects.toThrow(NEEDED)
    await person.answer(asked?.nodeId ?? '', { allow: true, seen: asked?.seen ?? '' })
    expect(await person.approvals()).toEqual([])
  })
})

test('over HTTP a yes needs what was seen, and the same request twice allows one thing', async () => {
  const thrice = await served()
  const { setting } = thrice
  const token = await setting.tokenFor(PERSON)
  begin(thrice)
  const { nodeId, seen } = await waiting(thrice, TOOL)
  const post = async (body: object) => {
    const answer = await setting.post(`/v1/approvals/${nodeId}`, body, { token })
    return [answer.status, answer.status === 204 ? '' : ((await answer.json()) as { detail: string }).detail]
  }
  expect(await post({ allow: true })).toEqual([400, expect.stringMatching(NEEDED)])
  expect((await post({ allow: true, seen: seen.slice(0, 16) }))[0]).toBe(400)
  expect((await post({ allow: true, seen }))[0]).toBe(204)
  await waiting(thrice, EXEC)
  expect(await post({ allow: true, seen })).toEqual([409, expect.stringMatching(OTHER)])
  expect(await stand(thrice)).toEqual([[EXEC], false])
  expect((await post({ allow: false }))[0]).toBe(204)
})

test('a peer of A2A that does not name what it saw allows nothing, and reads what waits', async () => {
  const thrice = await served()
  const { setting } = thrice
  const token = await setting.tokenFor(PERSON)
  const call = async (parts: readonly Json[], taskId?: string) => {
    const said = {
      messageId: crypto.randomUUID(),
      role: 'ROLE_USER',
      parts,
      ...(taskId === undefined ? {} : { taskId }),
    }
    const body = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: said } }
    const answer = await setting.post('/a2a/host', body, { token, headers: { 'a2a-version': '1.0' } })
    return (await answer.json()) as {
      readonly result?: { readonly task: PeerTask }
      readonly error?: { readonly message: string }
    }
  }
  const { result } = await call([{ text: 'Go.' }])
  const { id = '', status } = result?.task ?? {}
  expect(status?.state).toBe('TASK_STATE_INPUT_REQUIRED')
  const { nodeId, seen } = status?.message.parts[1]?.data ?? {}
  const yes = { data: { nodeId, allow: true } } as never as Json
  expect((await call([yes], id)).error?.message).toMatch(NEEDED)
  expect((await call([{ text: 'Yes.' }], id)).error?.message).toMatch(
    /Answer with a data part for each node: \{ nodeId, allow, seen \}/,
  )
  await allowed(thrice, TOOL)
  await waiting(thrice, EXEC)
  expect((await call([yes], id)).error?.message).toMatch(NEEDED)
  const late = { data: { nodeId, allow: true, seen } } as never as Json
  expect((await call([late], id)).error?.message).toMatch(OTHER)
  expect(await stand(thrice)).toEqual([[EXEC], false])
  expect((await call([{ data: { nodeId, allow: false } } as never as Json], id)).error).toBeUndefined()
})

interface PeerTask {
  readonly id: string
  readonly status: {
    readonly state: string
    readonly message: {
      readonly parts: readonly { readonly data?: { readonly nodeId: string; readonly seen: string } }[]
    }
  }
}

describe('useChat', () => {
  const page = (fetch: typeof globalThis.fetch) => {
    const post = async (messages: readonly object[]) => {
      const body = JSON.stringify({ id: 'chat', messages })
      const answer = await fetch('http://legate.test/ai-sdk/host', { method: 'POST', body })
      return { status: answer.status, text: await answer.text() }
    }
    const load = async () => {
      const answer = await fetch('http://legate.test/ai-sdk/host/chat/messages')
      return (await answer.json()) as readonly PageLine[]
    }
    return { post, load }
  }

  /** The messages of a page whose person has said yes, with or without the data parts. */
  const answered = (lines: readonly PageLine[], isWhole: boolean) =>
    lines.map((line) => ({
      ...line,
      parts: line.parts
        .filter(({ type }) => isWhole || !type.startsWith('data-'))
        .map((part) =>
          part.state === 'approval-requested'
            ? { ...part, state: 'approval-responded', approval: { ...part.approval, approved: true } }
            : part,
        ),
    }))

  test.each([
    ['with what it was shown', true, 200, 409],
    ['without what it was shown', false, 400, 400],
  ] as const)(
    'the same request of a page %s, sent three times, allows at most one thing',
    async (_, isWhole, first, then) => {
      const thrice = open()
      const { post, load } = page(fetchFrom(thrice.runtime, PERSON))
      await post([{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Go.' }] }])
      const body = answered(await load(), isWhole)
      const answers: { status: number; text: string }[] = []
      for (let time = 0; time < 3; time++) answers.push(await post(body))
      expect(answers.map(({ status }) => status)).toEqual([first, then, then])
      if (!isWhole) expect(answers[0]?.text).toMatch(NEEDED)
      expect(await stand(thrice)).toEqual([[isWhole ? EXEC : TOOL], false])
    },
  )

  test('the same request of a page at the same time allows one thing', async () => {
    const thrice = open()
    const { post, load } = page(fetchFrom(thrice.runtime, PERSON))
    await post([{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Go.' }] }])
    const body = answered(await load(), true)
    const answers = await Promise.all(Array.from({ length: 5 }, () => post(body)))
    expect(answers.some(({ status }) => status === 200)).toBe(true)
    expect(await stand(thrice)).toEqual([[EXEC], false])
  })
})

interface PageLine {
  readonly parts: readonly {
    readonly type: string
    readonly state?: string
    readonly approval?: { readonly id: string }
  }[]
}

test('a front end of AG-UI answers what the id of its interrupt names, and nothing later', async () => {
  const thrice = open()
  const limits = { startsPerMinute: 100_000, readsPerMinute: 100_000, perAddressPerMinute: 100_000 }
  const handle = handler(thrice.runtime, { authenticate: () => PERSON, allowHosts: ['legate.test'], limits })
  const post = async (body: object) => {
    const headers = { host: 'legate.test', 'content-type': 'application/json' }
    const messages = [{ id: 'm1', role: 'user', content: 'Go.' }]
    const whole = JSON.stringify({ threadId: 't', messages, ...body })
    return (await handle(new Request('http://legate.test/ag-ui/host', { method: 'POST', headers, body: whole }))).text()
  }
  const first = await post({ runId: 'r1' })
  const [, interruptId = ''] = /"id":"([0-9a-f-]+\/[0-9a-f]{64})","reason":"tool_call"/.exec(first) ?? []
  const resume = [{ interruptId, status: 'resolved', payload: { approved: true } }]
  expect(await post({ runId: 'r2', resume })).toContain(`exec:touch PWNED`)
  expect(await post({ runId: 'r3', resume })).toMatch(/"RUN_ERROR".*"interrupt/)
  const short = [{ ...resume[0], interruptId: interruptId.split('/')[0] }]
  expect(await post({ runId: 'r4', resume: short })).toMatch(/"RUN_ERROR".*"interrupt/)
  expect(await stand(thrice)).toEqual([[EXEC], false])
})

describe('MCP', () => {
  const FORMS = { elicitation: { form: {} } }

  test('the answer to a form counts for what the form showed', async () => {
    const thrice = await served()
    const place = { url: thrice.setting.server.url, token: await thrice.setting.tokenFor(PERSON) }
    const call = (more: object) => send(place, message('tools/call', { ...GO, ...more } as never, FORMS))
    const { result } = await call({})
    const { requestState = '', inputRequests = {} } = result as { requestState?: string; inputRequests?: object }
    const [key = ''] = Object.keys(inputRequests)
    const yes = { action: 'accept', content: { decision: 'allow_once' } }
    const again = await call({ requestState, inputResponses: { [key]: yes } })
    expect(JSON.stringify(again.result)).toContain('exec:touch PWNED')
    for (const other of [key, key.split('.')[0] ?? '', `${key.split('.')[0]}.`]) {
      const late = await call({ requestState, inputResponses: { [other]: yes } })
      expect(JSON.stringify(late)).toMatch(/exec:touch PWNED|give `seen`/)
    }
    expect(await stand(thrice)).toEqual([[EXEC], false])
  })

  test('a client that says it has no forms gives no answers of forms', async () => {
    const thrice = await served()
    const place = { url: thrice.setting.server.url, token: await thrice.setting.tokenFor(PERSON) }
    const asked = await send(place, message('tools/call', GO as never, FORMS))
    const { requestState = '', inputRequests = {} } = asked.result as { requestState?: string; inputRequests?: object }
    const [key = ''] = Object.keys(inputRequests)
    const inputResponses = { [key]: { action: 'accept', content: { decision: 'allow_once' } } }
    await send(place, message('tools/call', { ...GO, requestState, inputResponses } as never, {}))
    expect(await stand(thrice)).toEqual([[TOOL], false])
  })

  test('run_answer takes the hash that run_get shows, and no other', async () => {
    const thrice = await served()
    const setting = thrice.setting
    const who = atThisMachine({ ...PERSON, scopes: [...PERSON.scopes, 'approve:model'] })
    const client = await connected(setting.server.url, await setting.tokenFor(who), newClient())
    const call = async (name: string, args: object) => textIn(await client.callTool({ name, arguments: { ...args } }))
    const begun = await call('host', { message: 'Go.' })
    const [, run_id = ''] = /run_id: (\S+)/.exec(begun) ?? []
    const [, node_id = '', seen = ''] =
      /node_id (\S+), seen ([0-9a-f]{64}):/.exec(await call('run_get', { run_id })) ?? []
    const answer = { run_id, node_id, decision: 'allow_once' }
    expect(await call('run_answer', { ...answer, seen: '' })).toMatch(NEEDED)
    await call('run_answer', { ...answer, seen })
    await waiting(thrice, EXEC)
    expect(await call('run_answer', { ...answer, seen })).toMatch(OTHER)
    expect(await stand(thrice)).toEqual([[EXEC], false])
  })
})

const GO = { name: 'host', arguments: { message: 'Go.' } }
