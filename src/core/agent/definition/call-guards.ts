import type { ToolCall } from '../../graph/content.ts'
import type { PendingPermission } from '../../tool/invoke.ts'
import type { Requester } from '../../tool/permit.ts'
import type { ToolEnd } from '../../tool/result.ts'

/**
 * Programs that the file of an agent puts around its calls, and around those of all agents below it. They can take away and never
 * add: a call that they let pass is decided as if they were not there.
 */
export interface CallGuards {
  /** Looks at a call before anything of it happens: the call, a changed one, its refusal, or a question for a person. */
  before(run: Requester, call: ToolCall): Promise<ToolCall | ToolEnd | PendingPermission>
  /** Looks at the result of a call that was made. Withholds it where a guard fails. */
  after(run: Requester, end: ToolEnd): Promise<ToolEnd>
}

/** Guards that have a word in a call, and the layers that decide whether their programs start: those of the file's own agent. */
export interface GuardVoice {
  readonly guards: CallGuards
  readonly layers: Requester['layers']
}
