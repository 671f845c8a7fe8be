// Sources of tools: objects that may have to be started before they have any, such as MCP servers (`tools/mcp`) and
// toolkits of recipes. Users put them under `sources`; `agent/step/open-sources` decides and opens them before a step,
// and `tool/source-pool` shares and ends them.
//
// Stays true:
// - Starting a source is decided like a call: `needs` lists its requests, and it makes no others. It reads no secret that is
//   not among them.
// - A model sees a tool of a source as `<source>__<tool>`; the source knows only its own names.
// - `about`, `key` and messages hold names of secrets, never their values.

import { sha256 } from '../base/hash.ts'
import type { Json } from '../base/json.ts'
import type { OwnerFolder } from '../files/files.ts'
import { matchName } from '../grant/match.ts'
import type { Request } from '../grant/request.ts'
import type { Logger, Tool } from './tool.ts'

/**
 * An origin of tools: a toolkit that is ready at once, or a program that starts before an agent's first step, such as
 * an MCP server. An agent gets it under a name: `sources: { github: mcpServer({ ... }) }`.
 */
export interface ToolSource {
  /** A description for people who are asked, and for the agent's hash. It holds no secrets. */
  readonly about: Json
  /** The tools of a source that needs no start, under their own names; null for one that does. */
  readonly tools: Readonly<Record<string, Tool>> | null
  /** The requests that a start makes, such as `exec:npx -y some-server` and `secret:TOKEN`: each is decided before it starts. */
  readonly needs: readonly Request[]
  /** Names of the secrets that it would get. */
  readonly secrets: readonly string[]
  /** Who defines it: code, a file or a client. It decides which secrets it may get. */
  readonly origin: SourceOrigin
  /** True: a run fails when the source cannot be started. False: the run continues without these tools, and warns. */
  readonly required: boolean
  /** Who shares a started source: a run and everything below it, each conversation alone, or the whole runtime. */
  readonly scope: SourceScope
  /** Sources with equal keys are shared within the scope. */
  readonly key: string
  /** Names of secrets that it needs and that have no value. */
  missing(): readonly string[]
  /** Starts it. Rejects with the reason. Never called where `tools` are given. */
  open(place: SourcePlace): Promise<OpenSource>
  /** Makes a copy of the source for the folder of an owner, which no other owner shares. Left out if folders do not matter. */
  readonly inFolder?: ((folder: OwnerFolder) => ToolSource) | undefined
  readonly [sourceMark]: true
}

/** Who defines a source, and so names the secrets that it gets. */
export interface SourceOrigin {
  /** The code of its agent, a recipe or an agent file, or a client such as an editor. */
  readonly by: 'code' | 'file' | 'client'
  /** The files that the definition was read from. */
  readonly files: readonly string[]
  /** The one of them that lay where a run could write when it was read; null for none. Then it gets no secret that it names. */
  readonly withheld: string | null
}

export const CODE: SourceOrigin = Object.freeze({ by: 'code', files: Object.freeze([]), withheld: null })

export const SOURCE_SCOPES = ['run', 'conversation', 'runtime'] as const
export type SourceScope = (typeof SOURCE_SCOPES)[number]

export interface SourcePlace {
  /** The source's name for its users. */
  readonly name: string
  readonly logger: Logger
  readonly signal: AbortSignal
  /** The requests that were decided before the start: it makes these and no others. */
  readonly decided: readonly Request[]
}

/** A source that was started. */
export interface OpenSource {
  /** By the source's own names; the agent's model sees `<source>__<name>`. */
  readonly tools: ReadonlyMap<string, SourceTool>
  /** Instructions for the model on how to use the tools; may be empty. */
  readonly notes: string
  /** Warnings for people, such as tools that were left out. */
  readonly warnings: readonly string[]
  /** Values that the source received and that no recording may keep. Default none. */
  readonly secretValues?: readonly string[]
  /** Makes sure that it runs and that `tools` are current. Rejects with the reason when it does not. */
  ready(): Promise<void>
  /** Ends it, a program with its process group. Never rejects. */
  close(): Promise<void>
}

export interface SourceTool {
  readonly tool: Tool
  /** The source's own name of the tool, where that differs from its name here. */
  readonly name?: string
  /** Changes with the tool's description: a person who allowed it before is asked again. */
  readonly version: string
}

export const sourceMark: unique symbol = Symbol.for('legate.source') as never

export function isToolSource(value: unknown): value is ToolSource {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, sourceMark)
}

/** Stands between the name of a source and the source's own name of a tool. */
export const SOURCE_SEPARATOR = '__'

/** Makes a source from tools that are ready at once: one name for all of them. */
export function toolkitSource(about: Json, tools: Readonly<Record<string, Tool>>): ToolSource {
  return Object.freeze({ ...source(about), tools })
}

/** Stands for a required source that does not exist: its users get the reason. */
export function absentSource(about: Json, reason: string, required: boolean): ToolSource {
  return Object.freeze({ ...source(about), required, open: () => Promise.reject(new Error(reason)) })
}

function source(about: Json): ToolSource {
  return {
    about,
    tools: null,
    needs: [],
    secrets: [],
    origin: CODE,
    required: false,
    scope: 'run',
    key: `toolkit ${JSON.stringify(about)}`,
    missing: () => [],
    open: () => Promise.reject(new Error('this source has its tools at once')),
    [sourceMark]: true,
  }
}

/** The tools of a source that an agent gets, by the source's own names. */
export interface ToolLimit {
  /** Only these; `*` stands for any text. Null: all of them. An empty list: none. */
  readonly availableTools: readonly string[] | null
  /** None of these; `*` stands for any text. Stronger than `availableTools`. */
  readonly excludedTools: readonly string[]
}

/** A tool's name at its source, and the name that a model sees behind the name of the source. */
interface NamedTool {
  readonly name: string
  readonly shownAs: string
}

export function isWithin({ availableTools, excludedTools }: ToolLimit, { name, shownAs }: NamedTool): boolean {
  const isNamed = (pattern: string) => matchName(pattern, name) || matchName(pattern, shownAs)
  // A tool that is excluded in another letter case is meant too.
  const plain = [name, shownAs].map((one) => one.toLowerCase())
  const isExcluded = excludedTools.some((pattern) => plain.some((one) => matchName(pattern.toLowerCase(), one)))
  return !isExcluded && (availableTools === null || availableTools.some(isNamed))
}

/** Limits a source to some of its tools. */
export function limitedSource(source: ToolSource, limit: ToolLimit): ToolSource {
  if (limit.availableTools === null && limit.excludedTools.length === 0) return source
  const tools = source.tools === null ? null : Object.entries(source.tools)
  const kept = tools?.filter(([name]) => isWithin(limit, { name, shownAs: name }))
  return Object.freeze({
    ...source,
    // Getters, because the source computes these each time.
    get needs() {
      return source.needs
    },
    get key() {
      return `${source.key} ${sha256(JSON.stringify([limit.availableTools, limit.excludedTools]))}`
    },
    tools: kept === undefined ? null : Object.fromEntries(kept),
    open: async (place) => limitedTools(await source.open(place), limit),
    inFolder:
      source.inFolder === undefined ? undefined : (folder) => limitedSource(source.inFolder?.(folder) ?? source, limit),
  } satisfies ToolSource)
}

function limitedTools(opened: OpenSource, limit: ToolLimit): OpenSource {
  return {
    get tools() {
      return new Map([...opened.tools].filter(([shownAs, { name = shownAs }]) => isWithin(limit, { name, shownAs })))
    },
    get notes() {
      return opened.notes
    },
    get warnings() {
      return opened.warnings
    },
    ready: () => opened.ready(),
    close: () => opened.close(),
  }
}

/** Turns any text into a valid name of a source: `Context7 Docs` becomes `context7_docs`. */
export function sourceName(given: string): string {
  if (/^[a-zA-Z0-9][a-zA-Z0-9-]*(?:_[a-zA-Z0-9-]+)*$/.test(given) && given.length <= LONGEST) return given
  const plain = given
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '_')
    .replace(/^[_-]+|_+$/g, '')
  return plain.slice(0, LONGEST).replace(/_+$/, '') || 'extension'
}

const LONGEST = 40
