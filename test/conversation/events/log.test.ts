import { agent, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { expect, test } from 'vitest'
import { speaker, talkOf } from '../../support/agents.ts'
import { openRuntime } from '../../support/reading.ts'

test('what is done to a graph by hand is told, each with what it was before and after', async () => {
  const runtime = openRuntime({ kinds: { work: { leaf: true, execute: async () => ({ output: { content: 'x' } }) } } })
  const talk = await talkOf(runtime)
  const { turnId, first, second } = await talk.mutate((m) => {
    const made = [m.createNode({ kind: 'task', state: 'awaiting_approval' }), m.createNode({ kind: 'task' })] as const
    m.createEdge(made[0].id, made[1].id, 'dependency')
    return { turnId: m.runId, first: made[0].id, second: made[1].id }
  })
  await runtime.answer(first, { allow: false, reason: 'no' })
  await (await runtime.attach(turnId)).result

  const events = (await talk.eventPage({ limit: 500 })).filter((event) => event.runId === turnId)
  const changes = events.flatMap((event) => (event.type === 'graph-change' ? [[event.change, event.nodeId]] : []))

  expect(changes).toEqual([
    ['node', first],
    ['node', second],
    ['edge', second],
    ['leaf', expect.any(String)],
  ])
  const ends = events.flatMap((event) => (event.type === 'tool-result' ? [[event.nodeId, event.state]] : []))
  expect(ends).toEqual([
    [first, 'rejected'],
    [second, 'skipped'],
  ])
  expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(['run-start', 'approval-answer', 'run-end']))
})

test('a type of event that there is not is refused', async () => {
  const runtime = openRuntime()
  const talk = await talkOf(runtime, speaker('one'))

  await expect(talk.eventPage({ types: ['nonsense' as 'warning'] })).rejects.toThrow(/There is no event "nonsense"/)
})

test('the id of a run is runId in its outcome, events, calls and lines', async () => {
  const seen: string[] = []
  const runtime = openRuntime()
  const look = tool({
    description: 'Looks.',
    input: { type: 'object' },
    execute: (_input, { node }) => seen.push(node.runId),
  })
  const calls = [{ id: 'c1', name: 'look', input: {} }]
  const host = agent({
    name: 'host',
    instructions: 'You look.',
    tools: { look },
    model: scriptedModel(({ messages }) => (messages.at(-1)?.role === 'user' ? { calls } : 'Seen.')),
  })
  const run = runtime.run(host, 'Look.')
  const outcome = await run.result
  for await (const event of run.events()) seen.push(event.runId)
  const talk = await runtime.conversation(run.conversationId)
  for (const line of await talk.transcript()) seen.push(line.runId)
  seen.push(...(await talk.transcriptPage({})).runIds)

  expect(seen.length).toBeGreaterThan(8)
  expect(new Set([outcome.runId, ...seen])).toEqual(new Set([run.id]))
})
