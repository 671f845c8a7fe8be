import { agent, createRuntime, type Grant } from 'legate'
import type { ReplyContext } from 'legate/background'
import { scriptedModel } from 'legate/testing'
import { memoryFiles } from 'legate/tools'
import { describe, expect, test } from 'vitest'
import { speaker } from '../support/agents.ts'
import { localStore } from '../support/rows.ts'

const PLENTY: Grant = { use: ['tool:*', 'agent:*', 'model:*', 'file.*:**'] }

/** Code with every grant of its own, under a host that passes on what `passed` says. What it came to, in words. */
async function tryUnder(passed: Grant, attempt: (context: ReplyContext) => Promise<unknown>): Promise<string> {
  const files = memoryFiles({ workspace: { 'a/plan.md': 'A', 'b/secret.md': 'B' } })
  const thief = agent({
    name: 'thief',
    grant: PLENTY,
    reply: async (_, context) => {
      const came = await attempt(context).catch((error: Error) => `refused: ${error.message}`)
      return String(came)
    },
  })
  const host = agent({
    name: 'host',
    instructions: '',
    grant: passed,
    subagents: { thief },
    model: scriptedModel([{ calls: [{ name: 'thief', input: { message: 'go' } }] }, 'Done.']),
  })
  await using runtime = createRuntime({ files })
  const run = runtime.run(host, 'go')
  await run.result
  const [link] = localStore(runtime).linksOf(run.id)
  expect(await runtime.questions()).toEqual([])
  return (await (await runtime.attach(link?.id ?? '')).result).text
}

describe('I1: an agent that is code gets no further than its host passes on', () => {
  const bound: Grant = { use: ['tool:search', 'agent:thief', 'agent:helper', 'model:*', 'file.read:/workspace/a/**'] }

  test('through delegate', async () => {
    const came = await tryUnder(bound, async ({ delegate }) => {
      const helper = await delegate(speaker('helper'), 'x')
      const other = await delegate(speaker('other'), 'x')
      return `${helper.status}, ${other.status}`
    })
    expect(came).toBe('completed, denied')
  })

  test('through agents it makes and runs itself', async () => {
    const came = await tryUnder(bound, async () => {
      const other = speaker('other')
      return other.generate('x').then(
        () => 'ran',
        (error: Error) => error.message,
      )
    })
    expect(came).toMatch(/ended denied: no rule of host allows agent:other/)
  })

  test('through the children it delegates to', async () => {
    const came = await tryUnder(bound, async ({ delegate }) => {
      const helper = agent({
        name: 'helper',
        grant: PLENTY,
        reply: async (_, { files }) => files.readText('/workspace/b/secret.md').catch(() => 'denied'),
      })
      return (await delegate(helper, 'x')).text
    })
    expect(came).toBe('denied')
  })

  test('through files', async () => {
    const came = await tryUnder(bound, async ({ files }) => {
      const write = files.write('/workspace/a/plan.md', 'mine').catch(() => 'no write')
      const secret = files.readText('/workspace/b/secret.md').catch(() => 'no secret')
      return [await files.readText('/workspace/a/plan.md'), await write, await secret].join(', ')
    })
    expect(came).toBe('A, no write, no secret')
  })

  test('through ask: a person is a tool like any other', async () => {
    const came = await tryUnder(bound, ({ ask }) => ask('May I?'))
    expect(came).toBe('refused: ask_person is not allowed here: no rule of host allows tool:ask_person.')
  })

  test('nor where a person would have to allow it first', async () => {
    const came = await tryUnder({ ...PLENTY, ask: ['agent:helper', 'tool:ask_person'] }, async ({ delegate, ask }) => {
      const { status } = await delegate(speaker('helper'), 'x')
      return `${status}, ${await ask('Well?').catch(() => 'denied')}`
    })
    expect(came).toBe('denied, denied')
  })

  test('after it has ended it starts and asks nothing more', async () => {
    let late: Promise<unknown> = Promise.resolve()
    const leaver = agent({
      name: 'leaver',
      reply: async (_, { delegate, ask }) => {
        late = new Promise((resolve) => setTimeout(resolve, 30)).then(() =>
          Promise.allSettled([delegate(speaker('child'), 'x'), ask('Still there?')]),
        )
        return 'Gone.'
      },
    })
    await using runtime = createRuntime()
    const run = runtime.run(leaver, 'go')
    await run.result
    expect(await late).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }])
    expect(localStore(runtime).linksOf(run.id)).toEqual([])
    expect(await runtime.questions()).toEqual([])
  })
})
