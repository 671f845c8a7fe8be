import type { Json } from '../base/json.ts'
import { textOf } from '../graph/content.ts'
import { contextOf } from '../graph/context.ts'
import { resultContent } from '../graph/end-node.ts'
import type { Reader } from '../graph/reader.ts'
import type { Node } from '../graph/rows.ts'

const PREVIEW_CHARS = 200
const RECENT = 4
const ROUNDS = 5

/** What a child is told of its host's context: a summary as data, made once per call. */
export function snapshot(reader: Reader, task: Node, input: Json): Json {
  return {
    input_payload: input,
    recent_events: recentEvents(reader, task),
    long_term_refs: [],
    workspace_pointers: [],
    safety_flags: {},
    input_preview: JSON.stringify(input).slice(0, PREVIEW_CHARS),
  }
}

/** The briefing as the child's model reads it, before the task itself. */
export function briefingText(hostName: string, context: Json): string {
  return `You were called by ${JSON.stringify(hostName)} to do one task: the next message. What your host knows that may help, as data:\n${JSON.stringify(context)}`
}

/** The newest tool results of the host, oldest first; where there are none, the last thing that was said. */
function recentEvents(reader: Reader, task: Node): Json[] {
  const context = contextOf(reader, task, ROUNDS)
  const results = context.filter((node) => node.kind === 'task').slice(-RECENT)
  if (results.length > 0) return results.map((node) => summary(node, textOf(resultContent(node))))
  const last = context.findLast((node) => spokenIn(node) !== '')
  return last === undefined ? [] : [summary(last, spokenIn(last))]
}

function spokenIn(node: Node): string {
  if (node.kind !== 'user_message' && node.kind !== 'agent_message') return ''
  return textOf(node.input.content ?? node.output.content ?? '')
}

function summary(node: Node, text: string): Json {
  return {
    id: node.id,
    role: node.kind === 'task' ? 'tool' : node.kind === 'user_message' ? 'user' : 'assistant',
    name: node.input.call?.name ?? '',
    preview: text.slice(0, PREVIEW_CHARS),
    timestamp: new Date(node.endedAt ?? node.createdAt).toISOString(),
  }
}
