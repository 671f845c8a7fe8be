import type { Json } from '../../base/json.ts'
import type { Difference } from './differences.ts'

const MOST_SHOWN = 5
const WIDTH = 100

/** What differs, for people: each place with what was recorded and what is there now. */
export function differenceText(found: readonly Difference[]): string {
  const shown = found.slice(0, MOST_SHOWN).map(placeText)
  const left = found.length - shown.length
  return [...shown, ...(left > 0 ? [`  and ${left} more`] : [])].join('\n')
}

function placeText({ path, recorded, now }: Difference): string {
  const [before, after] = cutAround(lineOf(recorded), lineOf(now))
  return `  ${path === '' ? 'all of it' : path}\n    - recorded: ${before}\n    + now:      ${after}`
}

function lineOf(value: Json | undefined): string {
  return value === undefined ? 'nothing' : JSON.stringify(value)
}

/** Long texts are shown from shortly before the place where they begin to differ. */
function cutAround(a: string, b: string): [string, string] {
  let same = 0
  while (same < a.length && a[same] === b[same]) same++
  const from = same > WIDTH / 2 ? same - WIDTH / 4 : 0
  return [cut(a, from), cut(b, from)]
}

function cut(text: string, from: number): string {
  const end = from + WIDTH
  return `${from > 0 ? '…' : ''}${text.slice(from, end)}${text.length > end ? '…' : ''}`
}
