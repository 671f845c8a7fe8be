import type { EventType } from '@ag-ui/core'
import type { Json } from '../../../index.ts'

/** An event of AG-UI. The protocol has more fields than we send. */
export type AgUiEvent = { readonly type: `${EventType}` } & Readonly<Record<string, Json | undefined>>

/** The headers of a stream of AG-UI. */
export const AG_UI_HEADERS: Readonly<Record<string, string>> = Object.freeze({
  'content-type': 'text/event-stream; charset=utf-8',
})

/** An event as a frame. JSON has no raw line breaks, so no text of an event can end it. */
export function agUiFrame(event: AgUiEvent): string {
  return `data: ${JSON.stringify(event)}\n\n`
}
