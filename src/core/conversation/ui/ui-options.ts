import type { TurnPageQuery } from '../conversation-pages.ts'

export interface UiStreamOptions {
  /** The major version of `ai` on the page. Version 7 takes back text with `reset-step`. Default 6. */
  readonly ui?: 6 | 7
  /**
   * Calls of the run itself that wait for a person's word. `ask` (default) sends `tool-approval-request` and leaves the stream
   * open. `end` also ends the stream once nothing else goes on, because `useChat` sends the answer in its next request. `show`
   * does not ask: the page only sees that the run waits.
   */
  readonly approvals?: UiApprovals
  /**
   * The id of the principal whose page executes calls of tools with `execute: 'outside'`. The stream also ends once the run waits
   * for nothing but its results, because `useChat` sends them in its next request. Default: the stream stays open.
   */
  readonly executes?: string
  /** Goes on after the end that waited for these nodes, by their ids: leaves out what the page has already. */
  readonly after?: readonly string[]
}

export type UiApprovals = 'ask' | 'end' | 'show'

export interface UiPageQuery extends TurnPageQuery {
  /** `ask` (default): calls that wait for a person's word ask for it. `show`: the page only sees that the run waits. */
  readonly approvals?: 'ask' | 'show'
}
