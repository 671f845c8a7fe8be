import { agent, type Json, SubAgentUnavailable } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openRuntime } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'

const Input = z.object({ topic: z.string(), repo: z.string(), depth: z.number().default(1) })

function host(presets: { readonly [field: string]: Json }, said: Json, input: z.ZodType<object> = Input) {
  const expert = agent({ name: 'expert', instructions: '', model: scriptedModel(() => 'ok'), input })
  const model = scriptedModel([{ calls: [{ name: 'ask', input: said }] }, 'done'])
  return {
    model,
    agent: agent({ name: 'host', instructions: '', model, subagents: { ask: { agent: expert, presets } } }),
  }
}

async function inputOf(given: ReturnType<typeof host>) {
  const runtime = openRuntime()
  const run = runtime.run(given.agent, 'go')
  await run.result
  const [link] = localStore(runtime).linksOf(run.id)
  return link === undefined ? undefined : localStore(runtime).turn(link.id)?.input
}

describe('presets of a subagent', () => {
  test('are not in the schema the model sees, and are in what the child gets', async () => {
    const given = host({ repo: 'legate' }, { topic: 'QUIC' })

    expect(await inputOf(given)).toEqual({ topic: 'QUIC', repo: 'legate', depth: 1 })
    const schema = given.model.requests[0]?.tools[0]?.inputSchema as { properties: object; required: string[] }
    expect(Object.keys(schema.properties)).toEqual(['topic', 'depth'])
    expect(schema.required).not.toContain('repo')
  })

  test('win over what the model says', async () => {
    expect(await inputOf(host({ repo: 'legate' }, { topic: 'x', repo: 'secrets' }))).toMatchObject({ repo: 'legate' })
  })

  test('are checked like any input: one that does not fit makes no child', async () => {
    expect(await inputOf(host({ repo: 7 }, { topic: 'x' }))).toBeUndefined()
  })

  test.each([['__proto__'], ['constructor'], ['_host']])('named %s are ordinary fields', async (field) => {
    const said = JSON.parse(`{ "topic": "x", "repo": "y", "${field}": 1 }`) as Json
    const given = host({ [field]: { polluted: true } }, said, z.looseObject(Input.shape))

    expect(await inputOf(given)).toMatchObject({ topic: 'x', repo: 'y', depth: 1 })
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  test.each([[null], [7], [['a']], [{ at: () => 1 }]])(
    'presets that are %j are refused where they are given',
    (presets) => {
      expect(() => host(presets as never, {})).toThrow(/presets is an object of JSON values/)
    },
  )

  test.each<[string, object, RegExp]>([
    ['a field that there is not', { repository: 'legate' }, /has no "repository"\. It has topic, repo, depth\./],
    ['a name like one of an object', { constructor: 'x' }, /has no "constructor"/],
  ])('for %s are refused: what they were to hide would be the model’s', (_name, presets, words) => {
    const expert = agent({ name: 'expert', instructions: '', input: Input })
    const define = () =>
      agent({ name: 'host', instructions: '', subagents: { ask: { agent: expert, presets } as never } })
    const provided = agent({
      name: 'host',
      instructions: '',
      model: scriptedModel(() => 'x'),
      subagents: { ask: { agent: () => expert, presets } as never },
    })

    expect(define).toThrow(SubAgentUnavailable)
    expect(define).toThrow(words)
    expect(() => openRuntime().run(provided, 'go')).toThrow(words)
  })

  test('for a schema that takes any field may have any; for a message, those of a message', () => {
    const presets = { anything: 1 }
    const open = [z.looseObject({ topic: z.string() }), { type: 'object' } as const]
    for (const input of open) {
      const expert = agent({ name: 'expert', instructions: '', input })
      expect(
        agent({ name: 'host', instructions: '', subagents: { ask: { agent: expert, presets } } }).subagents.size,
      ).toBe(1)
    }
    const plain = agent({ name: 'plain', instructions: '' })
    const define = () => agent({ name: 'host', instructions: '', subagents: { ask: { agent: plain, presets } } })
    expect(define).toThrow(/has no "anything"\. It has message, session_id\./)
  })

  test.each(['fresh', 'session'] as const)('%s memory of one that keeps sessions is refused', (memory) => {
    const plain = agent({ name: 'plain', instructions: '' })
    const define = () => agent({ name: 'host', instructions: '', subagents: { ask: { agent: plain, memory } } })

    expect(define).toThrow(/memory: a subagent without an input keeps its sessions, .*give "plain" an input\.$/)
  })

  test('settings of a session are refused where no host names one', () => {
    const typed = agent({ name: 'typed', instructions: '', input: z.object({ topic: z.string() }) })
    const ask = { agent: typed, session: { ttlMs: 1_000 } }

    expect(() => agent({ name: 'host', instructions: '', subagents: { ask } })).toThrow(
      /session: "typed" has an input, and only a subagent without one has sessions\./,
    )
  })
})
