import { agent, type Json } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openRuntime } from '../support/reading.ts'

const Input = z.object({ topic: z.string(), repo: z.string(), depth: z.number().default(1) })

function host(presets: { readonly [field: string]: Json }, said: Json) {
  const expert = agent({ name: 'expert', instructions: '', model: scriptedModel(() => 'ok'), input: Input })
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
  const [link] = runtime.store.linksOf(run.id)
  return link === undefined ? undefined : runtime.store.turn(link.id)?.input
}

describe('presets of a subagent', () => {
  test('are not in the schema the model sees, and are in what the child gets', async () => {
    const given = host({ repo: 'legate' }, { topic: 'QUIC' })

    expect(await inputOf(given)).toEqual({ topic: 'QUIC', repo: 'legate', depth: 1 })
    const schema = given.model.requests[0]?.tools[0]?.inputSchema as { properties: object; required: string[] }
    expect(Object.keys(schema.properties)).toEqual(['topic', 'depth'])
    expect(schema.required).not.toContain('repo')
  })

  test('agentscope 8.4/60: win over what the model says', async () => {
    expect(await inputOf(host({ repo: 'legate' }, { topic: 'x', repo: 'secrets' }))).toMatchObject({ repo: 'legate' })
  })

  test('are checked like any input: one that does not fit makes no child', async () => {
    expect(await inputOf(host({ repo: 7 }, { topic: 'x' }))).toBeUndefined()
  })

  test.each([['__proto__'], ['constructor'], ['_host']])('named %s are ordinary fields', async (field) => {
    const given = host(
      { [field]: { polluted: true } },
      JSON.parse(`{ "topic": "x", "repo": "y", "${field}": 1 }`) as Json,
    )

    expect(await inputOf(given)).toEqual({ topic: 'x', repo: 'y', depth: 1 })
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  test.each([[null], [7], [['a']], [{ at: () => 1 }]])('that are %j are refused where they are given', (presets) => {
    expect(() => host(presets as never, {})).toThrow(/presets is an object of JSON values/)
  })
})
