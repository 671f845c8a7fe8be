import path from 'node:path'
import { agent, createRuntime, tool } from 'legate'
import { askTools } from 'legate/background'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { runProgram, skipUnlessBuilt } from '../support/program.ts'
import { eventsOfType, localStore } from '../support/rows.ts'
import { tempFolder } from '../support/temp-folder.ts'

beforeEach(skipUnlessBuilt)

const AGENTS = {
  approval: agent({
    name: 'careful',
    instructions: '',
    model: scriptedModel(() => ({ calls: [{ name: 'look', input: {} }] })),
    tools: { look: tool({ description: 'Looks.', input: { type: 'object' }, execute: () => 'seen' }) },
    grant: { ask: ['tool:look'] },
  }),
  question: agent({
    name: 'curious',
    instructions: '',
    model: scriptedModel(() => ({ calls: [{ name: 'ask_person', input: { question: 'Which port?' } }] })),
    tools: askTools(),
  }),
}

/** A process that gives this answer at a moment that all of them know, and says what became of it. */
function answering(file: string, nodeId: string, { word, at }: { word: object; at: number }): string {
  return `
    import { createRuntime } from 'legate'
    import { sqliteStore } from 'legate/store/sqlite'
    const runtime = createRuntime({ store: sqliteStore(${JSON.stringify(file)}), engine: { workers: 0 } })
    await runtime.approvals()
    while (Date.now() < ${at}) {}
    const told = await runtime.answer(${JSON.stringify(nodeId)}, ${JSON.stringify(word)}).then(
      () => ({ won: true }),
      ({ code, message, details }) => ({ won: false, code, message, details }),
    )
    console.log(JSON.stringify(told))
    await runtime.close()
  `
}

test.each([
  [
    'an approval',
    'approval',
    (by: string) => ({ allow: by === 'ann', by, reason: `${by} says so` }),
    'approval-answer',
  ],
  ['a question', 'question', (by: string) => ({ text: `Port of ${by}.`, by }), 'answer'],
] as const)('two processes answer %s at the same moment: one wins, the other hears its name', async (...row) => {
  const [, kind, wordOf, type] = row
  const file = path.join(tempFolder(onTestFinished), 'runs.db')
  const runtime = createRuntime({ store: sqliteStore(file) })
  const run = runtime.run(AGENTS[kind], 'go')
  await expect.poll(async () => [...(await runtime.approvals()), ...(await runtime.questions())].length).toBe(1)
  const [asked] = [...(await runtime.approvals()), ...(await runtime.questions())]
  const { nodeId = '', seen = '' } = asked ?? {}
  await runtime.close()

  const at = Date.now() + 1_500
  const names = ['ann', 'ben']
  const told = await Promise.all(
    names.map(async (by) => {
      const word = { ...wordOf(by), seen }
      return JSON.parse(await runProgram(answering(file, nodeId, { word, at })))
    }),
  )

  const winner = told.findIndex(({ won }) => won)
  const loser = told[1 - winner]
  expect(told.map(({ won }) => won).toSorted()).toEqual([false, true])
  expect(loser).toMatchObject({ code: 'conflict', message: expect.stringContaining(names[winner] ?? '') })
  const { allow, reason, ...said } = { allow: undefined, reason: undefined, ...wordOf(names[winner] ?? '') }
  const answer = allow === undefined ? said : { by: said.by, allowed: allow, reason }
  expect(loser.details).toMatchObject({ ...answer, at: expect.any(Number) })
  const after = createRuntime({ store: sqliteStore(file) })
  expect(eventsOfType(localStore(after), run.conversationId, type)).toMatchObject([{ nodeId, by: names[winner] }])
  await after.close()
})
