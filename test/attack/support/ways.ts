import { type AnyAgent, type Outcome, type Runtime, tool } from 'legate'
import { trying } from './canary.ts'

export type Start = (
  child: AnyAgent,
  runtime: Runtime,
  delegate: (agent: AnyAgent, input: never) => Promise<Outcome>,
) => unknown

/** Every way in which code inside a tool starts an agent. */
export const ways: readonly (readonly [string, Start])[] = [
  ['context.delegate', (child, _runtime, delegate) => delegate(child, 'go' as never)],
  ['agent.generate', (child) => child.generate('go' as never).catch(() => undefined)],
  ['agent.stream', (child) => child.stream('go' as never).result],
  ['runtime.run', (child, runtime) => runtime.run(child, 'go' as never).result],
]

/** A host whose only tool starts the child in this way. */
export function hostWith(start: Start, { runtime, child, extra }: WayParts): AnyAgent {
  const work = tool({
    description: 'Works',
    input: { type: 'object' },
    execute: async (_input, { delegate }) => {
      await start(child, runtime, delegate as never)
      return 'worked'
    },
  })
  return trying('host', { tools: { work }, extra })
}

interface WayParts {
  readonly runtime: Runtime
  readonly child: AnyAgent
  readonly extra: object
}
