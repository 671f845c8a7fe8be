import { type Dirent, readdirSync, realpathSync, statSync } from 'node:fs'
import path from 'node:path'

const DEEPEST = 8
const MOST_FILES = 20_000
const SKIPPED: ReadonlySet<string> = new Set(['.git', '.hg', '.svn', 'node_modules'])

export interface Below {
  readonly isWanted: (name: string) => boolean
  /** Also in folders below. */
  readonly isDeep: boolean
}

/** The files in a folder, sorted by name. Links are followed, each folder once; a folder that is not there has none. */
export function filesBelow(folder: string, below: Below): string[] {
  const found: string[] = []
  visit(folder, 0, { ...below, found, seen: new Set() })
  return found
}

interface Walk extends Below {
  readonly found: string[]
  readonly seen: Set<string>
}

function visit(folder: string, depth: number, walk: Walk): void {
  const entries = entriesOf(folder, walk.seen)
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (walk.found.length >= MOST_FILES) return
    const place = path.join(folder, entry.name)
    const kind = kindOf(entry, place)
    if (kind === 'file' && walk.isWanted(entry.name)) walk.found.push(place)
    if (kind === 'folder' && walk.isDeep && depth < DEEPEST && !SKIPPED.has(entry.name)) visit(place, depth + 1, walk)
  }
}

function entriesOf(folder: string, seen: Set<string>): Dirent[] {
  try {
    const real = realpathSync(folder)
    if (seen.has(real)) return []
    seen.add(real)
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}

function kindOf(entry: Dirent, place: string): 'file' | 'folder' | 'other' {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'folder'
  if (!entry.isSymbolicLink()) return 'other'
  const stats = statSync(place, { throwIfNoEntry: false })
  if (stats?.isFile() === true) return 'file'
  return stats?.isDirectory() === true ? 'folder' : 'other'
}
