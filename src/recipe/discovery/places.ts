import { homedir } from 'node:os'
import path from 'node:path'

export interface Place {
  readonly folder: string
  readonly kind: 'recipe' | 'agent'
  readonly scope: 'project' | 'home'
  /** The folder may hold other files too: what is no recipe there is passed over. */
  readonly isShared: boolean
}

export interface DiscoveryOptions {
  /** The project. Default: the current folder. */
  readonly cwd?: string
  /** Default: that of the user. */
  readonly home?: string
  readonly env?: Readonly<Record<string, string | undefined>>
}

const RECIPES = ['.legate/recipes', '.goose/recipes', '.agents/recipes']
const AGENTS = [
  '.legate/agents',
  '.goose/agents',
  '.claude/agents',
  '.agents/agents',
  '.opencode/agent',
  '.opencode/agents',
  '.gemini/agents',
  '.codex/agents',
  '.github/agents',
  '.cursor/agents',
]
const HOME_RECIPES = ['.goose/recipes', '.config/legate/recipes', '.config/goose/recipes', '.agents/recipes']
const HOME_AGENTS = [
  '.config/legate/agents',
  '.goose/agents',
  '.agents/agents',
  '.config/goose/agents',
  '.claude/agents',
  '.config/opencode/agent',
  '.config/opencode/agents',
  '.gemini/agents',
  '.codex/agents',
  '.cursor/agents',
]
const SKILLS = ['.legate/skills', '.agents/skills', '.goose/skills', '.claude/skills']
const HOME_SKILLS = [
  '.agents/skills',
  '.config/legate/skills',
  '.config/goose/skills',
  '.claude/skills',
  '.config/agents/skills',
]

/** Where definitions lie, the nearer first. The order is this list, however the paths are spelt. */
export function definitionPlaces(options: DiscoveryOptions = {}): readonly Place[] {
  const { cwd, home, env } = settled(options)
  const project = (folder: string, kind: Place['kind'], isShared = false): Place => {
    return { folder: path.join(cwd, folder), kind, scope: 'project', isShared }
  }
  const own = (folder: string, kind: Place['kind']): Place => ({
    folder: path.resolve(home, folder),
    kind,
    scope: 'home',
    isShared: false,
  })
  const named = `${env['GOOSE_RECIPE_PATH'] ?? ''}${path.delimiter}${env['ASTER_RECIPE_PATH'] ?? ''}`
  return once([
    project('.', 'recipe', true),
    ...RECIPES.map((folder) => project(folder, 'recipe')),
    ...AGENTS.map((folder) => project(folder, 'agent')),
    ...named
      .split(path.delimiter)
      .filter((folder) => folder !== '')
      .map((folder) => own(path.resolve(cwd, folder), 'recipe')),
    ...HOME_RECIPES.map((folder) => own(folder, 'recipe')),
    ...HOME_AGENTS.map((folder) => own(folder, 'agent')),
  ])
}

export function skillPlaces(options: DiscoveryOptions = {}): readonly string[] {
  const { cwd, home } = settled(options)
  return [
    ...new Set([
      ...SKILLS.map((folder) => path.join(cwd, folder)),
      ...HOME_SKILLS.map((folder) => path.join(home, folder)),
    ]),
  ]
}

function settled({ cwd = process.cwd(), home = homedir(), env = process.env }: DiscoveryOptions) {
  return { cwd: path.resolve(cwd), home: path.resolve(home), env }
}

/** In one's home folder the two lists meet. */
function once(places: readonly Place[]): readonly Place[] {
  return places.filter((place, at) => {
    return places.findIndex((other) => other.folder === place.folder && other.kind === place.kind) === at
  })
}
