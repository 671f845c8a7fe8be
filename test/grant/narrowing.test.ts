import { type AnyAgent, agent, type Grant, tool } from 'legate'
import { type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../support/agents.ts'
import { makeGate } from '../support/gate.ts'
import { until } from '../support/process.ts'

import { stores } from '../support/stores.ts'

/** A child between two of its calls when its process dies. What its host says then is what the next one has. */
describe.each(stores)('a child that goes on, on %s', (_, create) => {
  const world = useWorld(create)

  async function writesAfter(before: Grant, after: Grant): Promise<string[]> {
    const wrote: string[] = []
    const thinking = makeGate()
    const write = tool({
      description: 'Writes.',
      input: { type: 'object' },
      effect: 'pure',
      execute: (input) => {
        wrote.push((input as { when: string }).when)
        return 'written'
      },
    })
    const script =
      (isFirst: boolean): Script =>
      ({ messages }) => {
        const results = messages.filter(({ role }) => role === 'tool').length
        if (results === 0) return { calls: [{ name: 'write', input: { when: 'before' } }] }
        if (!isFirst) return results === 1 ? { calls: [{ name: 'write', input: { when: 'after' } }] } : 'done'
        thinking.open()
        return new Promise(() => undefined)
      }
    const hostOf = (isFirst: boolean, grant: Grant): AnyAgent => {
      const model = scriptedModel(script(isFirst))
      const worker = agent({ name: 'worker', instructions: '', model, tools: { write } })
      const asks = scriptedModel(({ messages }) =>
        messages.some(({ role }) => role === 'tool') ? 'end' : { calls: [{ name: 'ask', input: { message: 'go' } }] },
      )
      return agent({ name: 'host', instructions: '', model: asks, subagents: { ask: worker }, grant }) as AnyAgent
    }
    const first = world.start()
    const run = first.runtime.run(hostOf(true, before), 'go' as never)
    run.result.catch(() => undefined)
    await thinking.opened
    await first.kill()

    const second = world.start({ agents: [hostOf(false, after)] })
    await second.runtime.resume()
    await until('the end', () => second.store.turn(run.id)?.outcome ?? undefined)
    return wrote
  }

  test.each<[string, Grant, Grant, readonly string[]]>([
    ['is narrowed by a deny', {}, { deny: ['tool:write'] }, ['before']],
    ['is narrowed by what is no longer passed on', {}, { use: ['agent:*'], delegate: [] }, ['before']],
    ['goes on as it was where nothing changed', {}, {}, ['before', 'after']],
  ])('%s, at its next node', async (_name, before, after, wrote) => {
    expect(await writesAfter(before, after)).toEqual(wrote)
  })

  test('is not widened: what was denied when it began stays denied', async () => {
    expect(await writesAfter({ deny: ['tool:write'] }, { delegate: ['tool:*', 'agent:*'] })).toEqual([])
  })
})
