import { describe, expect, test } from 'vitest'
import type { EventRow } from '../../graph/event.ts'
import { USUAL_CONVERSATION as CONVERSATION, USUAL_LINK as LINK, USUAL_TURN as TURN } from '../../graph/rows.made.ts'
import type { Conversation, Link, Node, Turn } from '../../graph/rows.ts'
import { fromJournal, packEvents, toJournal, unpackEvents } from './event-text.ts'
import { USUAL_NODE as NODE, packConversation, packLink, packNode, packTurn } from './rows.made.ts'
import { parseRow, toConversation, toLink, toNode, toTurn } from './rows.ts'

const host: Turn = { ...TURN, id: 't-1', rootId: 'c-1', conversationId: 'c-1', laneId: 'c-1' }
const place = { rootId: 'c-1', conversationId: 'c-1', turnId: 't-1', laneId: 'c-1' }
const child = { child_conversation_id: 'c-2', child_graph_id: 'c-2' }
const end = {
  status: 'completed',
  run_id: 't-2',
  conversation_id: 'c-2',
  error: null,
  usage: { inputTokens: 1, outputTokens: 2, cacheReadTokens: 0, cacheWriteTokens: 0 },
  duration_ms: 3,
  turns: 1,
  retryable: false,
  advice: null,
}

function task(changes: Partial<Node>): Node {
  return { ...NODE, id: 'n-1', versionSet: 'n-1', kind: 'task', ...place, ...changes }
}

describe('a row is read as it was written, and written as the same text again', () => {
  const nodes: readonly [string, Partial<Node>][] = [
    ['that waits for its child', { state: 'waiting', metadata: { subagent: child }, output: { subagent: child } }],
    ['whose child ended well', ended({ outcome: end })],
    ['whose child said nothing and used nothing', ended({ outcome: { ...end, usage: { ...NODE.usage }, turns: 0 } })],
    ['whose child failed', ended({ outcome: { ...end, status: 'failed', error: { code: 'x', message: 'y' } } })],
    ['whose end has more to tell', ended({ outcome: { ...end, absent: [] } })],
    ['whose end is told in another order', ended({ outcome: Object.fromEntries(Object.entries(end).reverse()) })],
    ['whose end has a list for an outcome', ended({ outcome: ['t-2', 0, 3, 1] })],
    ['whose end has no outcome', ended({ outcome: null })],
    [
      'that says more of itself',
      { metadata: { a: 1, subagent: child, b: 2 }, output: { subagent: child, content: 'x' } },
    ],
    ['that has its child only in its output', { output: { subagent: child } }],
    ['that has its child only in its metadata', { metadata: { subagent: child } }],
    [
      'that has two children',
      { metadata: { subagent: { ...child, child_graph_id: 'c-3' } }, output: { subagent: child } },
    ],
    ['whose child has a third field', { metadata: { subagent: { ...child, more: 1 } }, output: { subagent: child } }],
    ['of one moment', { createdAt: 5, startedAt: 5, endedAt: 5 }],
    ['that ended without being started', { createdAt: 5, startedAt: null, endedAt: 9 }],
    ['that has begun', { createdAt: 5, startedAt: 7, endedAt: null }],
    ['of a clock that was set back', { createdAt: 9, startedAt: 7, endedAt: 5 }],
    ['of a clock with fractions', { createdAt: 0.1, startedAt: 0.7, endedAt: 1e15 + 0.125 }],
  ]

  test.each(nodes)('a node %s', (_, changes) => {
    const row = task(changes)
    const text = packNode(row)
    const read = toNode(parseRow(text) as Parameters<typeof toNode>[0], host)

    expect(read).toEqual(row)
    expect(packNode(read)).toBe(text)
  })

  const facts = {
    agent: { name: 'sub', hash: 'h' },
    parentConversationId: 'c-1',
    parentTurnId: 't-1',
    parentTaskId: 'n-1',
  }
  const origin = { name: 'sub', parent_conversation_id: 'c-1', parent_graph_id: 'c-1', spawned_from_node_id: 'n-1' }
  const conversations: readonly [string, Partial<Conversation>][] = [
    ['of a child', { ...facts, metadata: { subagent: origin } }],
    ['of a child that says nothing of it', { ...facts, metadata: {} }],
    ['of a child that says more', { ...facts, metadata: { subagent: origin, more: true } }],
    ['of a child that was moved', { ...facts, metadata: { subagent: { ...origin, name: 'other' } } }],
    ['of a child with a fifth field', { ...facts, metadata: { subagent: { ...origin, more: 1 } } }],
    ['of a child of a child', { ...facts, parentConversationId: 'c-7', metadata: {} }],
    ['with a turn but no conversation above it', { ...facts, parentConversationId: null, metadata: {} }],
    ['of a person', { metadata: { note: 'x' } }],
    ['of a person who says nothing', {}],
  ]

  test.each(conversations)('a conversation %s', (_, changes) => {
    const row = { ...CONVERSATION, id: 'c-2', rootId: 'c-1', path: ['host', 'sub'], ...changes }
    const text = packConversation(row)
    const read = toConversation(parseRow(text) as Parameters<typeof toConversation>[0])

    expect(read).toEqual(row)
    expect(packConversation(read)).toBe(text)
  })

  const links: readonly [string, Partial<Link>][] = [
    ['that its task was told of', { deliveredTo: 'n-1' }],
    ['that another was told of', { deliveredTo: 'n-9' }],
    ['that nobody was told of', { toolName: 'ask', depth: 3 }],
  ]

  test.each(links)('a link %s', (_, changes) => {
    const of = { rootId: 'c-1', hostTurnId: 't-1', hostConversationId: 'c-1', taskId: 'n-1', agentName: 'sub' }
    const row = { ...LINK, id: 't-2', childConversationId: 'c-2', toolName: 'sub', ...of, ...changes }
    const text = packLink(row)
    const read = toLink(parseRow(text) as Parameters<typeof toLink>[0], host)

    expect(read).toEqual(row)
    expect(packLink(read)).toBe(text)
  })

  test('a turn, and rows with the fields that times were once written in', () => {
    const row = { ...host, createdAt: 5, startedAt: 6, endedAt: 8 }
    const { times: _, ...packed } = JSON.parse(packTurn(row)) as { times: unknown }
    const older = JSON.stringify({ ...packed, createdAt: 5, startedAt: 6, endedAt: 8 })

    expect(toTurn(parseRow(packTurn(row)) as Parameters<typeof toTurn>[0])).toEqual(row)
    expect(toTurn(parseRow(older) as Parameters<typeof toTurn>[0])).toEqual(row)
  })
})

function ended(metadata: NonNullable<Node['output']['metadata']>): Partial<Node> {
  return { metadata: { subagent: child }, output: { content: 'Done.', metadata, subagent: child } }
}

describe('an event', () => {
  const at = { seq: 1, at: 5, conversationId: 'c-1', runId: 't-1', nodeId: 'n-1', path: ['host'], parentId: null }
  const body = { type: 'compaction', change: 'by_hand', summaryId: 'n-1', turns: 2 } as const
  const event: EventRow = { ...at, body: { ...body, fromRunId: 't-0', toRunId: 't-1' } }

  test('is written with the names that older files have, and read back', () => {
    const text = packEvents([event])

    expect(text).toBe(
      '[{"at":5,"conversationId":"c-1","turnId":"t-1","nodeId":"n-1","path":["host"],"body":{"type":"compaction",' +
        '"change":"by_hand","summaryId":"n-1","fromTurnId":"t-0","toTurnId":"t-1","turns":2}}]',
    )
    expect(unpackEvents(text, 1)).toEqual([event])
    expect(fromJournal(toJournal(event))).toEqual(event)
    expect(toJournal(event)).toMatchObject({ turnId: 't-1', body: { fromTurnId: 't-0', toTurnId: 't-1' } })
  })
})
