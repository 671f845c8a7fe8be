// The types of a goose or Aster recipe after it was read and checked.
//
// Called by: `read-recipe` (makes it), `load-recipe` (fills in values), `convert`, `extension/extension-sources`.
//
// Must stay true:
// - It is plain data without secrets: `envKeys` holds names, never values.
// - Texts stay as written until `load-recipe` has rendered their templates.
// - Files that a recipe names stay inside the folder of the recipe that a person runs.

import type { Json } from '../../core/base/json.ts'
import type { JsonSchema } from '../../core/base/schema/schema.ts'
import type { Budget } from '../../core/grant/budget.ts'
import type { Grant } from '../../core/grant/grant.ts'
import type { Notice } from '../text/notice.ts'

/** A checked recipe. Plain data. */
export interface Recipe {
  /** The file it was read from; null if there is none. */
  readonly file: string | null
  readonly version: string
  readonly title: string
  readonly description: string
  readonly instructions: string | null
  readonly prompt: string | null
  readonly activities: readonly string[]
  readonly author: { readonly contact: string | null; readonly metadata: string | null } | null
  readonly parameters: readonly RecipeParameter[]
  /** Null if the recipe has no list: it uses its host's extensions. An empty list means none. */
  readonly extensions: readonly ExtensionConfig[] | null
  readonly settings: RecipeSettings
  readonly response: { readonly jsonSchema: JsonSchema } | null
  readonly subRecipes: readonly SubRecipe[]
  readonly retry: RetryConfig | null
  /** A layer below what host and runtime allow: it can only narrow. Null: none. */
  readonly grant: Grant | null
  readonly budget: Budget | null
  /** Whether requests that would ask a person are denied instead. */
  readonly neverAsks: boolean
  /** Whether it must not run at all. */
  readonly isDisabled: boolean
}

export const INPUT_TYPES = ['string', 'number', 'boolean', 'date', 'file', 'select'] as const
export const REQUIREMENTS = ['required', 'optional', 'user_prompt'] as const

export interface RecipeParameter {
  readonly key: string
  readonly inputType: (typeof INPUT_TYPES)[number]
  readonly requirement: (typeof REQUIREMENTS)[number]
  readonly description: string
  /** The default as written: `1.10` stays `1.10`. Null if there is none. */
  readonly default: string | null
  readonly options: readonly string[]
  readonly line: number | null
}

export interface RecipeSettings {
  readonly provider: string | null
  readonly model: string | null
  readonly temperature: number | null
  readonly maxTurns: number | null
}

export interface SubRecipe {
  readonly name: string
  /** Absolute path. */
  readonly path: string
  /** The folder of the recipe that a person runs. This file, and the files that `values` name, must be inside. */
  readonly folder: string
  /** Default values of its parameters; a call may replace those that are not locked. */
  readonly values: Readonly<Record<string, string>>
  /** The values a call cannot change: all, or these keys. */
  readonly locked: boolean | readonly string[]
  readonly sequentialWhenRepeated: boolean
  readonly description: string | null
  readonly line: number | null
}

export interface RetryConfig {
  readonly maxRetries: number
  readonly checks: readonly { readonly type: 'shell'; readonly command: string }[]
  readonly onFailure: string | null
  readonly timeoutSeconds: number | null
  readonly onFailureTimeoutSeconds: number | null
}

interface ExtensionBase {
  readonly name: string
  readonly description: string
  /** Empty means all, as recipes define it. `*` matches any text. */
  readonly availableTools: readonly string[]
  /**
   * Tools to leave out; `*` matches any text, and alone means all: then the server is not started. Agent files only.
   */
  readonly excludedTools?: readonly string[]
  /** Whether the run fails if the extension cannot start. */
  readonly required: boolean
}

interface WithEnvironment {
  readonly envs: Readonly<Record<string, string>>
  /** Names of secrets, asked for or read from the environment; never their values. */
  readonly envKeys: readonly string[]
  /** Variables made from secrets, as in `{ TOKEN: '${GITHUB_PAT}' }`. Agent files only. */
  readonly envFrom?: Readonly<Record<string, string>>
  readonly timeoutSeconds: number | null
}

export interface StdioExtension extends ExtensionBase, WithEnvironment {
  readonly type: 'stdio'
  readonly cmd: string
  readonly args: readonly string[]
}

export interface HttpExtension extends ExtensionBase, WithEnvironment {
  readonly type: 'streamable_http'
  readonly uri: string
  readonly headers: Readonly<Record<string, string>>
  readonly socket: string | null
}

export interface BuiltinExtension extends ExtensionBase {
  readonly type: 'builtin' | 'platform'
  readonly displayName: string | null
  readonly timeoutSeconds: number | null
}

export interface FrontendExtension extends ExtensionBase {
  readonly type: 'frontend'
  readonly tools: readonly Json[]
  readonly instructions: string | null
}

export interface PythonExtension extends ExtensionBase {
  readonly type: 'inline_python'
  readonly code: string
  readonly dependencies: readonly string[]
  readonly timeoutSeconds: number | null
}

/** A server configured elsewhere, referred to by name. Agent files only. */
export interface NamedExtension extends ExtensionBase {
  readonly type: 'named'
}

/** A source of tools: an MCP server or a built-in toolkit. */
export type ExtensionConfig =
  | StdioExtension
  | HttpExtension
  | BuiltinExtension
  | FrontendExtension
  | PythonExtension
  | NamedExtension

/** The facts about a recipe that need no parameter values. */
export interface RecipeDescription {
  readonly file: string
  readonly title: string
  readonly description: string
  readonly version: string
  readonly parameters: readonly RecipeParameter[]
  /** Parameters that need a value and have none. */
  readonly missing: readonly string[]
  /** The parameters as the input schema of a tool, without those that have a value. */
  readonly inputSchema: JsonSchema
  readonly notices: readonly Notice[]
}
