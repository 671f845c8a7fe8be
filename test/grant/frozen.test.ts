import { type AnyAgent, agent, type Grant, tool } from 'legate'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../support/agents.ts'
import { lasting } from '../support/stores.ts'

/** What an application says of its agents in one release. */
interface Release {
  readonly worker?: Grant
  readonly offer?: Omit<Grant, 'delegate'>
  readonly profile?: string
  readonly host?: Grant
  readonly helper?: Grant
  /** Nobody offers the worker any more. */
  readonly isOfferGone?: boolean
}

const named = (text: string) => tool({ description: text, input: { type: 'object' }, execute: () => text })
const PROFILES = { readers: { use: ['tool:pause', 'tool:read', 'agent:*', 'model:*'] } }
const PAUSE: Grant = { ask: ['tool:pause'] }

/** Waits for a person in `pause`, then makes this call and says what came of it. */
function pausesThenCalls(name: string): Script {
  return ({ messages }) => {
    const results = messages.filter(({ role }) => role === 'tool')
    if (results.length === 0) return { calls: [{ name: 'pause', input: {} }] }
    if (results.length === 1) return { calls: [{ name, input: { message: 'go' } }] }
    return String(results[1]?.content)
  }
}

function release({ worker, offer, profile, host, helper, isOfferGone }: Release, calls: string): AnyAgent[] {
  const helperModel = scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    return last?.role === 'tool' ? String(last.content) : { calls: [{ name: 'write', input: {} }] }
  })
  const below = agent({
    name: 'helper',
    instructions: '',
    model: helperModel,
    tools: { write: named('written') },
    ...(helper === undefined ? {} : { grant: helper }),
  })
  const child = agent({
    name: 'worker',
    instructions: '',
    model: scriptedModel(pausesThenCalls(calls)),
    tools: { pause: named('paused'), read: named('read'), write: named('written') },
    subagents: { help: below },
    grant: { ...PAUSE, ...worker },
  })
  const boss = agent({
    name: 'host',
    instructions: '',
    model: scriptedModel(({ messages }) => {
      const last = messages.at(-1)
      return last?.role === 'tool' ? String(last.content) : { calls: [{ name: 'ask', input: { message: 'go' } }] }
    }),
    ...(isOfferGone === true
      ? {}
      : {
          subagents: {
            ask: {
              agent: child,
              ...(offer === undefined ? {} : { grant: offer }),
              ...(profile === undefined ? {} : { profile }),
            },
          },
        }),
    ...(host === undefined ? {} : { grant: host }),
  })
  return [boss as AnyAgent, child as AnyAgent]
}

const ALL = ['tool:*', 'agent:*', 'model:*']
const NO_WRITE = ['tool:pause', 'tool:read', 'agent:*', 'model:*']

describe.each(lasting)('a child that waits while another release is installed, on %s', (_, create) => {
  const world = useWorld(create)

  /** What the child's next call comes to. */
  async function afterUpdate(before: Release, after: Release, calls = 'write'): Promise<string> {
    const first = world.start({ profiles: PROFILES })
    const [host] = release(before, calls)
    const run = first.runtime.run(host as AnyAgent, 'go' as never)
    for await (const event of run) if (event.type === 'approval-request') break
    await first.runtime.close()
    const next = world.start({ profiles: PROFILES, agents: release(after, calls) })
    await next.runtime.resume()
    const [asked] = await next.runtime.approvals()
    await next.runtime.answer(asked?.nodeId ?? '', { allow: true })
    const { text } = await (await next.runtime.attach(run.id)).result
    await next.runtime.close()
    return text.includes('written') ? 'written' : (/not allowed here: (.*)\./.exec(text)?.[1] ?? text)
  }

  test.each<[string, Release, Release]>([
    ['its own grant', { worker: { use: NO_WRITE } }, { worker: { use: ALL } }],
    ['its own grant, which is left out', { worker: { use: NO_WRITE } }, {}],
    ['its own denials', { worker: { deny: ['tool:write'] } }, { worker: {} }],
    ['its own grant beside what it passes on', { worker: { use: NO_WRITE, delegate: ALL } }, { worker: { use: ALL } }],
    ['its offer', { offer: { use: NO_WRITE } }, {}],
    ['its profile', { profile: 'readers' }, { profile: 'full' }],
    ['its host', { host: { delegate: NO_WRITE } }, { host: { delegate: ALL } }],
  ])('I1: is not widened by %s', async (_name, before, after) => {
    expect(await afterUpdate(before, after)).toMatch(/tool:write/)
  })

  test.each<[string, Release, Release]>([
    ['its own grant', {}, { worker: { use: NO_WRITE } }],
    ['its own denials', { worker: { use: ALL } }, { worker: { use: ALL, deny: ['tool:write'] } }],
    ['its offer', {}, { offer: { use: NO_WRITE } }],
    ['its offer, which was wider', { offer: { use: ALL } }, { offer: { use: NO_WRITE } }],
    ['its profile', { profile: 'full' }, { profile: 'readers' }],
    ['its host', {}, { host: { delegate: NO_WRITE } }],
  ])('is narrowed by %s, at its next node', async (_name, before, after) => {
    expect(await afterUpdate(before, after)).toMatch(/tool:write/)
  })

  test.each<[string, Release]>([
    ['nothing', {}],
    ['a grant of its own', { worker: { use: ALL }, offer: { use: ALL }, profile: 'full', host: { delegate: ALL } }],
  ])('goes on as it was where %s was said and nothing changed', async (_name, same) => {
    expect(await afterUpdate(same, same)).toBe('written')
  })

  test('stays as it was where its offer is gone', async () => {
    expect(await afterUpdate({ offer: { use: ALL } }, { isOfferGone: true })).toBe('written')
    expect(await afterUpdate({ offer: { use: NO_WRITE } }, { isOfferGone: true })).toMatch(/tool:write/)
  })

  test('I1: what it passes on is frozen with it, and is not what it may do itself', async () => {
    const narrow = { worker: { use: ALL, delegate: NO_WRITE } }
    expect(await afterUpdate(narrow, { worker: { use: ALL } }, 'help')).toMatch(/tool:write/)
    expect(await afterUpdate({ worker: { use: ALL } }, narrow, 'help')).toMatch(/tool:write/)
    const worker = { use: NO_WRITE, delegate: ALL }
    expect(await afterUpdate({ worker }, { worker }, 'help')).toBe('written')
  })
})
