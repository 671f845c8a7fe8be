import {
  agent,
  type BackgroundOptions,
  backgroundSubagents,
  type Json,
  type Node,
  type Runtime,
  type Store,
} from 'legate'
import { type Script, type ScriptedAnswer, scriptedModel } from 'legate/testing'

export interface Call {
  readonly name: string
  readonly input: Json
}

/** What the last tool results of a request say, as data where they are. */
export function resultsIn(messages: readonly { readonly role: string; readonly content?: unknown }[]): string[] {
  return messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content))
}

export function spawnCall(name = 'worker', prompt = 'do it', more: { readonly [key: string]: Json } = {}): Call {
  return { name: 'subagent_spawn', input: { name, prompt, ...more } }
}

/** Plays its turns one after the other within each round, and then says `done`. Turns see the results so far. */
export function playing(...turns: readonly ((results: string[]) => ScriptedAnswer | string)[]): Script {
  return ({ messages }) => {
    const asked = messages.findLastIndex(({ role }) => role === 'user')
    const said = messages.slice(asked).filter(({ role }) => role === 'assistant').length
    const turn = asked >= 0 && isFirstRound(messages) ? turns[said] : undefined
    return turn === undefined ? 'done' : turn(resultsIn(messages))
  }
}

function isFirstRound(messages: readonly { readonly role: string }[]): boolean {
  return messages.filter(({ role }) => role === 'user').length === 1
}

export function hostOf(script: Script, options: BackgroundOptions = {}) {
  const model = scriptedModel(script)
  return {
    model,
    host: agent({
      name: 'host',
      instructions: 'Host.',
      model,
      tools: { ...backgroundSubagents(options) },
    }),
  }
}

export function workerOf(script: Script, name = 'worker') {
  return agent({ name, instructions: 'Work.', model: scriptedModel(script) })
}

export function idIn(result: string | undefined): string {
  return (JSON.parse(result ?? '{}') as { child_conversation_id?: string }).child_conversation_id ?? ''
}

export function parsed(result: string | undefined): { readonly [key: string]: Json } {
  return JSON.parse(result ?? 'null') as { readonly [key: string]: Json }
}

export function tasksIn(store: Store, runId: string): Node[] {
  return store.nodesOf(runId).filter(({ kind }) => kind === 'task')
}

/** Waits until nothing in the store is open. */
export async function quiet(runtime: Runtime): Promise<void> {
  await runtime.idle()
}
