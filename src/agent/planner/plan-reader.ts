import type { Json } from '../../base/json.ts'
import { type FieldParser, fieldParser } from '../../output/field-parser.ts'
import { field } from '../../prompt/shape/output-shape.ts'
import { shapeSchema } from '../../prompt/shape/shape-schema.ts'

/** What the one that plans is asked for. */
export const PLAN_SHAPE = {
  use_tool: field('bool', 'is a tool needed?'),
  tool_command: {
    purpose: field('str', 'what the tool is needed for'),
    tool_name: field('str', 'one of {tools.[].name}'),
    tool_kwargs: field('dict', 'its arguments, by their names'),
  },
} as const

export type Verdict =
  | { readonly use: false }
  | { readonly use: true; readonly purpose: string; readonly tool: string; readonly input: Json }
  /** What was said is no plan. */
  | { readonly wrong: string }

/** Hears a plan as it is written, and knows when it has heard enough. */
export class PlanReader {
  private readonly parser: FieldParser = fieldParser({
    schema: shapeSchema(PLAN_SHAPE as unknown as Json),
  }) as FieldParser
  private uses: unknown

  /** Is what follows of no use? So it is after `use_tool: false`, and after the whole command. */
  hear(text: string): boolean {
    for (const { kind, dot, value } of this.parser.push(text)) {
      if (kind !== 'done') continue
      if (dot === 'use_tool') this.uses = value
      if (this.uses === false || (this.uses === true && dot === 'tool_command')) return true
    }
    return false
  }

  verdict(): Verdict {
    this.parser.end()
    const plan = this.parser.value
    if (!isRecord(plan)) return { wrong: 'it is no JSON object' }
    const { use_tool: use, tool_command: command } = plan
    if (use === false) return { use }
    if (use !== true) return { wrong: 'use_tool is not true or false' }
    if (!isRecord(command)) return { wrong: 'there is no tool_command' }
    const { tool_name: tool, purpose, tool_kwargs: input = {} } = command
    if (typeof tool !== 'string' || tool === '') return { wrong: 'tool_command has no tool_name' }
    if (!isRecord(input)) return { wrong: 'tool_kwargs is no object' }
    return { use, tool, purpose: typeof purpose === 'string' && purpose !== '' ? purpose : tool, input: input as Json }
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
