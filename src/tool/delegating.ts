import type { CheckedSchema } from '../base/schema.ts'
import { type Tool, tool } from './tool.ts'

const subagentMark: unique symbol = Symbol.for('legate.subagent') as never

/** A tool that is no code but data: the agent it is given to has `subagent` under the tool's name. */
export function delegatingTool(description: string, input: CheckedSchema, subagent: object): Tool {
  const shown = tool({
    description,
    inputSchema: input.jsonSchema,
    effect: 'idempotent',
    execute: () => {
      throw new Error('this tool starts a subagent and does nothing by itself: give it to an agent, in its tools')
    },
  })
  return Object.freeze({ ...shown, input, [subagentMark]: subagent }) as Tool
}

/** What a tool made by `delegatingTool` starts; undefined for any other. */
export function subagentIn(given: Tool): object | undefined {
  return (given as { readonly [subagentMark]?: object })[subagentMark]
}
