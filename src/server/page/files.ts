// The files of the inspector, as the build made them.
//
// Stays true:
// - A path of a request is a key of a map, never a path of the disk: only files that the build made can be sent.
// - Nothing is read before somebody opens the page.

import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'

/** One file that a browser may have. */
export interface PageFile {
  readonly type: string
  readonly etag: string
  /** True: its name changes with its content. */
  readonly isHashed: boolean
  readonly bytes: Buffer
  readonly packed: Buffer
}

export type PageFiles = ReadonlyMap<string, PageFile>

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

let files: Promise<PageFiles> | undefined

/** The files by their paths: `index.html`, `assets/index-Dx1.js`. Empty where the page is not built, or not there. */
export function pageFiles(): Promise<PageFiles> {
  files ??= folderOfPage()
    .then(readFiles)
    .catch((error: NodeJS.ErrnoException) => {
      files = undefined
      if (error.code === 'ENOENT' || error.code === 'MODULE_NOT_FOUND') return new Map()
      throw error
    })
  return files
}

/** Where the build put the page. Rejects where the server runs without the folder of its package, as in a bundle. */
async function folderOfPage(): Promise<string> {
  return path.join(path.dirname(createRequire(import.meta.url).resolve('legate/package.json')), 'dist/web')
}

async function readFiles(folder: string): Promise<PageFiles> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const named = entries.filter((entry) => entry.isFile() && path.extname(entry.name) in TYPES)
  return new Map(
    await Promise.all(
      named.map(async (entry) => {
        const file = path.join(entry.parentPath, entry.name)
        const name = path.relative(folder, file).split(path.sep).join('/')
        return [name, await readPageFile(file, name)] as const
      }),
    ),
  )
}

async function readPageFile(file: string, name: string): Promise<PageFile> {
  const bytes = await readFile(file)
  return {
    type: TYPES[path.extname(name)] ?? '',
    etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
    isHashed: name.startsWith('assets/'),
    bytes,
    packed: await promisify(gzip)(bytes),
  }
}
