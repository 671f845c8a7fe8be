import { mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { parseJson } from '../base/json.ts'
import { nodeFs } from '../base/node-system.ts'
import { ownFolder } from '../base/system/own-files.ts'
import { type InTurn, makeInTurn } from '../files/files.ts'

/** One memory of an agent. */
export interface Memory {
  readonly text: string
  readonly tags: readonly string[]
  readonly at: number
}

const MOST_BYTES = 4_000_000
const MOST_CATEGORIES = 500
const ENDING = '.jsonl'

/** Stores memories, one file of lines for each category, in a directory of the application. */
export class MemoryFiles {
  private readonly directory: string
  /** The folder of all owners. */
  private readonly root: string
  private readonly inTurn: InTurn

  constructor(directory: string, above?: MemoryFiles) {
    this.directory = directory
    this.root = above?.root ?? directory
    this.inTurn =
      above === undefined ? makeInTurn() : (category, work) => above.inTurn(`${category}\n${directory}`, work)
    if (above === undefined) this.withhold()
  }

  /** The memories of one owner alone, in a folder below this one. */
  within(folders: readonly string[]): MemoryFiles {
    const directory = path.join(this.directory, ...folders)
    return new MemoryFiles(directory, this)
  }

  /** The folder is known by its name before it is made, and then under every name that it is moved to. */
  private withhold(): void {
    ownFolder(this.root, 'what agents remember')
  }

  async categories(): Promise<string[]> {
    const names = await readdir(this.directory).catch(ifMissing<string[]>([]))
    const found = names.filter((name) => name.endsWith(ENDING)).map((name) => name.slice(0, -ENDING.length))
    return found.map(decode).sort()
  }

  async read(category: string): Promise<Memory[]> {
    const text = await this.textOf(category)
    return text.split('\n').flatMap((line) => readLine(line) ?? [])
  }

  /** Does not write a memory twice. */
  add(category: string, memory: Memory): Promise<'added' | 'known'> {
    return this.inTurn(category, async () => {
      const known = await this.read(category)
      if (known.some(({ text }) => text === memory.text)) return 'known'
      await mkdir(this.directory, { recursive: true, mode: 0o700 })
      this.withhold()
      const categories = await this.categories()
      if (!categories.includes(category) && categories.length >= MOST_CATEGORIES) {
        throw new Error(`there are ${MOST_CATEGORIES} categories already: use one of them, or forget one`)
      }
      const handle = await open(this.fileOf(category), APPEND, 0o600)
      try {
        if ((await handle.stat()).size > MOST_BYTES) throw new Error(`"${category}" is full: forget something first`)
        await handle.appendFile(`${JSON.stringify(memory)}\n`)
      } finally {
        await handle.close()
      }
      return 'added'
    })
  }

  /** Removes a whole category, or the memories that contain these words. Returns how many there were. */
  remove(category: string, words: string | null): Promise<number> {
    return this.inTurn(category, async () => {
      const known = await this.read(category)
      const kept = words === null ? [] : known.filter(({ text }) => !text.includes(words))
      if (kept.length === known.length) return 0
      await this.replace(category, kept)
      return known.length - kept.length
    })
  }

  private async replace(category: string, memories: readonly Memory[]): Promise<void> {
    const file = this.fileOf(category)
    if (memories.length === 0) return rm(file, { force: true })
    const temporary = `${file}.${process.pid}.tmp`
    const handle = await open(temporary, WRITE, 0o600)
    try {
      await handle.writeFile(memories.map((memory) => `${JSON.stringify(memory)}\n`).join(''))
      await handle.datasync()
    } finally {
      await handle.close()
    }
    await rename(temporary, file)
  }

  private async textOf(category: string): Promise<string> {
    const handle = await open(this.fileOf(category), READ).catch(ifMissing(undefined))
    if (handle === undefined) return ''
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(MOST_BYTES), 0, MOST_BYTES, 0)
      return buffer.toString('utf8', 0, bytesRead)
    } finally {
      await handle.close()
    }
  }

  /** Encodes the category, so that it is one file name in this directory. */
  private fileOf(category: string): string {
    return path.join(this.directory, `${encodeURIComponent(category).replaceAll('.', '%2E')}${ENDING}`)
  }
}

const { O_RDONLY, O_WRONLY, O_APPEND, O_CREAT, O_TRUNC, O_NOFOLLOW } = nodeFs.constants
const READ = O_RDONLY | O_NOFOLLOW
const APPEND = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW
const WRITE = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW

function decode(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}

function readLine(line: string): Memory | undefined {
  const parsed = parseJson(line)
  if (!parsed.ok || typeof parsed.value !== 'object' || parsed.value === null || Array.isArray(parsed.value))
    return undefined
  const { text, tags, at } = parsed.value
  if (typeof text !== 'string') return undefined
  const words = Array.isArray(tags) ? tags.filter((tag) => typeof tag === 'string') : []
  return { text, tags: words, at: typeof at === 'number' ? at : 0 }
}

function ifMissing<T>(value: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === 'ENOENT') return value
    throw error
  }
}
