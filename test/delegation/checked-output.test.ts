import { type AnyAgent, agent } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { useWorld } from '../support/agents.ts'
import { resultIn, resultsIn } from '../support/reading.ts'
import { lasting } from '../support/stores.ts'

const Topic = z.object({ topic: z.string() })
const Finding = z.object({ title: z.string(), stars: z.number().default(5) })
const SAID = '<think>Maybe {"title": "no"}?</think>\nHere it is:\n```json\n{ title: "QUIC", }\n```\nI hope it helps.'
const ask = { name: 'ask', input: { topic: 'QUIC' } }

describe.each(lasting)('what a host reads of a typed answer, on %s', (_, create) => {
  const world = useWorld(create)

  function hostOf(expert: AnyAgent, input: { readonly [key: string]: string } = ask.input) {
    const model = scriptedModel([{ calls: [{ name: 'ask', input }] }, 'done'])
    return { model, host: agent({ name: 'host', instructions: '', model, subagents: { ask: expert } }) }
  }

  test('is the checked value: with its defaults, without thoughts and prose', async () => {
    const expert = agent({ name: 'e', instructions: '', input: Topic, output: Finding, model: scriptedModel([SAID]) })
    const { model, host } = hostOf(expert)

    await world.start().runtime.run(host, 'go').result

    expect(resultIn(model.requests[1])).toBe('{"title":"QUIC","stars":5}')
  })

  test('is so by the message contract too, behind the session’s id', async () => {
    const expert = agent({ name: 'e', instructions: '', output: Finding, model: scriptedModel([SAID]) })
    const { model, host } = hostOf(expert, { message: 'go' })

    await world.start().runtime.run(host, 'go').result

    expect(resultIn(model.requests[1])).toMatch(/^session_id: \S+\n\n\{"title":"QUIC","stars":5\}$/)
  })

  test('keeps pictures, and is the text where there is no schema', async () => {
    const image = { type: 'image', mediaType: 'image/png', data: 'aGk=' } as const
    const blocks = [{ type: 'text', text: `Look: {"title":"QUIC"}` } as const, image]
    const typed = agent({
      name: 'typed',
      instructions: '',
      input: Topic,
      output: Finding,
      model: scriptedModel([{ blocks }]),
    })
    const plain = agent({ name: 'plain', instructions: '', input: Topic, model: scriptedModel([{ blocks }]) })
    const model = scriptedModel([{ calls: [ask, { name: 'tell', input: ask.input }] }, 'done'])
    const host = agent({ name: 'host', instructions: '', model, subagents: { ask: typed, tell: plain } })

    await world.start().runtime.run(host, 'go').result

    expect(resultsIn(model.requests[1]).map(({ content }) => content)).toEqual([
      [{ type: 'text', text: '{"title":"QUIC","stars":5}' }, image],
      blocks,
    ])
  })

  test('is the same in another process, which read only rows', async () => {
    const expert = () =>
      agent({ name: 'e', instructions: '', input: Topic, output: Finding, model: scriptedModel([SAID]) })
    const first = world.start()
    const { host } = hostOf(expert())
    const { conversationId } = await first.runtime.run(host, 'go').result
    await first.runtime.close()

    const model = scriptedModel(['again'])
    const second = agent({ name: 'host', instructions: '', model, subagents: { ask: expert() } })
    await world.start().runtime.run(second, 'and?', { conversationId }).result

    expect(resultIn(model.requests[0])).toBe('{"title":"QUIC","stars":5}')
  })
})
