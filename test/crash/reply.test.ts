import type { Effect } from 'legate'
import { crash, type KillPoint } from 'legate/testing'
import { expect, test } from 'vitest'
import { useCounter } from './support/counter.ts'
import { inParallel } from './support/parallel.ts'
import { programFile } from './support/program.ts'

const counter = await useCounter()
const program = programFile('reply')

const POINTS = [
  'after:say',
  'lead:begins',
  'before:spawn',
  'after:spawn',
  'lead:one',
  'before:ask',
  'after:ask',
  'person:answers',
  'before:answer',
  'after:answer',
  'lead:asked',
  'lead:two',
  'before:end',
]

async function run(role: Effect, kills: readonly KillPoint[]) {
  const { trees } = await crash({ program, counter, role }, kills)
  const turns = trees.flatMap((tree) => [...tree.turns.values()])
  const nodes = trees.flatMap((tree) => [...tree.nodes.values()])
  const own = turns.find(({ conversationId, rootId }) => conversationId === rootId)
  const said = nodes.find(({ id }) => id === own?.outcome?.answerNodeId)
  const questions = nodes.filter(({ metadata }) => metadata['asked_by'] !== undefined)
  return { status: own?.outcome?.status, text: said?.output.content, children: turns.length - 1, questions }
}

test('I4, I5: code that may run again loses nothing and doubles no child or question, wherever its process is killed', async () => {
  await inParallel(POINTS, async (point) => {
    const { status, text, children, questions } = await run('idempotent', [{ point, hit: 1 }])

    expect([point, status, text]).toEqual([point, 'completed', 'one is done. Yes. two is done.'])
    expect([point, children, questions.length]).toEqual([point, 2, 1])
  })
})

test('I4: code that has effects is uncertain where its process is killed in the middle, and is not run again', async () => {
  await inParallel(['lead:begins', 'lead:one', 'after:ask', 'lead:two'], async (point) => {
    const { status, questions } = await run('effectful', [{ point, hit: 1 }])

    expect([point, status]).toEqual([point, 'uncertain'])
    expect(questions.every(({ endedAt }) => endedAt !== null)).toBe(true)
  })
})
