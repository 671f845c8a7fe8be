import { sha256 } from '../base/hash.ts'
import { sizeOf, truncateUtf8 } from '../base/json.ts'
import { type Content, textOf } from './content.ts'
import type { Body, Id, NodeOutput } from './rows.ts'

/** What of a result a model is shown at once; the rest is read with `read_result`. */
export const SHOWN_BYTES = 65_536

/** What a child said as its task's output: the text is cut where it is too long to show, pictures and files stay. */
export function outputContent(content: Content, taskId: Id): TaskOutput {
  if (typeof content === 'string') return outputText(content, taskId)
  const { output, body } = outputText(textOf(content), taskId)
  if (body === null) return { output: { content }, body }
  const media = content.filter(({ type }) => type !== 'text' && type !== 'json')
  return { output: { ...output, content: [{ type: 'text', text: textOf(output.content ?? '') }, ...media] }, body }
}

export interface TaskOutput {
  readonly output: NodeOutput
  /** The whole of it, when it is too long to show. */
  readonly body: Body | null
}

/** A text as a task's output: whole when it is short, else its beginning, the rest kept once by content. */
export function outputText(text: string, taskId: Id): TaskOutput {
  const isShort = text.length * 3 <= SHOWN_BYTES
  const bytes = isShort ? 0 : sizeOf(text)
  if (bytes <= SHOWN_BYTES) return { output: { content: text }, body: null }
  const shown = truncateUtf8(text, SHOWN_BYTES)
  const note = `[cut: ${sizeOf(shown)} of ${bytes} bytes shown. To read on: read_result({ "id": "${taskId}", "offset": ${shown.length} })]`
  const body = { hash: sha256(text), text }
  return { output: { content: `${shown}\n${note}`, bodyRef: body.hash, bytes }, body }
}
