import { MODEL_KINDS } from '../../agent/hooks/hook-set.ts'
import type { NodeRun } from '../../agent/hooks/node-run.ts'
import { buildRequest } from '../../agent/request/build-request.ts'
import { InputError } from '../../base/error.ts'
import type { Work } from '../../engine/engine.ts'
import type { Node } from '../../graph/rows.ts'
import type { ModelRequest } from '../../model/model.ts'

/**
 * The request of a model call, made again from rows.
 *
 * Exact: the messages of the conversation, the results of tools, summaries and briefings that the model was shown, as long as
 * nobody excluded, deleted or replaced one of them since; the output schema; the path.
 *
 * As of now: the instructions, the settings and the descriptions of tools, which are code (`isChanged` says whether the code is
 * another by now); which tools the grants allow; the reminders of open sessions and of background tasks.
 *
 * Not in it: changes by hooks of extensions (`isHooked`), the request of a tool planner, and the output limit that a budget
 * sets for one call.
 */
export interface ShownRequest {
  readonly nodeId: string
  readonly request: ModelRequest
  /** The model that it would go to now; null where none is known. */
  readonly model: string | null
  /** True when the agent's definition is another than the one that its conversation was last run with. */
  readonly isChanged: boolean
  /** True when hooks of extensions may have changed what was sent. */
  readonly isHooked: boolean
}

/** Nothing runs: a request is made of rows only. */
export const NO_WORK: Work = Object.freeze({}) as Work

export function requestOf(run: NodeRun): ShownRequest {
  const { node, agent, conversation, model, hooks } = run
  requireModelCall(node)
  return {
    nodeId: node.id,
    request: buildRequest(run),
    model: model?.id ?? null,
    isChanged: agent.identity.ref.hash !== conversation.agent.hash,
    isHooked: hooks !== null,
  }
}

function requireModelCall({ id, kind }: Node): void {
  if (MODEL_KINDS.includes(kind)) return
  throw new InputError('invalid_input', `The node ${id} is a ${kind}: only nodes that call a model have a request.`)
}
