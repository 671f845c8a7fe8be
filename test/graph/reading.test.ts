import { agent, type ConversationHandle } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Draft } from '../../src/core/graph/draft.ts'
import type { Turn } from '../../src/core/graph/rows.ts'
import type { LocalStore } from '../../src/core/store/store.ts'
import { commitOf, linkRow } from '../../src/testing/conformance/store-rows.ts'
import { asksThenSays, callsThenSays, simpleTool, useWorld } from '../support/agents.ts'
import { Graph } from '../support/graph.ts'
import { longTalk } from '../support/long-talk.ts'
import { watchWork } from '../support/pace.ts'
import { openRuntime } from '../support/reading.ts'
import { localStore, withReads } from '../support/rows.ts'
import { lasting, stores } from '../support/stores.ts'

async function talkOf(rounds: number) {
  const runtime = openRuntime()
  const clerk = agent({
    name: 'clerk',
    instructions: '',
    model: scriptedModel(({ messages }) => `re ${messages.at(-1)?.content}`),
  })
  const runs = []
  let conversationId: string | undefined
  for (let round = 0; round < rounds; round++) {
    const run = runtime.run(clerk, `${round}`, conversationId === undefined ? {} : { conversationId })
    conversationId = run.conversationId
    runs.push(run)
    await run.result
  }
  return { runtime, runs, talk: await runtime.conversation(conversationId ?? '') }
}

const words = (lines: readonly { readonly text: string }[]) => lines.map(({ text }) => text)

describe('a page of a transcript', () => {
  test('is the latest, the older or the newer turns, in their order, with cursors for both sides', async () => {
    const { talk, runs } = await talkOf(7)

    const latest = await talk.transcriptPage({ limitTurns: 2 })
    expect(words(latest.transcript)).toEqual(['5', 're 5', '6', 're 6'])
    expect(latest).toMatchObject({ beforeRunId: runs[5]?.id, afterRunId: runs[6]?.id })
    const older = await talk.transcriptPage({ limitTurns: 3, beforeRunId: latest.beforeRunId ?? '' })
    expect(older.runIds).toEqual(runs.slice(2, 5).map(({ id }) => id))
    const newer = await talk.transcriptPage({ limitTurns: 2, afterRunId: older.afterRunId ?? '' })
    expect(newer).toEqual(latest)
    expect((await talk.transcriptPage({ beforeRunId: runs[0]?.id ?? '' })).runIds).toEqual([])
    expect((await talk.transcriptPage({ afterRunId: runs[6]?.id ?? '' })).runIds).toEqual([])
    expect(words(await talk.recentTurns({ limitTurns: 1 }))).toEqual(['6', 're 6'])
  })

  test.each([[0], [-3]])('of %d turns is empty', async (limitTurns) => {
    const { talk } = await talkOf(1)

    expect(await talk.transcriptPage({ limitTurns })).toEqual({
      runIds: [],
      beforeRunId: null,
      afterRunId: null,
      transcript: [],
    })
  })

  test.each([[1.2], ['abc'], [null], [Number.NaN], [{}], ['1.0'], [true]])(
    'of %j turns is a mistake',
    async (limitTurns) => {
      const { talk } = await talkOf(1)

      await expect(talk.transcript({ limitTurns: limitTurns as never })).rejects.toThrow(
        /limitTurns must be a whole number/,
      )
    },
  )

  test('is of 50 turns or messages where no limit is said; no page is of 0 messages', async () => {
    const { talk } = await talkOf(51)

    await expect(talk.messagePage({ limit: 0 })).rejects.toThrow('limit must be at least 1, not 0')
    expect(await talk.transcript()).toHaveLength(100)
    expect(await talk.messagePage()).toHaveLength(50)
  })

  test('takes digits, and never more than a thousand turns', async () => {
    const { talk } = await talkOf(2)

    expect(await talk.transcript({ limitTurns: '1' as never })).toHaveLength(2)
    expect(await talk.transcript({ limitTurns: 1_000_000 })).toHaveLength(4)
    const long = await openRuntime({ store: await longTalk('memory', 1_100) }).conversation('root-a')
    for (const limitTurns of [1_001, '1000000' as never]) {
      expect(words(await long.transcript({ limitTurns })).slice(0, 1)).toEqual(['100'])
      expect(await long.recentTurns({ limitTurns })).toHaveLength(1_000)
    }
    expect(await long.messagePage({ limit: 1_000_000 })).toHaveLength(1_000)
  })

  test('refuses two cursors, and one that is not of this conversation', async () => {
    const { talk, runs } = await talkOf(2)
    const [first, second] = runs

    await expect(talk.transcript({ beforeRunId: first?.id ?? '', afterRunId: second?.id ?? '' })).rejects.toThrow(
      /not both/,
    )
    for (const cursor of ['', 'nothing', first?.conversationId ?? '']) {
      await expect(talk.transcript({ beforeRunId: cursor })).rejects.toThrow(/is no turn of this conversation/)
    }
  })
})

test('a transcript for a node holds its causes and no sibling', async () => {
  const { talk, runtime } = await talkOf(1)
  const [left = '', right = ''] = await talk.mutate((m) => {
    const user = m.createNode({ kind: 'user_message', content: 'Two things.' })
    const ids = ['left', 'right'].map((side) => {
      const node = m.createNode({ kind: 'agent_message', state: 'finished', content: side })
      m.createEdge(user.id, node.id, 'sequence')
      return node.id
    })
    return ids
  })

  expect(words(await talk.transcriptFor(right))).toEqual(['0', 're 0', 'Two things.', 'right'])
  expect(words(await talk.transcriptFor(left, { limit: 2 }))).toEqual(['Two things.', 'left'])
  expect(await talk.transcriptFor(right, { limitTurns: 0 })).toEqual([])
  expect(await talk.transcriptFor('nothing')).toEqual([])
  expect(localStore(runtime).node(right)).toBeDefined()
})

describe('the context of a node', () => {
  test('has the node last, ends where it is told to, and is empty for one that is not there', async () => {
    const { talk, runs, runtime } = await talkOf(5)
    const answer = localStore(runtime)
      .nodesOf(runs[4]?.id ?? '')
      .at(-1)

    const context = await talk.contextFor(answer?.id ?? '', { limitTurns: 2 })

    expect(context.at(-1)?.id).toBe(answer?.id)
    expect(new Set(context.map(({ turnId }) => turnId))).toEqual(new Set([runs[3]?.id, runs[4]?.id]))
    expect(await talk.contextFor('nothing')).toEqual([])
  })

  test.each([[0], [-1], ['x']])('of %j turns is a mistake', async (limitTurns) => {
    const { talk } = await talkOf(1)

    await expect(talk.contextFor('x', { limitTurns: limitTurns as never })).rejects.toThrow(/limitTurns must be/)
  })
})

describe('pages of messages and of events', () => {
  test('go through everything once, in both directions', async () => {
    const { talk } = await talkOf(5)
    const all = words(await talk.transcript())

    const back: string[] = []
    for (let page = await talk.messagePage({ limit: 3 }); page.length > 0; ) {
      back.unshift(...words(page))
      page = await talk.messagePage({ limit: 3, before: page[0]?.nodeId ?? '' })
    }
    const [first] = await talk.messagePage({ limit: 1_000 })
    const forward = [first?.text ?? '']
    for (let page = await talk.messagePage({ limit: 4, after: first?.nodeId ?? '' }); page.length > 0; ) {
      forward.push(...words(page))
      page = await talk.messagePage({ limit: 4, after: page.at(-1)?.nodeId ?? '' })
    }

    expect(back).toEqual(all)
    expect(forward).toEqual(all)
  })

  test('refuse what makes no sense', async () => {
    const { talk } = await talkOf(1)

    await expect(talk.messagePage({ limit: 0 })).rejects.toThrow(/limit must be at least 1/)
    await expect(talk.messagePage({ before: 'x' })).rejects.toThrow(/no message of this conversation/)
    await expect(talk.messagePage({ before: 'x', after: 'y' })).rejects.toThrow(/not both/)
    await expect(talk.eventPage({ limit: 0 })).rejects.toThrow(/limit must be at least 1/)
  })

  test('events are found by type and by node, after a number', async () => {
    const { talk, runtime, runs } = await talkOf(3)
    const ends = await talk.eventPage({ types: ['run-end'] })
    const node = localStore(runtime)
      .nodesOf(runs[1]?.id ?? '')
      .at(-1)

    expect(ends.map(({ runId }) => runId)).toEqual(runs.map(({ id }) => id))
    expect(await talk.eventPage({ types: ['run-end'], after: ends[1]?.seq ?? 0 })).toEqual(ends.slice(2))
    expect((await talk.eventPage({ nodeId: node?.id ?? '' })).map(({ type }) => type)).toEqual(['usage', 'message'])
    expect(await talk.eventPage({ limit: 2 })).toHaveLength(2)
  })
})

/** So many rows take a while to write. */
const TURNS = process.env['LEGATE_FULL'] === '1' ? 100_000 : 4_000

describe.each(['memory', 'sqlite'] as const)('a page of ten turns on %s', (kind) => {
  test(`of ${TURNS} costs at most twice as much as one of 100`, { timeout: 120_000 }, async () => {
    const stores = [await longTalk(kind, 100), await longTalk(kind, TURNS)] as const
    const [short, long] = await Promise.all(stores.map((store) => openRuntime({ store }).conversation('root-a')))
    let [low, high] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
    // Other work on the machine only adds to a round: the least of each is compared, until it is little enough.
    for (let round = 0; round < 300 && (round < 20 || high >= 2 * low); round++) {
      if (kind === 'sqlite') for (const store of stores) store.reopen()
      low = Math.min(low, await costOf(short))
      high = Math.min(high, await costOf(long))
    }

    expect(high).toBeLessThan(2 * low)
  })
})

/** Of the last pages and those before them, in milliseconds of work. */
async function costOf(talk: ConversationHandle | undefined): Promise<number> {
  const work = watchWork()
  for (let time = 0; time < 5; time++) {
    const page = await talk?.transcriptPage({ limitTurns: 10 })
    const before = await talk?.transcriptPage({ limitTurns: 10, beforeRunId: page?.beforeRunId ?? '' })
    expect([page?.runIds.length, before?.runIds.length]).toEqual([10, 10])
  }
  return work()
}

test('a model is shown what led to its message, and no branch beside it', async () => {
  const model = scriptedModel(({ messages }) => `saw ${messages.map(({ content }) => content).join(' | ')}`)
  const runtime = openRuntime()
  const clerk = agent({ name: 'clerk', instructions: 'I', model })
  const { conversationId } = await runtime.run(clerk, 'first').result
  const talk = await runtime.conversation(conversationId)

  const turnId = await talk.mutate((m) => {
    const start = m.createNode({ kind: 'user_message', content: 'both' })
    for (const side of ['left', 'right']) {
      const said = m.createNode({ kind: 'user_message', content: side, idempotencyKey: side })
      const answer = m.createNode({ kind: 'agent_message', idempotencyKey: `re ${side}` })
      m.createEdge(start.id, said.id, 'sequence')
      m.createEdge(said.id, answer.id, 'sequence')
    }
    return m.runId
  })
  await (await runtime.attach(turnId)).result

  const seen = model.requests.slice(1).map(({ messages }) => messages.slice(-2).map(({ content }) => content))
  expect(seen).toEqual([
    ['both', 'left'],
    ['both', 'right'],
  ])
})

describe.each(lasting)('rows, on %s', (_, create) => {
  const world = useWorld(create)

  test('are plain data and never changed in place: what was written or read stays what it was', async () => {
    const held: [row: object, text: string][] = []
    const hold = <Row extends object | undefined>(row: Row): Row => {
      if (row !== undefined) held.push([row, JSON.stringify(row)])
      return row
    }
    const watched = (store: LocalStore): LocalStore => {
      const reads = withReads(store, {
        node: (id) => hold(store.node(id)),
        turn: (id) => hold(store.turn(id)),
        conversation: (id) => hold(store.conversation(id)),
        nodesOf: (id) => store.nodesOf(id).map(hold),
      })
      const commit: LocalStore['commit'] = (step) => {
        for (const row of [step.conversations, step.turns, step.nodes, step.links].flat()) hold(row)
        return store.commit(step)
      }
      return { ...reads, commit }
    }
    const { runtime } = world.start({ store: watched })
    const run = runtime.run(lookingHost(), 'go')
    await run.result
    const talk = await runtime.conversation(run.conversationId)
    const said = localStore(runtime)
      .nodesOf(run.id)
      .find(({ kind }) => kind === 'user_message')
    await (await talk.history.edit(said?.id ?? '', 'once more')).result
    await runtime.close()

    expect(held.length).toBeGreaterThan(50)
    for (const [row, text] of held) expect(JSON.stringify(row)).toBe(text)
    for (const [row] of held) expect(structuredClone(row)).toEqual(row)
  })
})

function lookingHost() {
  const look = simpleTool(() => 'seen')
  const worker = agent({
    name: 'worker',
    instructions: '',
    model: scriptedModel(callsThenSays('look')),
    tools: { look },
  })
  return agent({
    name: 'host',
    instructions: '',
    model: scriptedModel(asksThenSays('done')),
    subagents: { ask: worker },
  })
}

test.each(stores)('to a plan on %s, ids of another tree do not exist', async (_, create) => {
  const rows = create()
  onTestFinished(() => rows.drop())
  const graph = new Graph(rows.open())
  const [own, foreign] = [await graph.say('own'), await graph.say('foreign')]
  const link = linkRow({ ...foreign, turnId: foreign.id }, 'foreign-link', { taskId: foreign.entryNodeId })
  await graph.store.commit(commitOf(foreign.rootId, { links: [link] }))
  const found = ({ conversationId, entryNodeId, id }: Turn, draft: Draft) => [
    draft.findConversation(conversationId)?.id,
    draft.findTurn(id)?.id,
    draft.findNode(entryNodeId)?.id,
  ]

  await graph.commit('note', own.rootId, (draft) => {
    expect(found(own, draft)).toEqual([own.conversationId, own.id, own.entryNodeId])
    expect(found(foreign, draft)).toEqual([undefined, undefined, undefined])
    expect(draft.findLink(link.id)).toBeUndefined()
    for (const read of [
      () => draft.node(foreign.entryNodeId),
      () => draft.turn(foreign.id),
      () => draft.conversation(foreign.conversationId),
      () => draft.link(link.id),
    ]) {
      expect(read).toThrow(expect.objectContaining({ code: 'not_found' }))
    }
  })

  await graph.commit('note', foreign.rootId, (draft) => {
    expect(found(foreign, draft)).toEqual([foreign.conversationId, foreign.id, foreign.entryNodeId])
    expect(draft.findLink(link.id)).toEqual(link)
  })
})
