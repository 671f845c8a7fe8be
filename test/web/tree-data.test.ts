import { agent, tool } from 'legate'
import { emptyTree, reduceTree, type TreeState } from 'legate/client'
import { scriptedModel } from 'legate/testing'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { entriesOf, NO_ENTRIES } from '../../web/pages/thread/state/entries.ts'
import { changesOf, diffLines } from '../../web/pages/thread/state/file-changes.ts'
import { activityOf, answerLine, argumentLine } from '../../web/words/activity.ts'
import { answerOf, jsonIn, pretty, textOf } from '../../web/words/content.ts'
import { queuedAfter, ranSince, shownDeep, shownNode, shownStatus, turnShown } from '../../web/words/shown.ts'
import { callsThenSays, simpleTool, useWorld } from '../support/agents.ts'
import { eventsOf } from '../support/rows.ts'
import { stores } from '../support/stores.ts'

const [[, create]] = stores as [(typeof stores)[number]]
const world = useWorld(create)

/** A host, a child and a call that a person must allow: its events, and the ids that they name. */
async function waiting() {
  const child = agent({
    name: 'child',
    instructions: '',
    input: z.object({}),
    tools: {
      look: simpleTool(() => 'seen'),
      deploy: tool({ description: '', input: z.object({}), execute: () => 'out' }),
    },
    grant: { use: ['model:*', 'tool:look'], ask: ['tool:deploy'] },
    model: scriptedModel(callsThenSays('look', 'deploy')),
  })
  const host = agent({
    name: 'host',
    instructions: '',
    subagents: { child },
    model: scriptedModel(callsThenSays('child')),
  })
  const { runtime, store } = world.start()
  const run = runtime.run(host, 'go')
  await expect.poll(async () => (await runtime.approvals()).length, { timeout: 10_000 }).toBe(1)
  const events = eventsOf(store, run.conversationId)
  const state = events.reduce<TreeState>(reduceTree, emptyTree())
  const [task] = state.nodes.values().filter(({ childIds }) => childIds.length > 0)
  return { runtime, store, run, events, state, childId: task?.childIds[0] ?? '' }
}

test('a tree tells what each run does, and which child a call started', async () => {
  const { runtime, run, state, childId } = await waiting()

  expect(state.runs.get(childId)?.agent).toBe('child')
  expect(activityOf(state, run.id)).toBe('waits for child')
  expect(activityOf(state, childId)).toBe('deploy needs a yes')
  // The step that asked may be at its end still.
  await expect.poll(async () => (await runtime.tree(run.conversationId)).runs.map(shownDeep)).toEqual(['needs'])
})

test('the entries of a run grow: those that are the same stay the same objects', async () => {
  const { events, childId } = await waiting()
  let state = emptyTree()
  let before = NO_ENTRIES
  for (const event of events) {
    state = reduceTree(state, event)
    const now = entriesOf(state, childId, before)
    expect(now.all).toEqual(entriesOf(state, childId, NO_ENTRIES).all)
    for (const [at, entry] of before.all.slice(0, -1).entries()) expect(now.all[at]).toBe(entry)
    before = now
  }
  const names = before.all.map(({ callIds }) => callIds.map((id) => state.nodes.get(id)?.what))
  expect(names.flat()).toEqual(['look', 'deploy'])
})

test('a node keeps what it asked, and who answered how', async () => {
  const { runtime, store, run, state } = await waiting()
  const [asked] = await runtime.approvals()
  await runtime.answer(asked?.nodeId ?? '', { allow: false, by: 'ann@web', reason: 'not today' })
  await run.result
  const node = eventsOf(store, run.conversationId)
    .reduce<TreeState>(reduceTree, emptyTree())
    .nodes.get(asked?.nodeId ?? '')

  expect(state.nodes.get(asked?.nodeId ?? '')?.asked).toMatchObject([{ request: 'tool:deploy', answer: null }])
  expect(node?.asked).toMatchObject([
    { request: 'tool:deploy', answer: { by: 'ann@web', allowed: false, text: 'not today' } },
  ])
  expect(node === undefined ? '' : shownNode(node)).toBe('cancelled')
})

test('a turn that waits is shown, not those that are queued behind it', async () => {
  const { runtime, run } = await waiting()
  const [turn] = (await runtime.tree(run.conversationId)).runs
  if (turn === undefined) throw new Error('There is no turn.')
  const runs = [turn, { ...turn, runId: 'next', state: 'queued' as const, children: [] }]

  expect(turnShown(runs)?.runId).toBe(run.id)
  expect(queuedAfter(runs)).toBe(1)
  expect([turnShown(runs.slice(1))?.runId, queuedAfter(runs.slice(1))]).toEqual([runs[1]?.runId, 0])
  expect([turnShown([]), queuedAfter([])]).toEqual([undefined, 0])
})

test('the wait for a person is the time of neither the call nor the answer after it', async () => {
  const { runtime, store, run } = await waiting()
  const [asked] = await runtime.approvals()
  await runtime.answer(asked?.nodeId ?? '', { allow: true, by: 'ann@web' })
  await run.result
  const events = eventsOf(store, run.conversationId)
  const { nodes } = events.reduce<TreeState>(reduceTree, emptyTree())
  const said = events.find(({ type }) => type === 'approval-answer')
  const after = [...nodes.values()].filter(({ role, endedAt }) => role === 'agent' && (endedAt ?? 0) >= (said?.at ?? 0))
  const deploy = nodes.get(asked?.nodeId ?? '')

  expect(deploy === undefined ? 0 : ranSince(deploy)).toBe(said?.at)
  expect(after).toHaveLength(2)
  for (const { startedAt } of after) expect(startedAt).toBeGreaterThanOrEqual(said?.at ?? 0)
})

test('statuses, contents and arguments in words', () => {
  expect([
    shownStatus('completed'),
    shownStatus('over_budget'),
    shownStatus('cancelled'),
    shownStatus('uncertain'),
  ]).toEqual(['done', 'failed', 'cancelled', 'uncertain'])
  expect(
    textOf([
      { type: 'text', text: 'a' },
      { type: 'image', mediaType: 'image/png', data: '' },
    ]),
  ).toBe('a\n\n(image, image/png)')
  expect([jsonIn('{"a":1}'), jsonIn('{a'), jsonIn('7')]).toEqual([{ a: 1 }, undefined, undefined])
  expect(pretty('[1]')).toBe('[\n 1\n]')
  expect(answerOf('session_id: 01a1ebce-1\n\nWeb is out.')).toBe('Web is out.')
  expect(answerOf('Web is out.')).toBe('Web is out.')
  expect([answerLine('{"title":"QUIC","year":2021}'), answerLine('a\nb')]).toEqual(['QUIC 2021', 'a b'])
  expect(argumentLine({ path: 'a.ts', lines: [1, 2] })).toBe('a.ts [1,2]')
})

test('the change of a file is read from the call that made it', () => {
  const edits = [{ oldText: 'a\nb\nc', newText: 'a\nx\nc' }]
  const call = { id: '1', name: 'edit_file', input: { path: '/w/a.ts', edits } }

  expect(changesOf({ what: 'edit_file', call })).toMatchObject([{ path: '/w/a.ts', added: 1, removed: 1 }])
  expect(diffLines('a\nb\nc', 'a\nx\nc').map(({ kind, text }) => `${kind} ${text}`)).toEqual([
    'same a',
    'remove b',
    'add x',
    'same c',
  ])
  expect(changesOf({ what: 'shell', call })).toEqual([])
  expect(changesOf({ what: 'edit_file', call: { ...call, input: 'no' } })).toEqual([])
})
