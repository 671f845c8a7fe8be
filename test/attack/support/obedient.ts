import type { Json } from 'legate'
import { type ScriptedModel, scriptedModel } from 'legate/testing'

export type Calls = readonly (readonly [tool: string, input: Json])[]

/** A model that makes the calls which its last message lists as JSON, one after the other, and says what came back, as JSON. */
export function obedient(): ScriptedModel {
  return scriptedModel(({ messages }) => {
    const at = messages.findLastIndex(({ role }) => role === 'user')
    const calls = readCalls(String(messages[at]?.content ?? ''))
    const results = messages.slice(at + 1).flatMap((one) => (one.role === 'tool' ? [String(one.content)] : []))
    const [name, input] = calls[results.length] ?? []
    if (name === undefined || input === undefined) return JSON.stringify(results)
    return { calls: [{ name, input }] }
  })
}

function readCalls(text: string): Calls {
  return JSON.parse(text.slice(Math.max(0, text.indexOf('[')))) as Calls
}
