import { messageOf } from '../base/error.ts'
import { type Json, toJson } from '../base/json.ts'
import type { ToolCall } from '../graph/content.ts'
import type { Id, Node } from '../graph/rows.ts'

/** Code of an agent's owner around what its model does. */
export interface Hooks {
  /**
   * Before a call of a tool or a subagent is decided and runs: it may give it another input, or refuse it with words for
   * the model. What it gives is what is checked, decided and asked for. One that throws refuses.
   */
  beforeTool?(call: HookedCall): BeforeTool | Promise<BeforeTool>
}

export interface HookedCall {
  readonly tool: string
  readonly input: Json
  readonly nodeId: Id
  readonly runId: Id
}

export type BeforeTool = undefined | { readonly input: Json } | { readonly refuse: string }

/** The call as its hook wants it, or why not. */
export async function hookedCall(
  node: Node,
  call: ToolCall,
  hook: NonNullable<Hooks['beforeTool']>,
): Promise<ToolCall | string> {
  try {
    const said = await hook({ tool: call.name, input: call.input, nodeId: node.id, runId: node.turnId })
    if (said === undefined) return call
    if ('refuse' in said) return `Refused: ${said.refuse}`
    const input = toJson(said.input)
    return input.ok
      ? { ...call, input: input.value }
      : `Refused: the hook gave an input that is not JSON: ${input.error}`
  } catch (error) {
    return `Refused: the hook before it failed: ${messageOf(error)}`
  }
}
