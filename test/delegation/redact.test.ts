import { agent, tool } from 'legate'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openRuntime, resultIn } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'

const Topic = z.object({ topic: z.string() })
const ask = { name: 'ask', input: { topic: 'QUIC' } }
const SECRET = 'token sk-12345 is not valid at 10.0.0.7'
const redact = (cause: string) => cause.replace(/sk-\w+/g, '<key>').replace(/\d+\.\d+\.\d+\.\d+/g, '<host>')
const quiet = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }

function broken(): never {
  throw new Error(SECRET)
}

const fails = () => scriptedModel(() => ({ error: new Error(SECRET) }))
const expert = (extra: object = {}) =>
  agent({ name: 'expert', instructions: '', model: fails(), input: Topic, ...extra })
const works = (extra: object = {}) => expert({ model: scriptedModel(() => 'ok'), ...extra })

/** Every way in which a failure of somebody's code becomes words for the host's model. */
const ways: readonly (readonly [string, () => object])[] = [
  ['a model', () => ({ subagents: { ask: expert() } })],
  ['a model that briefs', () => ({ subagents: { ask: { agent: works(), briefing: 'summary' } } })],
  ['a briefing', () => ({ subagents: { ask: { agent: works(), briefing: broken } } })],
  ['a provider', () => ({ subagents: { ask: { agent: broken, name: 'expert', description: 'Knows.' } } })],
  ['a tool', () => ({ tools: { ask: tool({ description: 'Asks', input: { type: 'object' }, execute: broken }) } })],
]

describe('what is told of a failure', () => {
  const hostScript: Script = (request, call) => {
    if (request.path.length > 1) broken()
    return call === 0 ? { calls: [ask] } : 'done'
  }

  test.each(ways)('of %s is as the application lets it be told, in words and in rows', async (name, parts) => {
    const model = scriptedModel(hostScript)
    const runtime = openRuntime({ redact, logger: quiet })
    const run = runtime.run(agent({ name: 'host', instructions: '', model, ...parts() }), 'go')
    const outcome = await run.result

    const told = name === 'a provider' ? String(outcome.error?.message) : resultIn(model.requests.at(-1))
    expect(told).toMatch(/token <key> is not valid at <host>/)
    const rows = localStore(runtime)
      .linksOf(run.id)
      .flatMap((link) => [link, ...localStore(runtime).nodesOf(link.id)])
    const text = JSON.stringify([rows, localStore(runtime).nodesOf(run.id), localStore(runtime).turn(run.id)])
    expect(text).not.toContain('sk-12345')
  })

  test('is told as it is where nothing is said of it', async () => {
    const model = scriptedModel(hostScript)
    await openRuntime({ logger: quiet }).run(
      agent({ name: 'host', instructions: '', model, subagents: { ask: expert() } }),
      'go',
    ).result

    expect(resultIn(model.requests.at(-1))).toBe(`Subagent execution unavailable. ${SECRET}`)
  })

  test.each<[string, () => string]>([
    ['throws', broken],
    ['gives nothing', () => undefined as never],
  ])('is not told at all by a policy that %s', async (_name, policy) => {
    const model = scriptedModel(hostScript)
    const runtime = openRuntime({ redact: policy, logger: quiet })

    await runtime.run(agent({ name: 'host', instructions: '', model, subagents: { ask: expert() } }), 'go').result

    expect(resultIn(model.requests.at(-1))).toBe('Subagent execution unavailable. The cause is not told.')
  })

  test('a policy that is not a function is refused', () => {
    expect(() => openRuntime({ redact: 'all' as never })).toThrow(/createRuntime\(\{ redact \}\) must be a function/)
  })
})
