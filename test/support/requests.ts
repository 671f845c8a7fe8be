import type { ModelRequest } from 'legate/models'
import { expect } from 'vitest'

/** What a provider demands: each call of a message is answered, by nothing else, before the next message. */
export function expectAnswered({ messages }: ModelRequest): void {
  let open: string[] = []
  for (const message of messages) {
    if (message.role === 'tool') {
      expect(open).toContain(message.callId)
      open = open.filter((id) => id !== message.callId)
      continue
    }
    expect(open).toEqual([])
    if (message.role === 'assistant') open = message.calls.map(({ id }) => id)
  }
  expect(open).toEqual([])
}
