import { agent, createRuntime, type Grant, tool } from 'legate'
import { leaveFree } from 'legate/compat'
import { scriptedModel } from 'legate/testing'
import { expect, test } from 'vitest'

const say = (text: string) => tool({ description: text, input: { type: 'object' }, execute: () => text })

/** An agent that calls both of its tools at once, under this grant. */
function caller(grant: Grant) {
  return agent({
    name: 'caller',
    instructions: 'You call.',
    tools: { send: say('sent'), drop: say('dropped') },
    grant,
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === 'tool' ? 'Done.' : { calls: ['send', 'drop'].map((name) => ({ name, input: {} })) },
    ),
  })
}

/** What waits for a person. */
async function askedBy(given: ReturnType<typeof caller>, ofRuntime?: Grant): Promise<readonly string[]> {
  await using runtime = createRuntime(ofRuntime === undefined ? {} : { grant: ofRuntime })
  const run = runtime.run(given, 'Go.')
  const asked: string[] = []
  for await (const event of run) {
    if (event.type !== 'approval-request' || event.nodeId === null) continue
    asked.push(event.request)
    await runtime.answer(event.nodeId, { allow: false })
  }
  return asked.toSorted()
}

test('leaves free what the grant of the agent asks for, and the agent that was given stays as it is', async () => {
  const given = caller({ ask: ['tool:*'] })
  const freed = leaveFree(given, ['tool:send'])

  expect(await askedBy(freed)).toEqual(['tool:drop'])
  expect(await askedBy(given)).toEqual(['tool:drop', 'tool:send'])
  expect(freed.grant).toEqual({ ask: ['tool:*'], free: ['tool:send'] })
})

test('answers no other layer, and allows nothing that the grant does not name', async () => {
  const freed = leaveFree(caller({ use: ['tool:drop'], ask: ['tool:*'] }), ['tool:*'])

  expect(await askedBy(freed)).toEqual(['tool:send'])
  expect(await askedBy(leaveFree(caller({}), ['tool:*']), { ask: ['tool:drop'] })).toEqual(['tool:drop'])
})

test('refuses a rule that could never match', () => {
  expect(() => leaveFree(caller({}), ['npm test'])).toThrow(
    'agent "caller", leaveFree: the rule "npm test" must start with one of',
  )
})

test('a call that its tool says a person must allow waits for one, whatever is free', async () => {
  const done: string[] = []
  const pay = tool({
    description: 'Pays.',
    input: { type: 'object' },
    approval: 'required',
    execute: () => {
      done.push('paid')
      return 'paid'
    },
  })
  const payer = agent({
    name: 'payer',
    instructions: 'You pay.',
    tools: { pay },
    grant: { use: ['tool:*'], ask: ['tool:*'], free: ['tool:*', 'tool:pay'] },
    model: scriptedModel([{ calls: [{ name: 'pay', input: {} }] }, 'Done.']),
  })
  await using runtime = createRuntime({ grant: { use: ['tool:*'], ask: ['tool:pay'], free: ['tool:pay'] } })
  const run = runtime.run(leaveFree(payer, ['tool:pay']), 'Go.')
  const asked: string[] = []
  for await (const event of run) {
    if (event.type !== 'approval-request' || event.nodeId === null) continue
    asked.push(event.request)
    expect(done).toEqual([])
    await runtime.answer(event.nodeId, { allow: true })
  }

  expect(asked).toEqual(['tool:pay'])
  expect(await run.result).toMatchObject({ status: 'completed' })
  expect(done).toEqual(['paid'])
})
