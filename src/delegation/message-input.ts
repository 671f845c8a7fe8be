import type { ReadInput } from '../agent/input.ts'

/** The arguments of the message contract, or the words that tell a model what is wrong with them. */
export function readMessage(toolName: string, input: unknown): ReadInput {
  const { message, session_id: session } = (input ?? {}) as Record<string, unknown>
  if (isLeftOut(message)) return wrong('Message is required')
  if (typeof message !== 'string') return wrong(notAText(toolName, 'message'))
  if (message.trim() === '') return wrong('Message is required')
  if (isLeftOut(session) || session === '') return { ok: true, value: { message } }
  if (typeof session !== 'string') return wrong(notAText(toolName, 'session_id'))
  return { ok: true, value: { message, session_id: session } }
}

/** Models write null for what they leave out. */
function isLeftOut(value: unknown): value is undefined | null {
  return value === undefined || value === null
}

function notAText(toolName: string, field: string): string {
  return `Parameter validation failed for tool '${toolName}': ${field} must be a string\nPlease correct the parameters and try again.`
}

function wrong(error: string): ReadInput {
  return { ok: false, error, issues: [] }
}
