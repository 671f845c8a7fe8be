import { type AnyAgent, agent, SubAgentUnavailable, type Subagents } from 'legate'
import type { ToolSchema } from 'legate/models'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { openRuntime, resultsIn } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'

/** What a host's model is offered for its subagents. */
async function offered(subagents: Subagents): Promise<readonly ToolSchema[]> {
  const model = scriptedModel(['done'])
  await openRuntime().run(agent({ name: 'host', instructions: '', model, subagents }), 'go').result
  return model.requests[0]?.tools ?? []
}

const named = (subagents: Subagents) => offered(subagents).then((tools) => tools.map(({ name }) => name))

function expert(name = 'Expert', description = 'Knows.'): AnyAgent {
  return agent({ name, description, instructions: '', model: scriptedModel(() => `from ${name}`) })
}

describe('subagents in a list', () => {
  test('agents, functions that give one, and settings, each by the name that its agent gives', async () => {
    const tools = await offered([expert('One'), () => expert('Two'), { agent: expert('Three'), description: 'Mine.' }])

    expect(tools.map(({ name, description }) => `${name}: ${description}`)).toEqual([
      'call_one: Knows.',
      'call_two: Knows.',
      'call_three: Mine.',
    ])
  })

  test('a blank name and description count as unset, and what is said is trimmed', async () => {
    expect(await named([{ agent: expert(), toolName: '  ' }])).toEqual(['call_expert'])
    expect(await named([{ agent: expert(), toolName: ' ask_expert ' }])).toEqual(['ask_expert'])
    expect(await named({ ask: { agent: expert(), toolName: '' } })).toEqual(['ask'])
    expect(await named([{ agent: expert('_') }])).toEqual(['call_agent'])
    expect((await offered([{ agent: expert(), description: ' ' }]))[0]?.description).toBe('Knows.')
    expect((await offered([expert('Expert', '')]))[0]?.description).toBe('Call Expert to complete tasks')
  })

  test('a function is called once when the host is defined, and once per delegation after the first', async () => {
    let made = 0
    const provider = () => {
      made++
      return expert()
    }
    const calls = [{ name: 'call_expert', input: { message: 'hi' } }]
    const model = scriptedModel([{ calls }, { calls: [...calls, ...calls] }, 'done'])
    const host = agent({ name: 'host', instructions: '', model, subagents: [provider] })
    expect(made).toBe(1)

    const outcome = await openRuntime().run(host, 'go').result

    expect(outcome).toMatchObject({ status: 'completed', children: 3 })
    expect(made).toBe(3)
    expect(resultsIn(model.requests[2])).toHaveLength(3)
  })

  test('with name and description said, it is not called before it is used', () => {
    let made = 0
    const provider = () => {
      made++
      return expert()
    }
    agent({ name: 'host', instructions: '', subagents: [{ agent: provider, toolName: 'ask', description: 'Asks.' }] })

    expect(made).toBe(0)
  })

  test('two that come to the same name are refused', () => {
    const both = [expert('Research Agent'), () => expert('research_agent')]

    expect(() => agent({ name: 'host', instructions: '', subagents: both })).toThrow(/call_research_agent/)
  })

  test.each<[string, unknown, string]>([
    [
      'throws',
      () => {
        throw new Error('no licence')
      },
      'failed: no licence',
    ],
    ['gives nothing', () => undefined, 'is not an agent'],
  ])('a subagent that %s is refused when the host is defined, with the reason', (_, provider, words) => {
    const define = () => agent({ name: 'host', instructions: '', subagents: [provider as () => AnyAgent] })

    expect(define).toThrow(SubAgentUnavailable)
    expect(define).toThrow(words)
  })

  test('without settings all is forwarded, and sessions are in the runtime’s own store', async () => {
    const model = scriptedModel([{ calls: [{ name: 'ask', input: { message: 'hi' } }] }, 'done'])
    const host = agent({
      name: 'host',
      instructions: '',
      model,
      subagents: { ask: { agent: expert(), session: null as never } },
    })
    const runtime = openRuntime()
    const run = runtime.run(host, 'go')
    const paths = new Set<string>()
    for await (const { path } of run) paths.add(path.join('/'))

    expect([...paths]).toEqual(['host', 'host/Expert'])
    const [link] = localStore(runtime).linksOf(run.id)
    expect(localStore(runtime).conversation(link?.childConversationId ?? '')?.metadata).not.toHaveProperty(
      'forward_events',
    )
  })
})
