// Everything that an MCP server offers, as plain data with functions: tools, prompts and resources.
//
// Owns:      the forms. Agents, recipes and runs are offered in them, and a program may add its own beside those.
// Called by: `serve` lists and calls them; users write them as options of `serve({ mcp })` and `serveMcp`.
// Must stay true: results are those of MCP, as objects. Their forms are checked where they are sent.

import { code, flag, int, list, type OptionRules, readOptions, record, text } from '../../../core/base/options.ts'
import type { Json, JsonSchema } from '../../../index.ts'

/** Arguments as a client sent them. */
export type McpArguments = Readonly<Record<string, Json>>

/** Who reads or calls. */
export interface McpReader {
  /** The id of the principal. */
  readonly principal: string
}

/** The means of a call, beside its arguments. */
export interface McpCall extends McpReader {
  /** Aborted when the client leaves or cancels. */
  readonly signal: AbortSignal
  /** The capabilities of the client, as MCP names them. */
  readonly client: Readonly<Record<string, unknown>>
  /** The client's answers to what an earlier answer asked for, by key; empty in the first round. */
  readonly answers: Readonly<Record<string, unknown>>
  /** The state that an earlier answer carried, after its signature was checked; undefined in the first round. */
  readonly state: Json | undefined
  /** Signs a state for `requestState`. It holds for the same caller and the same arguments. */
  sign(state: Json): Promise<string>
  /** Says how far the call is, to a client that asked for it. */
  progress(progress: number, more?: { readonly total?: number; readonly message?: string }): Promise<void>
  /** Writes into the log of a client of the revision 2025-11-25 or before, as far as it wants this level. Later ones have no log. */
  log(level: 'debug' | 'info' | 'warning' | 'error', message: string): Promise<void>
}

/** A tool that clients may call. */
export interface McpTool {
  /** Letters, digits, `_`, `-` and `.`; at most 128. */
  readonly name: string
  /** A name for people. Default: the name. */
  readonly title?: string
  /** Tells a model when to call it. */
  readonly description: string
  /** A JSON Schema of an object. */
  readonly inputSchema: JsonSchema
  /** A JSON Schema of an object. Default: none. */
  readonly outputSchema?: JsonSchema
  /** Hints for clients, such as `{ readOnlyHint: true }`. */
  readonly annotations?: { readonly [key: string]: Json }
  /** Gives a result of `tools/call`: `{ content }`, also one that asks for input. */
  call(args: McpArguments, call: McpCall): Promise<object> | object
}

/** A text with gaps that a person chooses in a client. */
export interface McpPrompt {
  /** Its name among the prompts. */
  readonly name: string
  /** A name for people. Default: the name. */
  readonly title?: string
  /** Tells a person what it is for. */
  readonly description: string
  /** The agent that a caller must be allowed to start to see it. Default: none. */
  readonly agent?: string
  /** Its gaps. */
  readonly arguments: readonly McpPromptArgument[]
  /** Gives a result of `prompts/get`: `{ messages }`, also one that asks for input. */
  get(args: Readonly<Record<string, string>>, call: McpCall): Promise<object> | object
}

export interface McpPromptArgument {
  /** The name of the gap. */
  readonly name: string
  /** Tells a person what to fill in. */
  readonly description: string
  /** True: the prompt needs it. */
  readonly required: boolean
  /** All values that it may have; left out where any text will do. */
  readonly values?: readonly string[]
}

/** A document under an address, or many under a template of addresses. */
export interface McpResource {
  /** `legate://runs/{id}`: a gap takes anything but a slash. Without gaps it is one document. */
  readonly uri: string
  /** A name for people. */
  readonly name: string
  /** Tells what it is. */
  readonly description: string
  /** Its media type. Default: not said. */
  readonly mimeType?: string
  /** Gives the parts of `resources/read`; undefined where there is no such document. */
  read(uri: string, gaps: Readonly<Record<string, string>>, by: McpReader): Promise<readonly object[] | undefined>
  /** The documents under a template to show in a list. Default: none. */
  list?(by: McpReader): Promise<readonly { readonly uri: string; readonly name: string }[]>
  /** Calls `changed` whenever the document is another, until the signal says that nobody wants to know. */
  watch?(gaps: Readonly<Record<string, string>>, changed: () => void, signal: AbortSignal): Promise<void>
}

/** Tools, prompts and resources together. */
export interface McpOffer {
  readonly tools: readonly McpTool[]
  readonly prompts: readonly McpPrompt[]
  readonly resources: readonly McpResource[]
}

/** How agents are offered over MCP, and what is offered beside them. */
export interface McpOptions {
  /** The name of the server in clients. Default `legate`. */
  readonly name?: string
  /**
   * How long a call waits for its run, in milliseconds. Then it becomes a task, or, where the client has no Tasks, a result that
   * names the run. Default 2,000 with Tasks, 50,000 without.
   */
  readonly waitMs?: number
  /** Settings of single agents, by name. */
  readonly agents?: Readonly<Record<string, McpAgentOptions>>
  /** True: the tools by which a client looks at its runs (`run_get`, `run_wait`, ...) are offered to clients with Tasks too. */
  readonly manage?: boolean
  /** Tools of your program, beside the agents. */
  readonly tools?: readonly McpTool[]
  /** Prompts of your program. */
  readonly prompts?: readonly McpPrompt[]
  /** Resources of your program. */
  readonly resources?: readonly McpResource[]
  /**
   * Completes the commands of the command line in texts for people, such as `legate approvals 1f0c9a2e`: with the store that they
   * need, for example. Default: they stay as they are.
   */
  readonly commands?: (text: string) => string
}

/** How one agent is offered. */
export interface McpAgentOptions {
  /** How long a call of it waits. Default: as all agents. */
  readonly waitMs?: number
  /** True: every call becomes a task, and clients without Tasks cannot call it. */
  readonly needsTasks?: boolean
}

const OPTIONS: OptionRules<McpOptions> = {
  name: text,
  waitMs: int(0),
  agents: record,
  manage: flag,
  tools: list,
  prompts: list,
  resources: list,
  commands: code,
}

const AGENT: OptionRules<McpAgentOptions> = { waitMs: int(0), needsTasks: flag }

/** Refuses options that cannot be meant. */
export function checkMcpOptions(options: McpOptions, where: string): void {
  readOptions(where, options, OPTIONS)
  for (const [name, one] of Object.entries(options.agents ?? {})) readOptions(`${where}: agents.${name}`, one, AGENT)
}

/** Does an address have gaps? */
export function isGap(uri: string): boolean {
  return uri.includes('{')
}

/** The values of the gaps of a template in an address; undefined where it does not fit. A gap takes anything but a slash. */
export function matchResource(template: string, uri: string): Readonly<Record<string, string>> | undefined {
  if (!isGap(template)) return template === uri ? {} : undefined
  const [wanted, given] = [template.split('/'), uri.split('/')]
  if (wanted.length !== given.length) return undefined
  const gaps: Record<string, string> = {}
  for (const [at, part] of wanted.entries()) {
    const value = given[at] ?? ''
    const name = /^\{(\w+)\}$/.exec(part)?.[1]
    if (name === undefined ? value !== part : value === '') return undefined
    if (name !== undefined) gaps[name] = value
  }
  return gaps
}
