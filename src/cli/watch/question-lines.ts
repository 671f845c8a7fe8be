import { cut } from '../terminal/width.ts'
import { wrap } from '../terminal/wrap.ts'

/** What a person is asked below the tree. */
export interface Question {
  /** As many rows as it needs, and there are. */
  readonly text: string
  /** Always shown. */
  readonly prompt: string
}

/** The question in so many columns and rows: first what is asked, last how to answer. What does not fit is counted. */
export function questionLines({ text, prompt }: Question, columns: number, rows: number): readonly string[] {
  const keys = wrap(prompt, columns).lines
  const room = Math.max(1, rows - keys.length)
  const whole = wrap(text, columns, room)
  if (whole.hidden === 0) return [...whole.lines, ...keys]
  const { lines, hidden } = wrap(text, columns, room - 1)
  return [...lines, cut(`… ${hidden} more characters: legate approvals shows all`, columns), ...keys]
}
