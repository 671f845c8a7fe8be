import { type Dirent, readdirSync, realpathSync, type Stats, statSync } from 'node:fs'
import path from 'node:path'
import { isInside } from '../../files/text-file.ts'

const DEEPEST = 8
const MOST_FILES = 20_000
const SKIPPED: ReadonlySet<string> = new Set(['.git', '.hg', '.svn', 'node_modules'])

export interface Below {
  readonly isWanted: (name: string) => boolean
  /** Also in folders below. */
  readonly isDeep: boolean
  /** Links lead nowhere out of this folder; null where they may. */
  readonly inside?: string | null
}

/** The files in a folder, sorted by name. Links are followed, each folder once; a folder that is not there has none. */
export function filesBelow(folder: string, below: Below): string[] {
  const found: string[] = []
  const inside = below.inside == null ? null : (realOf(below.inside) ?? below.inside)
  visit(folder, 0, { ...below, inside, found, seen: new Set() })
  return found
}

interface Walk extends Below {
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
    if (seen.has(real) || !isReachable(real, walk)) return []
    seen.add(real)
    return readdirSync(folder, { withFileTypes: true })
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

/** Undefined for a link that leads nowhere, to itself, or where nobody may look. */
function targetOf(link: string): Stats | undefined {
  try {
    return statSync(link)
  } catch {
    return undefined
  }
}
