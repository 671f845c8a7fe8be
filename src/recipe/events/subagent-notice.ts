import type { Json } from '../../base/json.ts'
import type { RunEvent } from '../../graph/event.ts'

/** A call that a subagent makes, as an MCP logging notification that programs for goose understand. */
export interface SubagentNotice {
  readonly level: 'info'
  readonly logger: string
  readonly data: {
    readonly type: 'subagent_tool_request'
    readonly subagent_id: string
    readonly tool_call: { readonly name: string; readonly arguments: Json }
  }
}

/** The notification for an event of a run; undefined for all but the tool calls of subagents. */
export function subagentNotice(event: RunEvent): SubagentNotice | undefined {
  if (event.type !== 'tool-call' || event.path.length < 2) return undefined
  const { conversationId: id, call } = event
  return {
    level: 'info',
    logger: `subagent:${id}`,
    data: { type: 'subagent_tool_request', subagent_id: id, tool_call: { name: call.name, arguments: call.input } },
  }
}

/** One line of it: `[subagent:16] text_editor | developer`. */
export function subagentLine({ data }: SubagentNotice): string {
  const [extension = '', ...rest] = data.tool_call.name.split('__')
  const tool = rest.length === 0 ? extension : `${rest.join('__')} | ${extension}`
  return `[subagent:${shortOf(data.subagent_id)}] ${tool}`
}

/** The number of a task of goose; of our ids, as much as commands show. */
function shortOf(id: string): string {
  return id.includes('_') ? id.slice(id.lastIndexOf('_') + 1) : id.slice(-8)
}
