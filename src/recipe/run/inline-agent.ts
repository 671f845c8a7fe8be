import { DefinitionError } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import type { JsonSchema } from '../../base/schema.ts'
import type { Budget } from '../../grant/budget.ts'
import type { Grant } from '../../grant/grant.ts'
import type { ModelSettings } from '../../model/model.ts'
import type { ToolChoice } from '../agent-file/agent-file.ts'
import type { Mode, OpenSpec } from '../open/spec.ts'
import type { ExtensionConfig, RetryConfig } from '../recipe/recipe.ts'

/** An agent as data, whole: what its conversation's row keeps, and all that is needed to make it again. */
export interface InlineAgent {
  readonly form: 1
  /** A recipe or agent file that is run itself, or a child that an agent has described. */
  readonly role: 'root' | 'child'
  readonly name: string
  readonly description: string
  readonly instructions: string
  /** Its last message is all its host gets: it is told to sum up. */
  readonly summary: boolean
  /** Reference material, told apart from what it is and does. */
  readonly context: string | null
  readonly prompt: string | null
  /** `provider/model`; null: its host's. */
  readonly model: string | null
  readonly settings: ModelSettings
  readonly tools: ToolChoice
  /** Its own. */
  readonly extensions: readonly ExtensionConfig[]
  /** Which of its host's extensions it takes over: null for none, `all` with its host's other tools too. */
  readonly inherits: 'all' | readonly string[] | null
  readonly grant: Grant | null
  /** What its file says it may do at most. */
  readonly narrowing: Grant | null
  /** What would be asked for is denied. */
  readonly neverAsks?: true
  readonly mode: Mode
  readonly budget: Budget
  readonly input: JsonSchema | null
  readonly output: JsonSchema | null
  /** What it must give through a tool of its own, instead of an answer in words. */
  readonly response: JsonSchema | null
  readonly retry: RetryConfig | null
  /** The tools it has to start subagents; null for those of its host. */
  readonly open: OpenSpec | null
  /** Where its programs run. */
  readonly cwd: string
  /** The project whose skills it may load: chosen by whoever wrote its definition, never by a model. */
  readonly definitions: string
}

/** What a row keeps. Written by this package, perhaps by a later version of it. */
export function readInline(stored: Json): InlineAgent {
  const given = stored as unknown as Partial<InlineAgent> | null
  if (given?.form === 1) return given as InlineAgent
  throw new DefinitionError('definition', 'This agent was kept by another version of legate, which is needed to go on.')
}
