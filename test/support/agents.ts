import { type AnyAgent, agent, type ConversationHandle, type Runtime, type ToolDefinition, tool } from 'legate'
import { type Script, scriptedModel } from 'legate/testing'
import { afterEach, beforeEach, expect } from 'vitest'
import type { LocalStore } from '../../src/core/store/store.ts'
import { type Process, type ProcessOptions, startProcess } from './process.ts'
import type { Rows } from './stores.ts'

/** An agent that only ever says this. */
export function speaker(name: string, text = 'ok') {
  return agent({ name, instructions: `You are ${name}.`, model: scriptedModel(() => text) })
}

/** A conversation to put nodes into by hand. */
export async function talkOf(runtime: Runtime, who = speaker('speaker')): Promise<ConversationHandle> {
  const { conversationId } = await runtime.run(who, 'begin').result
  return runtime.conversation(conversationId)
}

/** A tool without input. */
export function simpleTool(
  execute: ToolDefinition<{ type: 'object' }, unknown>['execute'],
  options: Partial<Pick<ToolDefinition<object, unknown>, 'effect' | 'timeoutMs'>> = {},
) {
  return tool({ description: 'Does it.', input: { type: 'object' }, execute, ...options })
}

/** Calls each of these tools once, in one answer, and then says what came back, one result a line. */
export function callsThenSays(...names: readonly string[]): Script {
  return ({ messages }) => {
    const results = messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
    if (results.length > 0) return results.join('\n')
    return { calls: names.map((name) => ({ name, input: {} })) }
  }
}

/** Calls `ask` with this message, and says the text when the answer is there. */
export function asksThenSays(text: string, message = 'x'): Script {
  return ({ messages }) =>
    messages.some(({ role }) => role === 'tool') ? text : { calls: [{ name: 'ask', input: { message } }] }
}

/** Rows for each test of a suite, and processes on them that end with the test. */
export interface World {
  readonly rows: Rows
  /** For looking at the rows without being a process. */
  readonly store: LocalStore
  start(options?: ProcessOptions): Process
  /** Closes a process; the next one, which knows these agents, goes on with what is open. */
  restart(process: Process, agents: readonly AnyAgent[]): Promise<Runtime>
}

export function useWorld(create: () => Rows): World {
  const started: Process[] = []
  let rows: Rows = NO_ROWS
  let store: LocalStore | undefined
  beforeEach(() => {
    rows = create()
    store = undefined
  })
  afterEach(async () => {
    const ended = started.splice(0)
    for (const { runtime, killed } of ended) if (!killed) await runtime.close()
    await rows.drop()
    expect(ended.flatMap(({ errors }) => errors)).toEqual([])
  })
  const start = (options?: ProcessOptions) => {
    const process = startProcess(rows, options)
    started.push(process)
    return process
  }
  return {
    get rows() {
      return rows
    },
    get store() {
      store ??= rows.open()
      return store
    },
    start,
    restart: async (process, agents) => {
      await process.runtime.close()
      const { runtime } = start({ agents })
      await runtime.resume()
      return runtime
    },
  }
}

const NO_ROWS: Rows = {
  open: () => {
    throw new Error('there are no rows outside of a test')
  },
  drop: async () => undefined,
}
