import { agentscope } from './agentscope.ts'
import { claude } from './claude.ts'
import { codex } from './codex.ts'
import { copilot } from './copilot.ts'
import { cursor } from './cursor.ts'
import type { AgentDialect } from './dialect.ts'
import { gemini } from './gemini.ts'
import { goose } from './goose.ts'
import { legate } from './legate.ts'
import { opencode } from './opencode.ts'

/** Every dialect of agent files, in the order in which their folders are searched. */
export const AGENT_DIALECTS: readonly AgentDialect[] = [
  legate,
  goose,
  claude,
  opencode,
  gemini,
  codex,
  copilot,
  cursor,
  agentscope,
]

/** The names of all dialects. `recipe` stands for goose and Aster recipes, `goose` for goose's agent files. */
export const DIALECTS: readonly string[] = ['recipe', ...AGENT_DIALECTS.map(({ name }) => name)]

export function agentDialect(name: string): AgentDialect | undefined {
  return AGENT_DIALECTS.find((dialect) => dialect.name === name)
}
