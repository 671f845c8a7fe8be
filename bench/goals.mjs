// What `npm run bench -- --check` compares: goals.json beside this file says how much a figure of ours may be, in times of a
// peer's figure of the same run. A goal that is missed by more than a tenth fails.
import { readFileSync } from 'node:fs'
import path from 'node:path'

const ROOM = 1.1
const { goals } = JSON.parse(readFileSync(path.join(import.meta.dirname, 'goals.json'), 'utf8'))

/** The lines of a table, and how many goals are missed. What was not run is left out. */
export function compareWithGoals(samples) {
  const lines = []
  let missed = 0
  for (const { name, workload, key, figure, ours, peer, peerKey = key, atMost } of goals) {
    const own = medianOf(samples, { workload, peer: ours, key }, figure)
    const other = medianOf(samples, { workload, peer, key: peerKey }, figure)
    if (own === undefined || other === undefined) continue
    const ratio = own / other
    const isMissed = !(ratio <= atMost * ROOM)
    if (isMissed) missed++
    const verdict = isMissed ? 'MISSED' : ratio <= atMost ? 'met' : 'met within a tenth'
    lines.push(`${name.padEnd(58)} ${ratio.toFixed(2)}x of ${peer}, goal ${atMost}x: ${verdict}`)
  }
  return { lines, missed }
}

function medianOf(samples, { workload, peer, key }, figure) {
  const values = samples
    .filter((sample) => sample.ok && sample.workload === workload && sample.peer === peer && sample.key === key)
    .map((sample) => figure.split('.').reduce((value, name) => value?.[name], sample))
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
}
