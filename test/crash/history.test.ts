import { type Aftermath, crash, FAILPOINTS, type KillPoint } from 'legate/testing'
import { expect, test } from 'vitest'
import { useCounter } from './support/counter.ts'
import { isFull } from './support/full.ts'
import { inParallel } from './support/parallel.ts'
import { programFile } from './support/program.ts'

const counter = await useCounter()
const program = programFile('history')

const CHANGES = [
  ...['adopt', 'archive', 'by_hand', 'compact', 'delete', 'edit', 'exclude', 'fork', 'include', 'merge', 'rerun'],
  ...['restore', 'retry', 'skip', 'stop', 'undone'],
]

test('every change of history is made once or not at all, whenever the process is killed', async () => {
  const undisturbed = await run([])

  expect(undisturbed.changes).toEqual(CHANGES)
  const changing = undisturbed.points.filter(({ point }) => point.endsWith(':mutate'))
  // Just before a change the one before it was just made.
  const quick = changing.filter(({ point, hit }) => point === 'before:mutate' || hit === changing.length / 2)
  const found = await inParallel(isFull ? undisturbed.points : quick, (kill) => run([kill]))

  for (const { changes, ends } of found) expect({ changes, ends }).toEqual({ changes: CHANGES, ends: undisturbed.ends })
  expect(quick.length).toBeGreaterThan(CHANGES.length)
})

async function run(kills: readonly KillPoint[]) {
  const found = await crash({ program, counter }, kills)
  return { changes: changesOf(found), ends: endsOf(found), points: pointsOf(found) }
}

/** Every change that was recorded, as often as it was. */
function changesOf({ trees }: Aftermath): string[] {
  const events = trees.flatMap((tree) => tree.events)
  return events
    .flatMap(({ body }) => (body.type === 'graph-change' || body.type === 'compaction' ? [body.change] : []))
    .filter((change) => !['node', 'edge', 'leaf'].includes(change))
    .toSorted()
}

/** How every run ended. */
function endsOf({ trees }: Aftermath): string[] {
  const ends = trees.flatMap(({ turns, conversations }) =>
    [...turns.values()].map(({ conversationId, outcome }) => {
      return `${conversations.get(conversationId)?.path.join('/')} ${outcome?.status}`
    }),
  )
  return ends.toSorted()
}

function pointsOf({ lines }: Aftermath): KillPoint[] {
  return lines.flatMap((line) =>
    line.type === 'pass' && FAILPOINTS.some((known) => known === line.point)
      ? [{ point: line.point, hit: line.hit }]
      : [],
  )
}
