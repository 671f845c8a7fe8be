import type { Json } from '../../base/json.ts'
import type { JsonSchema } from '../../base/schema/schema.ts'
import type { Budget } from '../../grant/budget.ts'
import type { Grant } from '../../grant/grant.ts'
import type { ModelSettings } from '../../model/model.ts'
import type { ExtensionConfig, RecipeParameter, RetryConfig, SubRecipe } from '../recipe/recipe.ts'
import type { Notice } from '../text/notice.ts'

/** One agent as a file describes it, whatever its dialect. Plain JSON: it can be kept in a row. */
export interface AgentFile {
  /** Whose way of writing it is: the name of one of `DIALECTS`. `recipe` is that of goose and Aster recipes. */
  readonly dialect: string
  /** Absolute. */
  readonly file: string
  readonly name: string
  /** How it is shown to people; null: by its name. */
  readonly title: string | null
  readonly description: string
  /** What the model is told it is and does. */
  readonly instructions: string
  /** What it is asked when nobody asks anything else. */
  readonly prompt: string | null
  /** As the file has it: an alias, an id or `provider/id`. Null: that of its host. */
  readonly model: string | null
  readonly provider: string | null
  readonly settings: ModelSettings
  readonly tools: ToolChoice
  /** Agents it may delegate to; null: all that it is given. */
  readonly agents: readonly string[] | null
  /** Definitions of its project, and of the user, that it says it delegates to; `*` stands for anything. */
  readonly reaches: readonly string[]
  /** Null: those of its host. */
  readonly extensions: readonly ExtensionConfig[] | null
  /** Names of skills it begins with. */
  readonly skills: readonly string[]
  /** A layer over what host and runtime allow: it narrows and never loosens. Null: none. */
  readonly grant: Grant | null
  /** What would be asked for, whoever wants that, is denied. */
  readonly neverAsks: boolean
  /** How programs are fenced in where it comes from. They are not here. */
  readonly sandbox: 'workspace-write' | null
  readonly budget: Budget | null
  readonly briefing: 'none' | 'snapshot' | 'summary' | 'fork' | null
  readonly input: JsonSchema | null
  readonly output: JsonSchema | null
  readonly retry: RetryConfig | null
  readonly parameters: readonly RecipeParameter[]
  readonly subRecipes: readonly SubRecipe[]
  readonly isBackground: boolean
  /** Not to be offered to a model. */
  readonly isHidden: boolean
  /** Not to be run at all. */
  readonly isDisabled: boolean
  /** Keys that mean nothing here, kept as they are. */
  readonly properties: { readonly [key: string]: Json }
  /** What was mapped, repaired, tightened or left out. */
  readonly notices: readonly Notice[]
}

/** Names of tools, `*` standing for anything. */
export interface ToolChoice {
  /** Null: all that the host has. Empty: none. */
  readonly allow: readonly string[] | null
  readonly deny: readonly string[]
}

/** An agent of which nothing is said: where one is put together in code, only what differs has to be. */
export const EMPTY_AGENT_FILE: AgentFile = {
  dialect: 'legate',
  file: '',
  name: '',
  title: null,
  description: '',
  instructions: '',
  prompt: null,
  model: null,
  provider: null,
  settings: {},
  tools: { allow: null, deny: [] },
  agents: null,
  reaches: [],
  extensions: null,
  skills: [],
  grant: null,
  neverAsks: false,
  sandbox: null,
  budget: null,
  briefing: null,
  input: null,
  output: null,
  retry: null,
  parameters: [],
  subRecipes: [],
  isBackground: false,
  isHidden: false,
  isDisabled: false,
  properties: {},
  notices: [],
}
