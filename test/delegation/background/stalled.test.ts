import { agent, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { useWorld } from '../../support/agents.ts'
import { makeGate } from '../../support/gate.ts'
import { eventsOfType } from '../../support/rows.ts'
import { memoryRows } from '../../support/stores.ts'
import { call, gaveIn, hostOf, idIn, playing, resultsIn, spawnCall, until } from './support.ts'

describe('a child without progress is reported to its host, with its last activity', () => {
  const world = useWorld(memoryRows)
  /** Long enough that a busy machine is not taken for a silent child. */
  const engine = { sweepMs: 10, stalledMs: 250 }

  test('once, in the events of its host and where it looks at its children; and not any more when it goes on', async () => {
    const silent = makeGate()
    const hang = tool({
      description: 'Hangs.',
      input: { type: 'object' },
      effect: 'pure',
      execute: async (_, { progress }) => {
        await silent.opened
        progress('awake again')
        await new Promise((resolve) => setTimeout(resolve, 40))
        return 'ok'
      },
    })
    const worker = agent({
      name: 'worker',
      instructions: 'x',
      tools: { hang },
      model: scriptedModel((request) => (resultsIn(request).length === 0 ? call('hang') : 'worked')),
    })
    const { host } = hostOf(
      playing(
        () => ({ calls: [spawnCall()] }),
        () => call('subagent_wait', { timeout_ms: 900 }),
        (results) => call('subagent_poll', { child_conversation_id: idIn(results[0]) }),
        () => call('subagent_list'),
        () => {
          silent.open()
          return call('subagent_wait')
        },
      ),
      { agent: worker },
    )
    const { runtime } = world.start({ agents: [host], engine })
    const run = runtime.run(host, 'go')
    await run.result
    const [link] = world.store.linksOf(run.id)
    const [, looked, polled, listed, ended] = gaveIn(world.store, run.id)

    const silence = { stalled: true, last_activity: expect.stringMatching(/Z$/) }
    expect([looked, polled, listed]).toMatchObject([{ children: [silence] }, silence, { children: [silence] }])
    expect(ended).toMatchObject({ children: [{ outcome: 'completed' }] })
    // On a busy machine the host may be silent for as long too.
    const told = eventsOfType(world.store, run.conversationId, 'stalled').filter(({ agent: name }) => name === 'worker')
    expect(told).toMatchObject([
      { runId: run.id, agent: 'worker', childRunId: link?.id, childConversationId: link?.childConversationId },
    ])
  })

  test('a child that streams is not reported', async () => {
    const worker = agent({
      name: 'worker',
      instructions: 'x',
      model: {
        id: 'streaming/model',
        async *stream() {
          for (let at = 0; at < 40; at++) {
            await new Promise((resolve) => setTimeout(resolve, 15))
            yield { type: 'text-delta', text: `${at} ` } as const
          }
          yield { type: 'finish', reason: 'stop', usage: USAGE } as const
        },
      },
    })
    const { host } = hostOf(
      playing(
        () => ({ calls: [spawnCall()] }),
        () => call('subagent_wait'),
      ),
      { agent: worker },
    )
    const { runtime } = world.start({ agents: [host], engine })
    const run = runtime.run(host, 'go')
    await run.result

    expect(eventsOfType(world.store, run.conversationId, 'stalled')).toEqual([])
  })

  test('a child that waits for its own child is not reported', async () => {
    const deep = makeGate()
    const inner = agent({
      name: 'inner',
      instructions: 'x',
      model: scriptedModel(async () => {
        await deep.opened
        return 'ok'
      }),
    })
    const outer = agent({
      name: 'outer',
      instructions: 'x',
      model: scriptedModel(playing(() => call('call_inner', { message: 'x' }))),
      subagents: [inner],
    })
    const { host } = hostOf(
      playing(() => ({ calls: [spawnCall()] })),
      { agent: outer },
    )
    const { runtime } = world.start({ agents: [host], engine })
    const run = runtime.run(host, 'go')
    await run.result
    await until(() => eventsOfType(world.store, run.conversationId, 'stalled')[0])
    deep.open()
    await runtime.idle()

    expect(eventsOfType(world.store, run.conversationId, 'stalled').map(({ agent: name }) => name)).toEqual(['inner'])
  })
})

const USAGE = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0 }
