import { agent, tool } from 'legate'
import type { Repair } from 'legate/hooks'
import { type ScriptedAnswer, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { heldModel, linesOf } from '../fields/support.ts'
import { openRuntime } from '../support/reading.ts'
import { localStore } from '../support/rows.ts'

const List = z.object({ items: z.array(z.object({ t: z.string().nullish() })), note: z.string().optional() })

function start(turns: readonly ScriptedAnswer[], repair: Repair = {}, options: { repair?: Repair } = {}) {
  const model = scriptedModel(turns)
  const runtime = openRuntime()
  const run = runtime.run(agent({ name: 'a', instructions: '', output: List, repair, model }), 'go', options)
  return { model, run, runtime }
}

const LACKS = '{"items":[]}'
const HAS = '{"items":[],"note":"x"}'

describe('an answer that lacks what is ensured', () => {
  test('is asked for until it is there; each attempt is a repair of its own', async () => {
    const { run, runtime, model } = start([LACKS, LACKS, HAS], { ensure: ['note'], retries: 2 })

    const outcome = await run.result

    expect(outcome).toMatchObject({ status: 'completed', output: { note: 'x' }, modelCalls: 3 })
    const purposes = localStore(runtime)
      .nodesOf(run.id)
      .flatMap(({ purpose }) => purpose ?? [])
    expect(purposes).toEqual(['answer', 'repair', 'repair'])
    model.assertComplete()
  })

  test('for ever, ends the run with the paths; or with the last value, if that is wanted', async () => {
    const failed = await start([LACKS, LACKS, LACKS], { ensure: ['note'], retries: 2 }).run.result
    const kept = await start([LACKS, LACKS], { ensure: ['note'], onFailure: 'return' }).run.result
    const unfit = await start(['{"items":7}', '{"items":8}'], { onFailure: 'return' }).run.result
    const prose = await start(['No.', 'No!'], { onFailure: 'return' }).run.result

    expect(failed).toMatchObject({ status: 'invalid_output', error: { message: 'It lacks note.' }, modelCalls: 3 })
    expect(kept).toMatchObject({ status: 'completed', output: { items: [] } })
    expect(unfit).toMatchObject({ status: 'completed', output: { items: 8 } })
    expect(prose.status).toBe('invalid_output')
  })

  test('of a list each item counts, an empty one has all, and null counts unless it is refused', async () => {
    const ensure = ['items[*].t']
    const [missing, empty, nulls, refused] = await Promise.all([
      start(['{"items":[{"t":"a"},{}]}'], { ensure, retries: 0 }).run.result,
      start([LACKS], { ensure, retries: 0 }).run.result,
      start(['{"items":[{"t":null}]}'], { ensure, retries: 0 }).run.result,
      start(['{"items":[{"t":null}]}'], { ensure, retries: 0, allowNull: false }).run.result,
    ])

    expect(missing.error?.message).toBe('It lacks items[1].t.')
    expect([empty.status, nulls.status]).toEqual(['completed', 'completed'])
    expect(refused.error?.message).toBe('It lacks items[0].t.')
  })

  test('so is one that is not JSON; what counts is the one that fits', async () => {
    const { run } = start(['I would rather not.', '{"items":[', `Sure! ${HAS}`], { retries: 2 })

    expect(await run.result).toMatchObject({ status: 'completed', output: { note: 'x' }, modelCalls: 3 })
  })

  test('but not when the run was cancelled', async () => {
    const held = heldModel()
    const runtime = openRuntime()
    const run = runtime.run(
      agent({ name: 'a', instructions: '', output: List, repair: { retries: 5 }, model: held.model }),
      'go',
    )
    held.say('{"it')
    for await (const { type } of run) if (type === 'text-delta') break

    await run.cancel()

    expect((await run.result).status).toBe('cancelled')
    expect(held.requests.length).toBe(1)
  })

  test('the model is told what was wrong; or asked as if for the first time', async () => {
    const told = start([LACKS, HAS], { ensure: ['note'] })
    const plain = start([LACKS, LACKS, HAS], { ensure: ['note'], feedback: false, retries: 2 })
    await Promise.all([told.run.result, plain.run.result])

    expect(told.model.requests[1]?.messages.at(-1)?.content).toMatch(/It lacks note\./)
    expect(plain.model.requests[1]?.messages).toEqual(plain.model.requests[0]?.messages)
    expect(plain.model.requests[2]?.messages).toEqual(plain.model.requests[0]?.messages)
  })

  test('readers of fields are told of each attempt, with a reset between', async () => {
    const { run } = start([LACKS, HAS], { ensure: ['note'] })

    const lines = await linesOf(run.fields(undefined, { partial: true }))

    expect(lines.filter((line) => !line.includes('open'))).toEqual([
      '1 done items []',
      '1 done  {"items":[]}',
      '2 reset  undefined',
      '2 done items []',
      '2 delta note x',
      '2 done note "x"',
      '2 done  {"items":[],"note":"x"}',
    ])
  })

  test('work of tools is done once', async () => {
    let calls = 0
    const look = tool({ description: '', input: { type: 'object' }, execute: () => ++calls })
    const model = scriptedModel([{ calls: [{ name: 'look', input: {} }] }, LACKS, LACKS, HAS])
    const repair = { ensure: ['note'], feedback: false, retries: 2 }

    const outcome = await openRuntime().run(
      agent({ name: 'a', instructions: '', output: List, repair, tools: { look }, model }),
      'go',
    ).result

    expect([outcome.status, calls]).toEqual(['completed', 1])
    expect(model.requests[3]?.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool'])
  })
})

describe('repair', () => {
  test('failFast stops the call at the first field that does not fit', async () => {
    const held = heldModel()
    const repair = { failFast: true }
    const runtime = openRuntime()
    const run = runtime.run(agent({ name: 'a', instructions: '', output: List, repair, model: held.model }), 'go')

    held.say('{"note":7,"items":')
    await expect.poll(() => held.requests.length).toBe(2)
    held.say(HAS)
    held.end()

    expect(await run.result).toMatchObject({ status: 'completed', output: { note: 'x' }, modelCalls: 2 })
    expect(held.requests[1]?.messages.slice(-2)).toEqual([
      { role: 'assistant', content: '{"note":7,"items":', calls: [] },
      { role: 'user', content: expect.stringContaining('note: must be string') },
    ])
  })

  test('failFast ends the run when there is no more retry', async () => {
    const held = heldModel()
    const repair = { failFast: true, retries: 0 }
    const run = openRuntime().run(agent({ name: 'a', instructions: '', output: List, repair, model: held.model }), 'go')

    held.say('{"note":7,"items":')

    expect(await run.result).toMatchObject({ status: 'invalid_output', text: '{"note":7,"items":' })
  })

  test('retries: 0 asks once; a run may say otherwise', async () => {
    const never = await start([LACKS], { ensure: ['note'], retries: 0 }).run.result
    const other = await start([LACKS, HAS], { retries: 0 }, { repair: { ensure: ['note'] } }).run.result

    expect([never.status, never.modelCalls]).toEqual(['invalid_output', 1])
    expect([other.status, other.modelCalls]).toEqual(['completed', 2])
  })

  test('an empty answer counts as an attempt too', async () => {
    const { run } = start(['', '{"items":7}', ' ', HAS], { retries: 3 })

    expect(await run.result).toMatchObject({ status: 'completed', modelCalls: 4 })
  })

  test('stays within the turns of the run', async () => {
    const model = scriptedModel(() => LACKS)
    const repair = { ensure: ['note'], retries: 50 }

    const outcome = await openRuntime().run(
      agent({ name: 'a', instructions: '', output: List, repair, model, budget: { modelCalls: 3 } }),
      'go',
    ).result

    expect(outcome).toMatchObject({ status: 'max_turns', modelCalls: 3 })
  })

  test('takes the document that readers of fields are told of', async () => {
    const { run } = start([`[${HAS}]`, 'unused'])

    expect(await run.field('note')).toBe('x')
    expect(await run.result).toMatchObject({ status: 'completed', output: { note: 'x' }, modelCalls: 1 })
  })

  test.each<[object, RegExp]>([
    [{ repair: { retries: -1 } }, /whole number from 0 to 100/],
    [{ repair: { retries: 1.5 } }, /whole number/],
    [{ repair: { ensure: 'note' } }, /list of paths/],
    [{ repair: { ensure: ['nope'] } }, /output schema has no "nope"/],
    [{ repair: { ensure: ['items['] } }, /is no path/],
    [{ repair: { failFast: 'yes' } }, /failFast must be true or false/],
    [{ repair: { onFailure: 'ignore' } }, /one of "fail", "return"/],
    [{ repair: { tries: 1 } }, /has no option "tries"/],
    [{ repair: 3 }, /takes an object of options, not 3/],
    [{ repair: { ensure: ['x'] }, output: undefined }, /give the agent an output/],
  ])('%j is refused', (given, why) => {
    expect(() => agent({ name: 'a', instructions: '', output: List, ...given } as never)).toThrow(why)
  })
})
