import { messageOf } from '../../base/error.ts'
import { isRecord, type Json, toJson } from '../../base/json.ts'
import { type FieldParser, fieldParser } from '../../fields/field-parser.ts'
import { field, shapeSchema } from '../../prompt/shape/shape-schema.ts'

const COMMAND = {
  purpose: field('str', 'what the tool is needed for'),
  tool_name: field('str', 'one of {tools.[].name}'),
  tool_kwargs: field('dict', 'its arguments, by their names'),
} as const

/** The shape of a plan. */
export const PLAN_SHAPE = { use_tool: field('bool', 'is a tool needed?'), tool_command: COMMAND } as const
/** The shape of a plan with several commands at once. */
export const PLANS_SHAPE = { use_tool: field('bool', 'is a tool needed?'), tool_commands: [COMMAND] } as const

export interface PlannedCommand {
  readonly purpose: string
  readonly tool: string
  readonly input: Json
}

export interface ParsedPlan {
  /** Empty: no tool is needed. */
  readonly commands: readonly PlannedCommand[]
  /** Explains why a part is no plan; null where all of it is. */
  readonly wrong: string | null
}

/** Reads a plan while it is written, and notices when it is complete. */
export class PlanReader {
  private readonly most: number
  private readonly parser: FieldParser
  private uses: unknown

  constructor(most: number) {
    this.most = most
    const shape = most === 1 ? PLAN_SHAPE : PLANS_SHAPE
    this.parser = fieldParser({ schema: shapeSchema(shape as unknown as Json) }) as FieldParser
  }

  /**
   * Returns true when the rest does not matter: after `use_tool: false`, and after the whole command, or all of them.
   */
  push(text: string): boolean {
    for (const { kind, dot, value } of this.parser.push(text)) {
      if (kind !== 'done') continue
      if (dot === 'use_tool') this.uses = value
      const isSaid = dot === 'tool_command' || dot === 'tool_commands'
      if (this.uses === false || (this.uses === true && isSaid)) return true
    }
    return false
  }

  verdict(): ParsedPlan {
    this.parser.end()
    const plan = this.parser.value
    if (!isRecord(plan)) return wrongPlan('it is not a JSON object')
    const { use_tool: use, tool_command: command, tool_commands: commands = command } = plan
    if (use === false) return { commands: [], wrong: null }
    if (use !== true) return wrongPlan('use_tool is not true or false')
    if (commands === undefined) return wrongPlan('there is no tool_command')
    return readCommands(Array.isArray(commands) ? commands : [commands], this.most)
  }
}

/** Reads the commands that can be executed, and what is wrong with the others. */
export function readCommands(given: unknown, most: number): ParsedPlan {
  if (!Array.isArray(given)) return wrongPlan('it is not a list of commands')
  const read = given.slice(0, most).map(readCommand)
  const commands = read.flatMap((one) => (typeof one === 'string' ? [] : [one]))
  const wrong = read.filter((one) => typeof one === 'string')
  if (given.length > most) wrong.push(`of ${given.length} commands only ${most} may be carried out at once`)
  return { commands, wrong: wrong.length === 0 ? null : wrong.join('; ') }
}

/** A plan function that threw made no plan. */
export function failedPlan(error: unknown): ParsedPlan {
  return wrongPlan(messageOf(error))
}

function wrongPlan(wrong: string): ParsedPlan {
  return { commands: [], wrong }
}

function readCommand(command: unknown): PlannedCommand | string {
  if (!isRecord(command)) return 'there is no tool_command'
  const { tool_name: tool, purpose, tool_kwargs: given = {} } = command
  if (typeof tool !== 'string' || tool === '') return 'tool_command has no tool_name'
  const input = toJson(given)
  if (!isRecord(given) || !input.ok) return 'tool_kwargs is not an object'
  return { tool, purpose: typeof purpose === 'string' && purpose !== '' ? purpose : tool, input: input.value }
}
