import type { Json } from '../../base/json.ts'
import type { JsonSchema } from '../../base/schema/schema.ts'
import type { Notice } from '../text/notice.ts'

/** A recipe as its file says it, checked. Plain data. */
export interface Recipe {
  /** Where it was read; null when it was not read from a file. */
  readonly file: string | null
  readonly version: string
  readonly title: string
  readonly description: string
  readonly instructions: string | null
  readonly prompt: string | null
  readonly activities: readonly string[]
  readonly author: { readonly contact: string | null; readonly metadata: string | null } | null
  readonly parameters: readonly RecipeParameter[]
  /** Null where the recipe says nothing: it uses what its host has. An empty list is none. */
  readonly extensions: readonly ExtensionConfig[] | null
  readonly settings: RecipeSettings
  readonly response: { readonly jsonSchema: JsonSchema } | null
  readonly subRecipes: readonly SubRecipe[]
  readonly retry: RetryConfig | null
}

export const INPUT_TYPES = ['string', 'number', 'boolean', 'date', 'file', 'select'] as const
export const REQUIREMENTS = ['required', 'optional', 'user_prompt'] as const

export interface RecipeParameter {
  readonly key: string
  readonly inputType: (typeof INPUT_TYPES)[number]
  readonly requirement: (typeof REQUIREMENTS)[number]
  readonly description: string
  /** The text as it is written: `1.10` stays `1.10`. Null where there is none. */
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
  /** Absolute. */
  readonly path: string
  /** That of the recipe that a person runs: the file must be in it, and so must those that `values` name. */
  readonly folder: string
  /** Defaults for its parameters; what a call gives wins, unless it is locked. */
  readonly values: Readonly<Record<string, string>>
  /** Which values a call cannot change: all, or these keys. */
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
  /** Empty: all of them, as recipes have it. `*` stands for any text. */
  readonly availableTools: readonly string[]
  /** None of these; `*` stands for any text, and alone for all: then it is not started. Agent files only. */
  readonly excludedTools?: readonly string[]
  /** The run fails when it cannot be started. */
  readonly required: boolean
}

interface WithEnvironment {
  readonly envs: Readonly<Record<string, string>>
  /** Names of secrets, asked for or read from the environment; never their values. */
  readonly envKeys: readonly string[]
  /** Variables made of secrets, as in `{ TOKEN: '${GITHUB_PAT}' }`. Agent files only. */
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

/** A server that is configured elsewhere, by its name. Agent files only. */
export interface NamedExtension extends ExtensionBase {
  readonly type: 'named'
}

/** Where tools come from: MCP servers and built-in toolkits. */
export type ExtensionConfig =
  | StdioExtension
  | HttpExtension
  | BuiltinExtension
  | FrontendExtension
  | PythonExtension
  | NamedExtension

/** What can be told of a recipe without any value for its parameters. */
export interface RecipeDescription {
  readonly file: string
  readonly title: string
  readonly description: string
  readonly version: string
  readonly parameters: readonly RecipeParameter[]
  /** Parameters that have no value yet and need one. */
  readonly missing: readonly string[]
  /** The parameters as the input of a typed tool; what has a value is left out. */
  readonly inputSchema: JsonSchema
  readonly notices: readonly Notice[]
}
