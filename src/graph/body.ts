import { sha256 } from '../base/hash.ts'
import { sizeOf, truncateUtf8 } from '../base/json.ts'
import type { Body, Id, NodeOutput } from './rows.ts'

/** What of a result a model is shown at once; the rest is read with `read_result`. */
export const SHOWN_BYTES = 65_536

/** A text as a task's output: whole when it is short, else its beginning, the rest kept once by content. */
export function outputText(text: string, taskId: Id): { readonly output: NodeOutput; readonly body: Body | null } {
  const isShort = text.length * 3 <= SHOWN_BYTES
  const bytes = isShort ? 0 : sizeOf(text)
  if (bytes <= SHOWN_BYTES) return { output: { content: text }, body: null }
  const shown = truncateUtf8(text, SHOWN_BYTES)
  const note = `[cut: ${sizeOf(shown)} of ${bytes} bytes shown. To read on: read_result({ "id": "${taskId}", "offset": ${shown.length} })]`
  const body = { hash: sha256(text), text }
  return { output: { content: `${shown}\n${note}`, bodyRef: body.hash, bytes }, body }
}
