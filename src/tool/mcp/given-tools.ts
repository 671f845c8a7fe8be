import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'

/** What a server gave as its tools, beside what the library gets to see of them. */
const GIVEN: unique symbol = Symbol('tools')

/**
 * From 2026-07-28 on the library refuses a whole list for one tool that is wrong. It is handed an empty list, and what the
 * server gave lies beside it: `givenTools`. For a transport that is connected.
 */
export function setToolsAside(transport: Transport): void {
  const lists = new Set<unknown>()
  const send = transport.send.bind(transport)
  const hear = transport.onmessage
  transport.send = (message, options) => {
    if ('method' in message && message.method === 'tools/list' && 'id' in message) lists.add(message.id)
    return send(message, options)
  }
  transport.onmessage = (message, extra) => {
    const isList = 'id' in message && !('method' in message) && lists.delete(message.id)
    hear?.(isList ? withoutTools(message) : message, extra)
  }
}

/** The tools in an answer to `tools/list`, as the server gave them: anything. */
export function givenTools(result: object): unknown {
  return Reflect.get(result, GIVEN) ?? Reflect.get(result, 'tools')
}

/** What is no list stays as it is: that is refused. */
function withoutTools<T extends JSONRPCMessage>(message: T): T {
  const result: unknown = 'result' in message ? message.result : undefined
  if (typeof result !== 'object' || result === null) return message
  const tools: unknown = Reflect.get(result, 'tools')
  return Array.isArray(tools) ? { ...message, result: { ...result, tools: [], [GIVEN]: tools } } : message
}
