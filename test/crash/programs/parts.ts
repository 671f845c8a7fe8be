import { setTimeout as sleep } from 'node:timers/promises'
import { type Effect, type Run, type Runtime, type StandardSchema, tool } from 'legate'
import type { Model } from 'legate/models'
import type { Turn } from 'legate/rows'
import { countEffect, passPoint, type Script, type ScriptedAnswerFields, scriptedModel } from 'legate/testing'
import type { Later } from '../../../src/core/base/maybe.ts'
import { treeWith } from '../../../src/core/graph/reader.ts'
import type { Store } from '../../../src/core/store/store.ts'

/** Workers of crash tests look often, so that a test is over soon. */
export const QUICK = { sweepMs: 20, graceMs: 100 } as const

/** Takes anything. A library that checks is not needed here and would only cost start-up time. */
export const ANYTHING: StandardSchema = {
  '~standard': {
    version: 1,
    vendor: 'crash',
    validate: (value) => ({ value }),
    jsonSchema: { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) },
  },
}

const USAGE = { inputTokens: 7, outputTokens: 3 }

/** Says its turns one after the other. What was said is in the request, so a restarted process goes on where it was. */
export function stepping(...turns: readonly ScriptedAnswerFields[]): Script {
  return async ({ messages, path }) => {
    await countEffect('model', path.join('/'))
    const asked = messages.findLastIndex(({ role }) => role === 'user')
    const said = messages.slice(asked).filter(({ role }) => role === 'assistant').length
    return { usage: USAGE, text: `${path.at(-1)} is done.`, ...turns[said] }
  }
}

export function steppingModel(...turns: readonly ScriptedAnswerFields[]): Model {
  return scriptedModel(stepping(...turns))
}

/** The model, with a pause before each piece of text. */
export function slowed(model: Model, pauseMs: number): Model {
  return {
    id: model.id,
    async *stream(request, options) {
      for await (const part of model.stream(request, options)) {
        if (part.type === 'text-delta') await sleep(pauseMs, undefined, options)
        yield part
      }
    },
  }
}

interface Duration {
  readonly lastsMs?: number
  /** It goes on until this is true. */
  readonly isOver?: () => boolean
}

/** A tool whose only effect is seen by the outside counter. The worker can be killed just before and just after it. */
export function counted(name: string, effect: Effect, { lastsMs = 0, isOver = () => true }: Duration = {}) {
  return tool({
    description: `Does ${name}.`,
    input: ANYTHING,
    effect,
    execute: async (_, { idempotencyKey, signal }) => {
      passPoint(`${name}:before`)
      await countEffect(name, idempotencyKey)
      passPoint(`${name}:after`)
      if (lastsMs > 0) await sleep(lastsMs, undefined, { signal })
      await until(() => isOver() || undefined)
      return `${name} is done.`
    },
  })
}

export function call(name: string, input: { readonly [key: string]: string } = {}) {
  return { name, input }
}

/** The rounds of the conversation with this title; none when it is not there yet. */
export async function roundsOf(store: Store, title: string): Promise<readonly Turn[]> {
  const roots = await store.roots({ limit: 100 })
  const root = roots.find((conversation) => conversation.title === title)
  return root === undefined ? [] : (await store.tree(root.id)).turnsOf(root.id, { limit: 100 })
}

/** The rounds of several conversations. */
export async function allRounds(store: Store, ...titles: readonly string[]): Promise<readonly Turn[]> {
  return (await Promise.all(titles.map((title) => roundsOf(store, title)))).flat()
}

/** Resolves when the run is in the store. */
export async function recorded(run: Run): Promise<void> {
  for await (const _ of run) return
}

/** Allows every call of a run that awaits a person's word, until the run is over. */
export async function allowAll(runtime: Runtime, run: Run): Promise<void> {
  for await (const event of run) {
    if (event.type !== 'approval-request' || event.nodeId === null) continue
    const tree = await treeWith(runtime.store, event.nodeId)
    if (tree.node(event.nodeId)?.state !== 'awaiting_approval') continue
    await runtime.answer(event.nodeId, { allow: true })
  }
}

/** Resolves with what `look` finds. */
export async function until<T>(look: () => Later<T | undefined>): Promise<T> {
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    await sleep(5)
  }
}
