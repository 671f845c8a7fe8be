// An agent as a file describes it, in any dialect: the form between reading, running, converting and explaining.
//
// Called by: `dialects` (make it), `convert` (write it), `run/root-inline` and `open/build-child` (run it), the CLI.
//
// Must stay true:
// - It is plain JSON, so that a conversation's row can hold it and another process can resume from it.
// - `null` means "not said" and differs from an empty list, which means "none".
// - `grant` only narrows what host and runtime allow.

import type { Json } from '../../core/base/json.ts'
import type { JsonSchema } from '../../core/base/schema/schema.ts'
import type { Budget } from '../../core/grant/budget.ts'
import type { Grant } from '../../core/grant/grant.ts'
import type { ModelSettings } from '../../core/model/model.ts'
import type { Notice } from '../text/notice.ts'
import type { FileHook } from './file-hook.ts'
import type { ExtensionConfig, RecipeParameter, RetryConfig, SubRecipe } from './recipe.ts'

/** One agent as a file describes it, in any dialect. It is plain JSON, so that a row can hold it. */
export interface AgentFile {
  /** The dialect of the file, one of `DIALECTS`. `recipe` stands for goose and Aster recipes. */
  readonly dialect: string
  /** Absolute path. */
  readonly file: string
  /** Absolute paths of the files that its templates include. */
  readonly includes: readonly string[]
  readonly name: string
  /** The title people see; null: the name. */
  readonly title: string | null
  readonly description: string
  /** The instructions for the model. */
  readonly instructions: string
  /** The prompt if the caller gives none. */
  readonly prompt: string | null
  /** The model as written in the file: an alias, an id or `provider/id`. Null: the host's model. */
  readonly model: string | null
  readonly provider: string | null
  readonly settings: ModelSettings
  readonly tools: ToolSelection
  /** Agents it may delegate to; null: all it is given. */
  readonly agents: readonly string[] | null
  /** Names of definitions of the project and the user that the file delegates to; `*` matches anything. */
  readonly reaches: readonly string[]
  /** Null: the host's extensions. */
  readonly extensions: readonly ExtensionConfig[] | null
  /** Names of skills it starts with. */
  readonly skills: readonly string[]
  /** A layer below what host and runtime allow: it can only narrow. Null: none. */
  readonly grant: Grant | null
  /**
   * The programs that the file names one by one among its tools, as rules of `exec`: who runs it by hand is not asked about them. No
   * key of a file sets it, and `free` of a `grant` is none of them.
   */
  readonly freed: readonly string[]
  /** Whether requests that would ask a person are denied instead. */
  readonly neverAsks: boolean
  /** Programs that look at its calls and its end, and may refuse them. */
  readonly hooks: readonly FileHook[]
  /** Whether it remembers from run to run, and where that counts: everywhere, or in this project. Null: it does not. */
  readonly memory: AgentMemory | null
  /** True: it is not told what AGENTS.md, CLAUDE.md and their like say of the project. */
  readonly omitsProjectFiles: boolean
  /** The sandbox of programs in the file's own program. Nothing sandboxes them here. */
  readonly sandbox: 'workspace-write' | null
  readonly budget: Budget | null
  readonly briefing: 'none' | 'snapshot' | 'summary' | 'fork' | null
  readonly input: JsonSchema | null
  readonly output: JsonSchema | null
  readonly retry: RetryConfig | null
  readonly parameters: readonly RecipeParameter[]
  readonly subRecipes: readonly SubRecipe[]
  readonly isBackground: boolean
  /** Whether models must not see it. */
  readonly isHidden: boolean
  /** Whether it must not run at all. */
  readonly isDisabled: boolean
  /** Safety features that the file asks for and this runtime lacks, such as isolation: an agent with any of these is not started. */
  readonly unmet: readonly UnmetDemand[]
  /** Keys without a meaning here, kept unchanged. */
  readonly properties: { readonly [key: string]: Json }
  /** Everything that was mapped, repaired, tightened or left out. */
  readonly notices: readonly Notice[]
}

export const AGENT_MEMORIES = ['user', 'project', 'local'] as const
export type AgentMemory = (typeof AGENT_MEMORIES)[number]

/** Something that a file asks for and that is not given here. */
export interface UnmetDemand {
  /** The field as the file has it: `isolation: worktree`. */
  readonly field: string
  readonly line: number | null
  /** The feature that the file asks for. */
  readonly what: string
}

/** The files that a definition was read from. */
export function filesOfDefinition({ file, includes }: AgentFile): readonly string[] {
  return [file, ...includes].filter((one) => one !== '')
}

/** Names of tools; `*` matches anything. */
export interface ToolSelection {
  /** Null: all tools of the host. Empty: none. */
  readonly allow: readonly string[] | null
  readonly deny: readonly string[]
}

/** An empty agent. Code that builds one sets only what differs. */
export const EMPTY_AGENT_FILE: AgentFile = {
  dialect: 'legate',
  file: '',
  includes: [],
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
  freed: [],
  neverAsks: false,
  hooks: [],
  memory: null,
  omitsProjectFiles: false,
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
  unmet: [],
  properties: {},
  notices: [],
}
