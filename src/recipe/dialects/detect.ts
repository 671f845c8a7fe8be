import path from 'node:path'
import type { Fields } from '../text/fields.ts'
import { claude } from './claude.ts'
import type { AgentDialect } from './dialect.ts'
import { AGENT_DIALECTS } from './index.ts'

/**
 * Whose file it is: by the folder it lies in, else by the ending of its name, else by keys that only one of them has. One
 * that tells nothing is Claude Code's, which most are.
 */
export function detectDialect(file: string, fields: Fields): AgentDialect {
  const place = path.resolve(file).split(path.sep).join('/')
  const byFolder = innermost(place)
  if (byFolder !== undefined) return byFolder
  const byEnding = AGENT_DIALECTS.find(({ ending, otherEndings = [] }) => {
    return [ending, ...otherEndings].some((one) => one !== USUAL_ENDING && place.endsWith(one))
  })
  if (byEnding !== undefined) return byEnding
  const byForm = AGENT_DIALECTS.find(({ isLike }) => isLike?.(fields) === true)
  return byForm ?? bySigns(fields) ?? claude
}

const USUAL_ENDING = '.md'

/** Where one folder of agents lies in another, the nearer one counts. */
function innermost(place: string): AgentDialect | undefined {
  const found = AGENT_DIALECTS.map((dialect) => ({ dialect, at: Math.max(...foldersOf(dialect).map(at(place))) }))
  const [nearest] = found.filter((one) => one.at >= 0).sort((a, b) => b.at - a.at)
  return nearest?.dialect
}

/** By their last two parts, for the folder of settings may lie elsewhere. */
function foldersOf({ folders, sharedFolders = [], homeFolders }: AgentDialect): readonly string[] {
  return [...folders, ...sharedFolders, ...homeFolders.map((folder) => folder.split('/').slice(-2).join('/'))]
}

function at(place: string): (folder: string) => number {
  return (folder) => place.lastIndexOf(`/${folder}/`)
}

/** Our own keys may stand in every file: they decide last. */
function bySigns(fields: Fields): AgentDialect | undefined {
  const ordered = [...AGENT_DIALECTS.filter(({ name }) => name !== 'legate'), ...AGENT_DIALECTS]
  return ordered.find(({ signs }) => signs.some((key) => fields.has(key)))
}
