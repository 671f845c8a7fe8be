// What `npm run bench -- --check` compares: goals.json beside this file says how much a figure of ours may be, in times of a
// peer's figure of the same run; without a peer, as it is. A goal that is missed by more than a tenth fails, and so does a goal
// of a workload that gave no figure.
import { readFileSync } from 'node:fs'
import path from 'node:path'

const ROOM = 1.1
const GOALS = JSON.parse(readFileSync(path.join(import.meta.dirname, 'goals.json'), 'utf8')).goals

/** The lines of a table, and how many goals of these workloads are missed. */
export function compareWithGoals(samples, workloads, goals = GOALS) {
  const lines = []
  let missed = 0
  for (const goal of goals.filter(({ workload }) => workloads.includes(workload))) {
    const found = figureOf(samples, goal)
    const isMissed = !(found <= goal.atMost * ROOM)
    if (isMissed) missed++
    const verdict = isMissed ? 'MISSED' : found <= goal.atMost ? 'met' : 'met within a tenth'
    lines.push(`${goal.name.padEnd(58)} ${shown(found, goal)}, goal ${shown(goal.atMost, goal)}: ${verdict}`)
  }
  return { lines, missed }
}

function shown(figure, { peer, unit }) {
  if (figure === undefined) return 'no figure'
  return peer === undefined ? `${figure} ${unit}` : `${figure.toFixed(2)}x of ${peer}`
}

function figureOf(samples, { workload, key, figure, ours, oursKey = key, peer }) {
  const own = medianOf(samples, { workload, peer: ours, key: oursKey }, figure)
  if (peer === undefined || own === undefined) return own
  const other = medianOf(samples, { workload, peer, key }, figure)
  return other === undefined ? undefined : own / other
}

function medianOf(samples, { workload, peer, key }, figure) {
  const values = samples
    .filter((sample) => sample.ok && sample.workload === workload && sample.peer === peer && sample.key === key)
    .map((sample) => figure.split('.').reduce((value, name) => value?.[name], sample))
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
}
