import path from 'node:path'
import type { Fields } from '../text/fields.ts'
import type { Dialect } from './agent-file.ts'

type AgentDialect = Exclude<Dialect, 'recipe'>

const FOLDERS: readonly (readonly [RegExp, AgentDialect])[] = [
  [/\/\.legate\/agents\//, 'legate'],
  [/\/\.claude\/agents\//, 'claude'],
  [/\/\.?opencode\/agents?\//, 'opencode'],
  [/\/\.gemini\/agents\//, 'gemini'],
  [/\/\.codex\/agents\//, 'codex'],
  [/\/\.github\/agents\//, 'copilot'],
  [/\/\.cursor\/agents\//, 'cursor'],
  [/\/(?:\.goose|\.agents|goose)\/agents\//, 'goose'],
]

const SIGNS: readonly (readonly [AgentDialect, readonly string[]])[] = [
  [
    'claude',
    ['permissionMode', 'disallowedTools', 'maxTurns', 'mcpServers', 'initialPrompt', 'isolation', 'background'],
  ],
  ['opencode', ['mode', 'permission', 'steps', 'maxSteps', 'hidden', 'disable', 'top_p']],
  ['gemini', ['timeout_mins', 'max_turns', 'mcp_servers', 'kind', 'display_name']],
  [
    'copilot',
    ['mcp-servers', 'handoffs', 'user-invocable', 'disable-model-invocation', 'argument-hint', 'target', 'infer'],
  ],
  ['cursor', ['readonly', 'is_background']],
  ['goose', ['provider', 'avatar', 'settings']],
  ['legate', ['grant', 'budget', 'briefing', 'input', 'output']],
]

/** Whose file it is: by the folder it lies in, else by its ending, else by the keys only one of them has. */
export function detectDialect(file: string, fields: Fields): AgentDialect {
  const place = path.resolve(file).split(path.sep).join('/')
  const byFolder = FOLDERS.findLast(([folder]) => folder.test(place))
  if (byFolder !== undefined) return byFolder[1]
  if (place.endsWith('.toml')) return 'codex'
  if (place.endsWith('.agent.md')) return 'copilot'
  if (fields.get('tools')?.kind === 'map') return 'opencode'
  const bySign = SIGNS.find(([, keys]) => keys.some((key) => fields.has(key)))
  return bySign?.[0] ?? 'claude'
}

/** The name where the file itself is one: below the folder of agents, without its ending. */
export function nameByPath(file: string): string {
  const place = path.resolve(file).split(path.sep).join('/')
  const [, below] = /.*\/agents?\/(.+)$/.exec(place) ?? []
  const isOpencode = /\/\.?opencode\/agents?\//.test(place)
  const name = isOpencode && below !== undefined ? below : path.posix.basename(place)
  return name.replace(/(?:\.agent)?\.(?:md|toml|ya?ml|json)$/, '')
}
