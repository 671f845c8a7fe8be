import { agent, backgroundSubagents, createRuntime } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { inheritedTurns } from '../../src/delegation/background/read.ts'
import { hostOf, idIn, parsed, playing, spawnCall, tasksIn, workerOf } from './support.ts'

describe('cybros 14.1: subagent_spawn', () => {
  test("cybros A1 and A2: makes a child with a conversation of its own, and says so in the seed's words", async () => {
    const worker = workerOf(() => 'worked')
    const { host } = hostOf(
      playing(() => ({ calls: [spawnCall('My Agent', 'hello')] })),
      { agent: worker },
    )
    const runtime = createRuntime()

    const run = runtime.run(host, 'go')
    const outcome = await run.result
    await runtime.idle()
    const [task] = tasksIn(runtime.store, run.id)
    const said = parsed(String(task?.output.content))
    const child = runtime.store.conversation(idIn(String(task?.output.content)))

    expect(outcome.status).toBe('completed')
    expect(said).toEqual({
      ok: true,
      child_conversation_id: child?.id,
      child_graph_id: child?.id,
      agent_key: 'subagent:my_agent',
      policy_profile: 'full',
      status: 'spawned',
    })
    expect(task?.output.metadata?.['subagent']).toEqual(said)
    expect(task?.metadata['subagent']).toEqual({ child_conversation_id: child?.id, child_graph_id: child?.id })
    expect(child?.metadata).toEqual({
      agent: { key: 'subagent:my_agent', policy_profile: 'full', context_turns: 50 },
      subagent: {
        name: 'My Agent',
        parent_conversation_id: run.conversationId,
        parent_graph_id: run.conversationId,
        spawned_from_node_id: task?.id,
      },
    })
    expect(child).toMatchObject({ type: 'sub_agent', title: 'subagent:my_agent', depth: 1 })
    await runtime.close()
  })
})
