import { code, flag, int, list, type OptionRules, readOptions, record, text } from '../../../../core/base/options.ts'
import type { McpPrompt, McpResource, McpTool } from './offer.ts'

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
