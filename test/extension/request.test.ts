// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of prompts are written like this
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { agent, tool } from 'legate'
import { loadJsonPrompt, loadYamlPrompt } from 'legate/compat'
import { extension } from 'legate/hooks'
import type { ModelRequest } from 'legate/models'
import { EmptyPromptError, field } from 'legate/prompt'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { makeGate } from '../support/gate.ts'
import { openRuntime } from '../support/reading.ts'
import { tempFolder } from '../support/temp-folder.ts'

const isFresh = process.env['LEGATE_FRESH'] === '1'
const FORGOTTEN = 'what only this process knows of a request is forgotten there'

function clerk(script: Parameters<typeof scriptedModel>[0] = () => 'ok') {
  const model = scriptedModel(script)
  return { model, who: agent({ name: 'clerk', instructions: 'You sell shoes.', model }) }
}

function said(request: ModelRequest | undefined): string[] {
  return (request?.messages ?? []).map(
    ({ role, content }) => `${role}: ${typeof content === 'string' ? content : JSON.stringify(content)}`,
  )
}

describe('a request', () => {
  test('says its slots to the model, after the agent’s instructions, and gives a checked value', async () => {
    const { who, model } = clerk(() => '{"reply":"Yes.","sizes":[39]}')
    const run = who
      .request()
      .system('Be brief.')
      .info({ open: '9 to 18' })
      .instruct('Reply to {input}.')
      .examples('Yes, we do.')
      .input('Do you have ${size}?', { mappings: { size: 39 } })
      .output({ reply: field('str', 'one sentence'), sizes: ['int'] })
      .start()
    const outcome = await run.result
    const [request] = model.requests

    expectTypeOf(outcome.output).toEqualTypeOf<{ reply: string; sizes: number[] } | null>()
    expect(outcome.output).toEqual({ reply: 'Yes.', sizes: [39] })
    expect(said(request).slice(0, 2)).toEqual(['system: You sell shoes.', 'system: Be brief.'])
    const main = said(request).at(-1)
    expect(main).toMatch(
      /\[INFO\]:\n- open: 9 to 18\n\n\[INSTRUCT\]:\nReply to \{input\}.\n\n\[EXAMPLES\]:\nYes, we do.\n\n\[INPUT\]:\nDo you have 39\?/,
    )
    expect(main?.match(/JSON/g)).toHaveLength(1)
    expect(request?.outputSchema).toMatchObject({ required: ['reply', 'sizes'] })
  })

  test('two requests of one agent keep what is the agent’s and share nothing else', async () => {
    const { who, model } = clerk()
    const base = who.request().system('Be brief.')
    const one = base.input('one').instruct('for one')
    const two = base.input('two')
    await Promise.all([one.start().result, two.start().result])
    await base.input('three').start().result

    expect(model.requests.map((request) => said(request).slice(1))).toEqual([
      ['system: Be brief.', expect.stringContaining('for one')],
      ['system: Be brief.', 'user: two'],
      ['system: Be brief.', 'user: three'],
    ])
  })

  test('a request that asks nothing is refused before any model call', async () => {
    const { who, model } = clerk()

    expect(() => who.request().system('x').start()).toThrow(EmptyPromptError)
    expect(() => who.request().start()).toThrow(/The prompt is empty/)
    expect(model.requests).toEqual([])
  })

  test('a request that cannot be built leaves nothing behind', async () => {
    const { who, model } = clerk()

    expect(() => who.request().options({ temperature: 'hot' }).input('x').start()).toThrow(/options.temperature/)
    await who.request().input('y').start().result

    expect(said(model.requests[0])).toEqual(['system: You sell shoes.', 'user: y'])
  })

  test('model and temperature of one request reach the provider', async () => {
    const { who, model } = clerk()
    const options = { temperature: 0.2, max_tokens: 7, logit_bias: { 1: 2 } }

    await who.request().options(options).input('x').start().result
    await who.request().input('x').start().result

    expect(model.requests.map(({ settings }) => settings)).toEqual([
      { temperature: 0.2, maxOutputTokens: 7, providerOptions: { scripted: { logit_bias: { 1: 2 } } } },
      {},
    ])
    const other = who.request().options({ model: 'nowhere/none' }).input('x').start()
    expect((await other.result).error?.message).toMatch(/nowhere/)
  })

  test('a schema as the whole output gives exactly that shape, with its transforms', async ({ skip }) => {
    skip(isFresh, FORGOTTEN)
    const { who } = clerk(() => '{"n":"7"}')
    const { output } = await who
      .request()
      .input('x')
      .output(z.object({ n: z.string().transform(Number) }))
      .generate()

    expectTypeOf(output).toEqualTypeOf<{ n: number }>()
    expect(output).toEqual({ n: 7 })
  })

  test('an output that does not fit is asked for once more, with what is wrong', async () => {
    const { who, model } = clerk(['{"n":"x"}', '{"n":1}'])
    const { output } = await who.request().input('x').output({ n: 'int' }).generate()

    expect(output).toEqual({ n: 1 })
    expect(said(model.requests[1]).at(-1)).toMatch(/does not fit/)
  })

  test('pictures reach the model with what is asked', async () => {
    const { who, model } = clerk()
    const image = { type: 'image', mediaType: 'image/png', data: 'aGk=' }
    await who.request().input('What is it?').attachment([image]).start().result

    expect(model.requests[0]?.messages.at(-1)?.content).toEqual([{ type: 'text', text: 'What is it?' }, image])
  })

  test('the conversation keeps the input and the answer, not the prompt around them', async () => {
    const { who, model } = clerk()
    const runtime = openRuntime()
    const first = await who.request().info('secret sauce').input('one').start({ runtime }).result
    const { conversationId } = first
    await who.request().input('two').start({ runtime, conversationId }).result

    expect(said(model.requests[1])).toEqual(['system: You sell shoes.', 'user: one', 'assistant: ok', 'user: two'])
    const talk = await runtime.conversation(conversationId)
    expect((await talk.transcript()).map(({ text }) => text)).toEqual(['one', 'ok', 'two', 'ok'])
  })

  test('the tools and subagents of a request are the agent’s, and its words stay in front of their results', async () => {
    const look = tool({ description: 'Looks', input: { type: 'object' }, execute: () => 'seen' })
    const model = scriptedModel([{ calls: [{ name: 'look', input: {} }] }, 'done'])
    const who = agent({ name: 'who', instructions: '', model, tools: { look } })
    await who.request().input('go').instruct('Look first.').start().result

    expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
    expect(said(model.requests[1])[0]).toMatch(/Look first\./)
  })

  test('an agent with an input of its own checks the slot', async () => {
    const model = scriptedModel(() => 'ok')
    const typed = agent({ name: 'typed', instructions: '', input: z.object({ n: z.number() }), model })

    await expect(typed.request().input({ n: 'x' }).start().result).rejects.toThrow(/input of "typed" is wrong/)
    expect((await typed.request().input({ n: 1 }).instruct('Double it.').start().result).status).toBe('completed')
    expect(said(model.requests[0])[0]).toMatch(/Double it.*"n": 1/s)
  })

  test('hooks of one request come before the agent’s and are there for no other', async ({ skip }) => {
    skip(isFresh, FORGOTTEN)
    const seen: string[] = []
    const sees = (name: string) => extension({ name, hooks: { onRequest: () => void seen.push(name) as never } })
    const both = sees('both')
    const who = clerk().who.use(sees('agent')).use(both)
    await who.request().input('x').use(sees('request')).use(both).start().result
    await who.request().input('y').start().result

    expect(seen).toEqual(['request', 'both', 'agent', 'agent', 'both'])
  })

  test('another process goes on with it as it was asked: output, settings and all', async () => {
    const file = path.join(tempFolder(), 'a.db')
    const { opened, open } = makeGate()
    const hangs = agent({
      name: 'clerk',
      instructions: 'You sell shoes.',
      model: scriptedModel(async () => {
        open()
        return new Promise<never>(() => undefined)
      }),
    })
    const first = openRuntime({ store: sqliteStore(file), engine: { graceMs: 0 } })
    const run = hangs.request().input('x').info('i').output({ n: 'int' }).options({ seed: 7 }).start({ runtime: first })
    run.result.catch(() => undefined)
    await opened
    await first.close()
    const { who, model } = clerk(['{"n":"no"}', '{"n":3}'])
    const second = openRuntime({ store: sqliteStore(file), agents: [who] })
    await second.resume()

    expect((await (await second.attach(run.id)).result).output).toEqual({ n: 3 })
    expect(said(model.requests[0]).at(-1)).toMatch(/\[INFO\]:\ni\n.*"n": <int>/s)
    expect(model.requests[0]?.settings).toEqual({ seed: 7 })
  })

  test('the transforms and extensions of a request hold in this process only: another one goes on with the JSON Schema', async () => {
    const file = path.join(tempFolder(), 'a.db')
    const { opened, open } = makeGate()
    const hangs = agent({
      name: 'clerk',
      instructions: 'You sell shoes.',
      model: scriptedModel(async () => {
        open()
        return new Promise<never>(() => undefined)
      }),
    })
    const shouts = extension({
      name: 'shouts',
      hooks: { onRequest: ({ messages }) => ({ messages: [...messages, { role: 'user', content: 'SHOUT' }] }) },
    })
    const first = openRuntime({ store: sqliteStore(file), engine: { graceMs: 0 } })
    const output = z.object({ n: z.string().transform(Number) })
    const run = hangs.request().input('x').output(output).use(shouts).start({ runtime: first })
    run.result.catch(() => undefined)
    await opened
    await first.close()
    const { who, model } = clerk(['{"n":7}', '{"n":"7"}'])
    const second = openRuntime({ store: sqliteStore(file), agents: [who] })
    await second.resume()

    expect(await (await second.attach(run.id)).result).toMatchObject({ output: { n: '7' }, modelCalls: 2 })
    expect(JSON.stringify(model.requests)).not.toContain('SHOUT')
  })

  test('inside a tool it is a delegation of the running call', async () => {
    const inner = clerk(() => '{"n":1}')
    const ask = tool({
      description: 'Asks',
      input: { type: 'object' },
      execute: async () => (await inner.who.request().input('x').output({ n: 'int' }).generate()).output,
    })
    const model = scriptedModel([{ calls: [{ name: 'ask', input: {} }] }, 'done'])
    const runtime = openRuntime()
    const run = runtime.run(agent({ name: 'host', instructions: '', model, tools: { ask } }), 'go')
    const { children } = await run.result

    expect(children).toBe(1)
    expect(JSON.stringify(model.requests[1]?.messages.at(-1))).toMatch(/\{\\"n\\":1\}/)
  })

  test('an object that is not a runtime is refused', () => {
    expect(() =>
      clerk()
        .who.request()
        .input('x')
        .start({ runtime: {} as never }),
    ).toThrow(/createRuntime/)
  })
})

describe('prompt files on an agent', () => {
  const yaml =
    '.agent:\n  system: You speak ${language}.\ninput: ${text}\noutput:\n  reply: { $type: str, $desc: short }\n'

  test('a file becomes a request of this agent, in both layers', async () => {
    const { who, model } = clerk(() => '{"reply":"Ja."}')
    const file = path.join(tempFolder(), 'p.yaml')
    writeFileSync(file, yaml)
    const mappings = { language: 'German', text: 'Yes?' }
    const ways = [
      await who.loadPromptFile(file, { mappings }),
      await loadYamlPrompt(file, { mappings, onto: who.request() }),
      await who.loadPromptText(yaml, { mappings }),
      await loadJsonPrompt(
        '{ "$system": "You speak ${language}.", "input": "${text}", "output": { "reply": { "$type": "str", "$desc": "short" } } }',
        { mappings, onto: who.request() },
      ),
      await loadYamlPrompt(yaml, { mappings, onto: who.request() }),
    ]
    for (const request of ways) expect((await request.start().result).output).toEqual({ reply: 'Ja.' })

    const asked = model.requests.map(said)
    expect(new Set(asked.map((texts) => texts.join('\n'))).size).toBe(1)
    expect(asked[0]?.[1]).toBe('system: You speak German.')
    expect(asked[0]?.at(-1)).toMatch(/\[INPUT\]:\nYes\?.*"reply": <str> \/\/ short/s)
  })

  test('a file reaches the helpers of a prompt, and nothing of the agent', async () => {
    const { who } = clerk()

    await expect(loadYamlPrompt('.alias:\n  generate: { prompt: x }\n', { onto: who.request() })).rejects.toThrow(
      /<text>:2:3: .*generate/,
    )
    await expect(loadYamlPrompt('.alias:\n  use: { prompt: x }\n', { onto: who.request() })).rejects.toThrow(
      /<text>:2:3/,
    )
    const request = await loadYamlPrompt('.alias:\n  rule: { prompt: No names., always: true }\ninput: x\n', {
      onto: who.request(),
    })
    expect(request.get('system')).toEqual({ rule: 'No names.' })
  })
})
