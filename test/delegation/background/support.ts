import { agent, type Json } from 'legate'
import { type BackgroundOptions, backgroundSubagents } from 'legate/background'
import type { ModelRequest } from 'legate/models'
import type { Node } from 'legate/rows'
import { type FakeClock, type Script, type ScriptedAnswer, scriptedModel } from 'legate/testing'
import type { LocalStore } from '../../../src/core/store/store.ts'

export interface Call {
  readonly name: string
  readonly input: Json
}

export type Data = { readonly [key: string]: Json }

/** What the tools said in a request, in order. */
export function resultsIn({ messages }: Pick<ModelRequest, 'messages'>): string[] {
  return messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
}

/** What the user, or whoever speaks as one, said last. */
export function lastSaid({ messages }: Pick<ModelRequest, 'messages'>): string {
  return String(messages.findLast(({ role }) => role === 'user')?.content)
}

export function call(name: string, input: Json = {}): ScriptedAnswer {
  return { calls: [{ name, input }] }
}

export function spawnCall(name = 'worker', prompt = 'do it', more: Data = {}): Call {
  return { name: 'subagent_spawn', input: { name, prompt, ...more } }
}

export type Move = (results: string[]) => ScriptedAnswer | string

/** Makes its moves one after the other in its first round; whatever is said to it later, it answers with `heard`. */
export function playing(...moves: readonly Move[]): Script {
  return (request) => {
    const { messages } = request
    if (messages.filter(({ role }) => role === 'user').length > 1) return 'heard'
    const said = messages.filter(({ role }) => role === 'assistant').length
    return moves[said]?.(resultsIn(request)) ?? 'done'
  }
}

export function hostOf(script: Script, options: BackgroundOptions = {}) {
  const model = scriptedModel(script)
  const tools = { ...backgroundSubagents(options) }
  return { model, host: agent({ name: 'host', instructions: 'Host.', model, tools }) }
}

export function workerOf(script: Script = () => 'worked', name = 'worker') {
  return agent({ name, instructions: 'Work.', model: scriptedModel(script) })
}

export function data(result: string | undefined): Data {
  return JSON.parse(result ?? '{}') as Data
}

export function idIn(result: string | undefined): string {
  return String(data(result)['child_conversation_id'])
}

export function tasksIn(store: LocalStore, runId: string): Node[] {
  return store.nodesOf(runId).filter(({ kind }) => kind === 'task')
}

/** What each call of a run gave, as data. */
export function gaveIn(store: LocalStore, runId: string): Data[] {
  return tasksIn(store, runId).map(({ output }) => data(String(output.content)))
}

/** Resolves with what `look` finds. */
export async function until<T>(look: () => T | null | undefined): Promise<T> {
  for (;;) {
    const found = look()
    if (found !== undefined && found !== null) return found
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** The same while time goes by. */
export async function untilTime<T>(clock: FakeClock, look: () => T | null | undefined): Promise<T> {
  for (;;) {
    const found = look()
    if (found !== undefined && found !== null) return found
    await clock.advance(50)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}
