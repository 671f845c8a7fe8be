import { agent, type ConversationHandle, type Run, type RunOutcome, type Runtime, tool } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { localStore } from '../../support/rows.ts'
import { lasting } from '../../support/stores.ts'
import { type Both, both, deltasOf, linesOf, recorded, recordingFile, replayed, storyOf } from './support.ts'

let calls = 0
/** Says something else whenever it is asked: an answer that is played in the wrong place is seen. */
const heard = (messages: readonly { readonly role: string; readonly content: unknown }[]) =>
  `#${++calls}: ${messages
    .filter(({ role }) => role === 'user')
    .map(({ content }) => String(content))
    .join('|')}`
const who = () =>
  agent({ name: 'who', instructions: 'You talk.', model: scriptedModel(({ messages }) => heard(messages)) })

/** Fails once. */
function moody() {
  let isCalm = false
  const model = scriptedModel(({ messages }) => {
    if (messages.at(-1)?.content !== 'bad' || isCalm) return heard(messages)
    isCalm = true
    return { error: new Error('Not now.') }
  })
  return agent({ name: 'who', instructions: 'You talk.', model })
}

const look = tool({
  description: 'Looks.',
  input: z.object({ q: z.string() }),
  effect: 'pure',
  execute: ({ q }) => `saw ${q} #${++calls}`,
})
const child = () =>
  agent({
    name: 'child',
    instructions: 'You help.',
    input: z.object({ q: z.string() }),
    model: scriptedModel(({ messages }) => heard(messages)),
  })
/** Looks and delegates, both at once, and sums up. */
const host = () =>
  agent({
    name: 'host',
    instructions: 'You host.',
    tools: { look },
    subagents: { child: child() },
    model: scriptedModel(({ messages }) => {
      const last = messages.at(-1)
      if (last?.role === 'tool')
        return `#${++calls} ${messages
          .filter(({ role }) => role === 'tool')
          .map(({ content }) => String(content))
          .join(' ')}`
      const q = String(last?.content)
      return {
        calls: [
          { id: `l${calls}`, name: 'look', input: { q } },
          { id: `c${calls++}`, name: 'child', input: { q } },
        ],
      }
    }),
  })

interface Talk {
  readonly runtime: Runtime
  readonly talk: ConversationHandle
  /** Says something and waits. */
  say(input: string, conversationId?: string): Promise<RunOutcome>
  /** Waits for a run that a change of history gave. */
  hear(run: Run): Promise<Run>
}

/** Both times the same is said, by whatever is done. */
function talking(me: ReturnType<typeof who>, use: (talk: Talk) => Promise<Run>, said: string[][]) {
  return async (runtime: Runtime) => {
    const texts: string[] = []
    said.push(texts)
    const say = async (input: string, conversationId?: string) => {
      const outcome = await runtime.run(me, input, conversationId === undefined ? {} : { conversationId }).result
      texts.push(outcome.text)
      return outcome
    }
    const hear = async (run: Run) => {
      const outcome = await run.result
      texts.push(outcome.error?.message ?? outcome.text)
      return run
    }
    const { conversationId } = await say('one')
    return use({ runtime, talk: await runtime.conversation(conversationId), say, hear })
  }
}

function expectSame({ first, second, runtime }: Both, said: string[][]): void {
  expect(said[1]).toEqual(said[0])
  expect(new Set(said[0]).size).toBe(said[0]?.length)
  expect(second.graph).toEqual(first.graph)
  expect(storyOf(second)).toEqual(storyOf(first))
  expect(deltasOf(second)).toEqual(deltasOf(first))
  runtime.assertComplete()
}

const answerOf = ({ answerNodeId }: RunOutcome): string => answerNodeId ?? ''
const nodeAt = async (talk: ConversationHandle, at: number): Promise<string> =>
  (await talk.transcript())[at]?.nodeId ?? ''

/** Ways to change what was said, each with the agent that talks. */
const WAYS: [string, () => ReturnType<typeof who>, (talk: Talk) => Promise<Run>][] = [
  [
    'forks at one node, gone on with in turn, and a fork of a fork',
    who,
    async ({ runtime, talk, say, hear }) => {
      const two = await say('two', talk.id)
      const [left, right] = [await talk.history.fork(answerOf(two)), await talk.history.fork(answerOf(two))]
      const said = await say('more', left.id)
      await say('more', right.id)
      const deep = await (await runtime.conversation(left.id)).history.fork(answerOf(said))
      await say('more', deep.id)
      await say('more', talk.id)
      return hear(runtime.run(who(), 'last', { conversationId: deep.id }))
    },
  ],
  [
    'lanes that go on at the same time, and their merge',
    who,
    async ({ runtime, talk, say, hear }) => {
      await say('two', talk.id)
      const lanes = [await talk.history.fork(await nodeAt(talk, 1)), await talk.history.fork(await nodeAt(talk, 3))]
      await Promise.all(lanes.map(({ id }) => runtime.run(who(), 'left', { conversationId: id }).result))
      await hear(
        await talk.history.merge(
          lanes.map(({ id }) => id),
          { prompt: 'both' },
        ),
      )
      return hear(runtime.run(who(), 'after', { conversationId: talk.id }))
    },
  ],
  [
    'edit, rerun and adopt',
    who,
    async ({ runtime, talk, say, hear }) => {
      const two = await say('two', talk.id)
      await hear(await talk.history.rerun(answerOf(two)))
      await hear(await talk.history.edit(await nodeAt(talk, 2), 'deux'))
      await hear(await talk.history.edit(await nodeAt(talk, 0), 'un'))
      await say('three', talk.id)
      await talk.history.adopt(answerOf(two))
      return hear(runtime.run(who(), 'four', { conversationId: talk.id }))
    },
  ],
  [
    'tools and children: a fork in the middle, with children kept and run again, and a rerun',
    host,
    async ({ runtime, talk, say, hear }) => {
      const two = await say('two', talk.id)
      const task =
        localStore(runtime)
          .nodesOf(two.runId)
          .find(({ kind }) => kind === 'task')?.id ?? ''
      const kept = await talk.history.fork(task, { children: 'reuse' })
      const again = await talk.history.fork(task, { children: 'rerun' })
      if (kept.run !== null) await hear(kept.run)
      if (again.run !== null) await hear(again.run)
      await say('three', again.id)
      await hear(await talk.history.merge([kept.id, again.id], { prompt: 'both' }))
      return hear(await talk.history.rerun(await nodeAt(talk, (await talk.transcript()).length - 1)))
    },
  ],
  [
    'retry of a call that failed',
    moody,
    async ({ runtime, talk, say, hear }) => {
      const two = await say('bad', talk.id)
      const failed =
        localStore(runtime)
          .nodesOf(two.runId)
          .find(({ failure }) => failure !== null)?.id ?? ''
      await hear(await talk.history.retry(failed))
      return hear(runtime.run(who(), 'after', { conversationId: talk.id }))
    },
  ],
  [
    'a summary in the place of turns, and a lane that was forked before it',
    who,
    async ({ runtime, talk, say, hear }) => {
      const two = await say('two', talk.id)
      const lane = await talk.history.fork(answerOf(two))
      const [first, second] = localStore(runtime)
        .turnsOf(talk.id, { last: 1, limit: 2 })
        .toSorted((a, b) => a.ordinal - b.ordinal)
      await say('three', talk.id)
      await talk.history.compress({ fromRunId: first?.id ?? '', toRunId: second?.id ?? '', summary: 'They counted.' })
      await say('three', talk.id)
      return hear(runtime.run(who(), 'three', { conversationId: lane.id }))
    },
  ],
]

describe('what changes history is played back as it was recorded', () => {
  test.each(WAYS)('%s', async (_, me, use) => {
    const said: string[][] = []
    const found = await both(talking(me(), use, said))

    expectSame(found, said)
  })

  test('a conversation that sums itself up near the window', async () => {
    const summing = agent({
      name: 'who',
      instructions: 'You talk.',
      model: scriptedModel(({ messages }) => `${heard(messages).slice(0, 40)} ${'word '.repeat(300)}`),
    })
    const said: string[][] = []
    const found = await both(
      talking(
        summing,
        async ({ runtime, talk, say, hear }) => {
          for (let n = 0; n < 8; n++) await say(`${n} ${'more '.repeat(300)}`, talk.id)
          return hear(runtime.run(summing, 'last', { conversationId: talk.id }))
        },
        said,
      ),
      { options: { compaction: { windowTokens: 2_000 } } },
    )

    expect(linesOf(found.file).length).toBeGreaterThan(12)
    expectSame(found, said)
  })
})

describe.each(lasting)('recorded on %s', (_, create) => {
  test('forks and merges, with another runtime that goes on in the middle', async () => {
    const file = recordingFile()
    const rows = create()
    const first = await halves(() => recorded(file, { store: rows.open() }))
    const runtime = replayed(file)
    const second = await halves(() => runtime)

    expect(second).toEqual(first)
    runtime.assertComplete()
    expect(linesOf(file).flatMap(({ at }) => (at === undefined ? [] : [at]))).toEqual([
      'who.1',
      'who+1.1',
      'who@1.1.1',
      'who@1.1+1.1',
      'who+2.0',
    ])
  })
})

/** A lane that one runtime begins and another goes on with. */
async function halves(open: () => Runtime): Promise<string[]> {
  const said: string[] = []
  const say = async (runtime: Runtime, input: string, conversationId?: string) => {
    const outcome = await runtime.run(who(), input, conversationId === undefined ? {} : { conversationId }).result
    said.push(outcome.text)
    return outcome
  }
  const one = open()
  const { conversationId } = await say(one, 'one')
  const two = await say(one, 'two', conversationId)
  const lane = await (await one.conversation(conversationId)).history.fork(answerOf(two))
  await say(one, 'left', lane.id)
  if (!('assertComplete' in one)) await one.close()
  const other = open()
  await say(other, 'more', lane.id)
  const merged = await (await other.conversation(conversationId)).history.merge([lane.id], { prompt: 'both' })
  said.push((await merged.result).text)
  return said
}
