import { agent } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { planCancel } from '../../../src/core/rules/turn/cancel.ts'
import { planCompaction } from '../../../src/core/rules/turn/compaction.ts'
import { memoryStore } from '../../../src/core/store/memory/index.ts'
import { useWorld } from '../../support/agents.ts'
import { Graph } from '../../support/graph.ts'
import { stores } from '../../support/stores.ts'
import { echo, expectLawful, reasonOf, say, shown } from './support.ts'

/** Each answer is long, so that the one after the next has what came before summed up. */
function longWinded() {
  const model = scriptedModel(({ messages }) =>
    String(messages.at(-1)?.content).startsWith('Sum up the conversation') ? 'SUMMARY' : 'y'.repeat(600),
  )
  return { model, who: agent({ name: 'who', instructions: '', model }) }
}

describe.each(stores)('summaries made by themselves, on %s', (_, create) => {
  const world = useWorld(create)
  const { start } = world

  async function talkWithSummary(handMade: boolean) {
    const { model, who } = longWinded()
    const { runtime } = start({ compaction: { windowTokens: 1_300 } })
    let said = await say(runtime, who, '1')
    const id = said.run.conversationId
    const talk = await runtime.conversation(id)
    const firstId = said.run.id
    said = await say(runtime, who, '2', id)
    const byHand = handMade ? await talk.history.compress({ toRunId: firstId, summary: 'FIRST' }) : ''
    for (let at = 3; !said.nodes.some(({ purpose }) => purpose === 'summarize'); at++) {
      said = await say(runtime, who, String(at), id)
    }
    const summary = said.nodes.find(({ purpose }) => purpose === 'summarize')
    return { model, talk, said, byHand, summaryId: summary?.id ?? '' }
  }

  test('a message before whose answer something was summed up is answered anew when it is edited', async () => {
    const { model, talk, said } = await talkWithSummary(false)
    const asked = model.requests.length

    const outcome = await (await talk.history.edit(said.user.id, 'in other words')).result

    expect(outcome.status).toBe('completed')
    expect(model.requests.length).toBeGreaterThan(asked)
    expect(shown(model).at(-1)).toBe('in other words')
    expect(shown(model).filter((text) => text.includes('SUMMARY'))).toHaveLength(1)
    expectLawful(world.store)
  })

  test('nothing goes on from a call that sums up', async () => {
    const { talk, summaryId } = await talkWithSummary(false)
    for (const change of [
      () => talk.history.fork(summaryId),
      () => talk.history.retry(summaryId),
      () => talk.history.rerun(summaryId),
      () => talk.history.adopt(summaryId),
    ]) {
      expect(await reasonOf(change())).toBe('wrong_kind')
    }
    expectLawful(world.store)
  })

  test('a summary that was folded into one made by itself is taken back after that', async () => {
    const { talk, byHand, summaryId } = await talkWithSummary(true)

    expect(await reasonOf(talk.history.uncompress(byHand))).toBe('inside_summary')
    await talk.history.uncompress(summaryId)
    await talk.history.uncompress(byHand)
    expectLawful(world.store)
  })
})

describe.each(stores)('summaries by hand, on %s', (_, create) => {
  const { start } = useWorld(create)

  /** The third of four turns is summed up first, and then what is before it. */
  async function summedUp() {
    const { model, echo: who } = echo()
    const { runtime } = start()
    const turns = [await say(runtime, who, '1')]
    const id = turns[0]?.run.conversationId ?? ''
    for (const text of ['2', '3', '4']) turns.push(await say(runtime, who, text, id))
    const [first = '', second = '', third = ''] = turns.map(({ run }) => run.id)
    const talk = await runtime.conversation(id)
    const later = await talk.history.compress({ fromRunId: third, toRunId: third, summary: 'LATER' })
    await talk.history.compress({ fromRunId: first, toRunId: second, summary: 'EARLIER' })
    const shownNext = async () => {
      await say(runtime, who, '5', id)
      return shown(model).join(' ')
    }
    return { talk, later, first, third: turns[2], shownNext }
  }

  test('taking back a summary keeps the earlier summaries made after it', async () => {
    const { talk, later, first, shownNext } = await summedUp()
    await talk.history.uncompress(later)

    expect(await reasonOf(talk.history.compress({ toRunId: first, summary: 'PART' }))).toBe('inside_summary')
    expect(await shownNext()).toMatch(/EARLIER.* 3 re: 3 4 re: 4 5$/s)
  })

  test('what is edited after one leaves it, whenever it was made', async () => {
    const { talk, third, first, shownNext } = await summedUp()
    await (await talk.history.edit(third?.user.id ?? '', '3b')).result

    expect(await reasonOf(talk.history.compress({ toRunId: first, summary: 'PART' }))).toBe('inside_summary')
    expect(await shownNext()).toMatch(/EARLIER.* 3b re: 3b 5$/s)
  })

  test('an answer that is adopted again has the summaries of what led to it, one of which was taken back', async () => {
    const { echo: who } = echo()
    const { runtime } = start()
    const turns = [await say(runtime, who, '1')]
    const id = turns[0]?.run.conversationId ?? ''
    for (const text of ['2', '3', '4', '5', '6']) turns.push(await say(runtime, who, text, id))
    const [first = '', second = '', third = '', fourth = '', fifth = ''] = turns.map(({ run }) => run.id)
    const talk = await runtime.conversation(id)
    await talk.history.compress({ fromRunId: first, toRunId: second, summary: 'A' })
    const shared = await talk.history.compress({ fromRunId: third, toRunId: third, summary: 'B' })
    await talk.history.compress({ fromRunId: fifth, toRunId: fifth, summary: 'C' })
    await (await talk.history.edit(turns[4]?.user.id ?? '', '5b')).result
    await talk.history.uncompress(shared)

    await talk.history.adopt(turns[5]?.answer.id ?? '')

    expect(await reasonOf(talk.history.compress({ fromRunId: second, toRunId: fourth, summary: 'TORN' }))).toBe(
      'inside_summary',
    )
  })
})

test('I6: a run that was asked to stop just before it has something summed up stops', async () => {
  const graph = new Graph(memoryStore())
  const one = await graph.say('1')
  const claim = await graph.claim(one.entryNodeId)
  const { id: turnId, rootId } = one
  await graph.commit('cancel', rootId, (draft) => planCancel(draft, turnId, { cause: 'cancelled', reason: null }))
  const plan = { turnId, upTo: -1, tokens: 100, contextTokens: 900, fromTurnId: turnId, turns: 1 }

  await graph.commit('expand', rootId, (draft) => planCompaction(draft, claim, plan))

  expect(graph.store.nodesOf(turnId).map(({ state }) => state)).toEqual(['finished', 'stopped'])
  expect(graph.store.turn(turnId)?.outcome?.status).toBe('cancelled')
})
