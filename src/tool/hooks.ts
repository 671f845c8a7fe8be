import { messageOf } from '../base/error.ts'
import { type Json, toJson } from '../base/json.ts'
import type { ToolCall } from '../graph/content.ts'
import type { Id, Node } from '../graph/rows.ts'
import type { Logger } from './tool.ts'

/** Code of an agent's owner around what its model does. */
export interface Hooks {
  /**
   * Before a call of a tool or a subagent is decided and runs: it may give it another input, or refuse it with words for
   * the model. What it gives is what is checked, decided and asked for. One that throws refuses.
   */
  beforeTool?(call: HookedCall): BeforeTool | Promise<BeforeTool>
  /**
   * Before a call of a subagent, at any depth below this agent, goes ahead: to see it, not to change it. What it gives or
   * throws makes no difference to the call.
   */
  onChildTool?(call: ChildCall): unknown
}

export interface ChildCall extends HookedCall {
  /** The agents that led to it from the root, its own last. */
  readonly path: readonly string[]
}

export interface HookedCall {
  readonly tool: string
  readonly input: Json
  readonly nodeId: Id
  readonly runId: Id
}

export type BeforeTool = undefined | { readonly input: Json } | { readonly refuse: string }

/** The call as each hook wants it, one after the other, or why not. */
export async function hookedCall(
  node: Node,
  call: ToolCall,
  hooks: readonly NonNullable<Hooks['beforeTool']>[],
): Promise<ToolCall | string> {
  let hooked: ToolCall | string = call
  for (const hook of hooks) {
    if (typeof hooked === 'string') return hooked
    hooked = await hookedBy(node, hooked, hook)
  }
  return hooked
}

/** Shows a copy of the call to those who may only see it. */
export function showCall(call: ChildCall, hooks: readonly NonNullable<Hooks['onChildTool']>[], logger: Logger): void {
  const failed = (error: unknown) => logger.warn(`The hook onChildTool failed: ${messageOf(error)}`, { error })
  for (const hook of hooks) {
    const copy = toJson(call.input)
    try {
      Promise.resolve(hook({ ...call, path: [...call.path], input: copy.ok ? copy.value : null })).catch(failed)
    } catch (error) {
      failed(error)
    }
  }
}

async function hookedBy(
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
