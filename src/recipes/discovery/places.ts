import { type Dirent, existsSync, readdirSync, realpathSync, type Stats, statSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { isOwnName, isOwnPath } from '../../core/base/system/own-files.ts'
import { isInside } from '../../core/files/text-file.ts'
import { AGENT_DIALECTS } from '../dialects/index.ts'
import { checkDiscovery, type DiscoveryOptions } from './options.ts'

export interface DefinitionPlace {
  readonly folder: string
  readonly kind: 'recipe' | 'agent'
  readonly scope: 'project' | 'home'
  /** The project root, which links must not leave; null for the user's own folders. */
  readonly inside: string | null
  /** Whether the folder may hold other files too: those that are not recipes are skipped. */
  readonly isShared: boolean
}

const RECIPES = ['.legate/recipes', '.goose/recipes', '.agents/recipes']
const HOME_RECIPES = [
  '.legate/recipes',
  '.goose/recipes',
  '.config/legate/recipes',
  '.config/goose/recipes',
  '.agents/recipes',
]
const AGENTS = [
  ...AGENT_DIALECTS.flatMap(({ folders }) => folders),
  ...AGENT_DIALECTS.flatMap(({ sharedFolders = [] }) => sharedFolders),
]
const HOME_AGENTS = AGENT_DIALECTS.flatMap(({ homeFolders }) => homeFolders)
const SKILLS = ['.legate/skills', '.agents/skills', '.goose/skills', '.claude/skills']
const HOME_SKILLS = [
  '.legate/skills',
  '.agents/skills',
  '.config/legate/skills',
  '.config/goose/skills',
  '.claude/skills',
  '.config/agents/skills',
]

/**
 * Lists the folders with definitions, the nearest first: the current folder, those above it up to the root of the
 * repository, then the user's home. This list is the order, however the paths are spelt.
 */
export function definitionPlaces(options: DiscoveryOptions = {}): readonly DefinitionPlace[] {
  const { cwd, home, env } = resolvedOptions(options)
  const folders = projectFolders(cwd)
  const project = (folder: string, kind: DefinitionPlace['kind'], isShared = false): DefinitionPlace => {
    return { folder, kind, scope: 'project', inside: folders.at(-1) ?? cwd, isShared }
  }
  const own = (folder: string, kind: DefinitionPlace['kind']): DefinitionPlace => ({
    folder: path.resolve(home, folder),
    kind,
    scope: 'home',
    inside: null,
    isShared: false,
  })
  const named = `${env['GOOSE_RECIPE_PATH'] ?? ''}${path.delimiter}${env['ASTER_RECIPE_PATH'] ?? ''}`
  return once([
    project(cwd, 'recipe', true),
    ...folders.flatMap((folder) => [
      ...RECIPES.map((below) => project(path.join(folder, below), 'recipe')),
      ...AGENTS.map((below) => project(path.join(folder, below), 'agent')),
    ]),
    ...named
      .split(path.delimiter)
      .filter((folder) => folder !== '')
      .map((folder) => own(path.resolve(cwd, folder), 'recipe')),
    ...HOME_RECIPES.map((folder) => own(folder, 'recipe')),
    ...HOME_AGENTS.map((folder) => own(folder, 'agent')),
  ])
}

export function skillPlaces(options: DiscoveryOptions = {}): readonly Pick<DefinitionPlace, 'folder' | 'inside'>[] {
  const { cwd, home } = resolvedOptions(options)
  const folders = projectFolders(cwd)
  const inside = folders.at(-1) ?? cwd
  const project = folders.flatMap((folder) => SKILLS.map((below) => ({ folder: path.join(folder, below), inside })))
  const known = new Set(project.map(({ folder }) => folder))
  const own = HOME_SKILLS.map((folder) => ({ folder: path.join(home, folder), inside: null }))
  return [...project, ...own.filter(({ folder }) => !known.has(folder))]
}

/** Lists the folders up to the root of the repository, which has a `.git`. Outside a repository: the folder alone. */
export function projectFolders(cwd: string): readonly string[] {
  const folders = [cwd]
  for (let folder = cwd; !existsSync(path.join(folder, '.git')); folder = path.dirname(folder)) {
    const above = path.dirname(folder)
    if (above === folder) return [cwd]
    folders.push(above)
  }
  return folders
}

function resolvedOptions(options: DiscoveryOptions) {
  const { cwd = process.cwd(), home = homedir(), env = process.env } = checkDiscovery('discover()', options)
  return { cwd: path.resolve(cwd), home: path.resolve(home), env }
}

/** Removes duplicates: in the home folder the two lists meet. */
function once(places: readonly DefinitionPlace[]): readonly DefinitionPlace[] {
  return places.filter((place, at) => {
    return places.findIndex((other) => other.folder === place.folder && other.kind === place.kind) === at
  })
}

const DEEPEST = 8
const MOST_FILES = 20_000
const SKIPPED: ReadonlySet<string> = new Set(['.git', '.hg', '.svn', 'node_modules'])

export interface WalkOptions {
  readonly isWanted: (name: string) => boolean
  /** Also search the folders below. */
  readonly isDeep: boolean
  /** The folder that links must not leave; null if they may. */
  readonly inside?: string | null
}

/** Lists the files of a folder by name. Links are followed, each folder once; a missing folder has no files. */
export function filesBelow(folder: string, below: WalkOptions): string[] {
  const found: string[] = []
  const inside = below.inside == null ? null : (realOf(below.inside) ?? below.inside)
  visit(folder, 0, { ...below, inside, found, seen: new Set() })
  return found
}

interface Walk extends WalkOptions {
  readonly found: string[]
  readonly seen: Set<string>
}

function visit(folder: string, depth: number, walk: Walk): void {
  const entries = entriesOf(folder, walk)
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (walk.found.length >= MOST_FILES) return
    const place = path.join(folder, entry.name)
    const kind = entry.isSymbolicLink() && !isReachable(realOf(place), walk) ? 'other' : kindOf(entry, place)
    if (kind === 'file' && walk.isWanted(entry.name)) walk.found.push(place)
    if (kind === 'folder' && walk.isDeep && depth < DEEPEST && !SKIPPED.has(entry.name)) visit(place, depth + 1, walk)
  }
}

function entriesOf(folder: string, walk: Walk): Dirent[] {
  const { seen } = walk
  try {
    const real = realpathSync(folder)
    if (seen.has(real) || !isReachable(real, walk) || isOwnPath(real)) return []
    seen.add(real)
    const here = { path: real, stat: () => statSync(real) }
    return readdirSync(folder, { withFileTypes: true }).filter(({ name }) => !isOwnName(here, name))
  } catch {
    return []
  }
}

function isReachable(real: string | undefined, { inside }: Walk): boolean {
  if (real === undefined || inside == null) return real !== undefined
  return real === inside || isInside(real, inside)
}

function realOf(place: string): string | undefined {
  try {
    return realpathSync(place)
  } catch {
    return undefined
  }
}

function kindOf(entry: Dirent, place: string): 'file' | 'folder' | 'other' {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'folder'
  if (!entry.isSymbolicLink()) return 'other'
  const stats = targetOf(place)
  if (stats?.isFile() === true) return 'file'
  return stats?.isDirectory() === true ? 'folder' : 'other'
}

/** Resolves a link; undefined if it is broken, leads to itself, or is not readable. */
function targetOf(link: string): Stats | undefined {
  try {
    return statSync(link)
  } catch {
    return undefined
  }
}
