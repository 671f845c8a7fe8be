import { type AgentDefinition, agent, type Content, createRuntime, type RunEvent, tool } from 'legate'
import type { AiSdkModel } from 'legate/ai-sdk'
import { fakeClock } from 'legate/testing'
import { z } from 'zod'
import { localStore } from '../../support/rows.ts'

/** Runs an agent on this model to its end. Time passes only where a failed call waits for its next try. */
export async function ask(
  model: AiSdkModel,
  input: Content,
  definition: Partial<AgentDefinition<undefined, undefined>> = {},
) {
  const clock = fakeClock()
  const started = clock.now()
  const runtime = createRuntime({ clock })
  const clerk = agent({ name: 'clerk', instructions: 'You are a clerk.', model, ...definition })
  const run = runtime.run(clerk, input)
  const events: RunEvent[] = []
  for await (const event of run) {
    events.push(event)
    if (event.type === 'retry') await clock.advance(event.wakeAt - clock.now())
  }
  const outcome = await run.result
  const nodes = localStore(runtime).nodesOf(run.id)
  await runtime.close()
  return { outcome, events, nodes, waitedMs: clock.now() - started }
}

export const add = tool({
  description: 'Adds two numbers.',
  input: z.object({ a: z.number(), b: z.number() }),
  effect: 'pure',
  execute: ({ a, b }) => a + b,
})

/** What a reader of the live text has on the screen at the end: a reset clears it. */
export function shownText(events: readonly RunEvent[]): string {
  let shown = ''
  for (const event of events) {
    if (event.type === 'reset') shown = ''
    if (event.type === 'text-delta') shown += event.text
  }
  return shown
}

export function typesOf(events: readonly RunEvent[], ...types: readonly RunEvent['type'][]): string[] {
  return events.flatMap(({ type }) => (types.includes(type) ? [type] : []))
}

/** The value at `a.b[0]`-like steps, or undefined. */
export function at(value: unknown, ...steps: readonly (string | number)[]): unknown {
  let here: unknown = value
  for (const step of steps) {
    here = typeof here === 'object' && here !== null ? (here as Record<string | number, unknown>)[step] : undefined
  }
  return here
}
