import type { Node } from '../../index.ts'
import { shortId } from '../find-run.ts'
import { oneLine } from '../terminal/clean.ts'

const SHOWN = 60

/** One node in one line: its short id, what it is, how it stands, and how it begins. */
export function nodeLine({ id, kind, purpose, state, input, preview, marks }: Node): string {
  const what = input.call === undefined ? (purpose === null || purpose === 'answer' ? kind : purpose) : input.call.name
  const hidden = marks?.deletedAt != null ? ', deleted' : marks?.excludedAt != null ? ', excluded' : ''
  const text = oneLine(preview)
  const shown = text.length > SHOWN ? `${text.slice(0, SHOWN - 1)}…` : text
  const replaced = marks?.replacedBy == null ? '' : `, replaced by ${shortId(marks.replacedBy)}`
  return `${shortId(id)}  ${oneLine(what).padEnd(16)} ${state}${hidden}${replaced}  ${shown}`.trimEnd()
}
