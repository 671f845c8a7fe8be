import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { build } from 'tsdown'
import { afterAll, beforeAll } from 'vitest'
import { tempFolder } from './temp-folder.ts'

const root = path.resolve(import.meta.dirname, '../..')

/** Programs for other processes, with the store of that name and what makes rows. Built once for a file of tests. */
export class StorePrograms {
  /** Inside the package, so that the built files find its dependencies. */
  private readonly folder: string
  private readonly prelude: string

  constructor(store: 'sqlite' | 'json') {
    const cache = path.join(root, 'node_modules/.cache')
    mkdirSync(cache, { recursive: true })
    this.folder = tempFolder(afterAll, cache)
    this.prelude = `import { ${store}Store } from '${this.folder}/store.mjs'
      import { commitOf, conversationRow, next, placeIn, treeCommit, warningEvent } from '${this.folder}/rows.mjs'
      const tryCommit = async (store, commit) => store.commit(commit)
    `
    chmodSync(this.folder, 0o755)
    beforeAll(() => this.build(`src/stores/${store}/index.ts`))
  }

  start(code: string, env: Record<string, string> = {}): Started {
    const child = spawn(process.execPath, this.args(code), {
      cwd: this.folder,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const said: string[] = []
    const lines = createInterface({ input: child.stdout })
    lines.on('line', (line) => said.push(line))
    const ended = new Promise<number | null>((resolve) => child.once('close', (status) => resolve(status)))
    const hears = (wanted: string) =>
      new Promise<void>((resolve) => {
        lines.on('line', (line) => {
          if (line === wanted) resolve()
        })
      })
    return { child, ended, said, hears }
  }

  /** Waits for its end, and gives what it said. */
  run(code: string, { env, wrapper = [], ...options }: ProgramOptions = {}): string {
    const [command = '', ...rest] = [...wrapper, process.execPath, ...this.args(code)]
    const all = { ...options, cwd: this.folder, env: { ...process.env, ...env }, encoding: 'utf8' } as const
    const { stdout, stderr } = spawnSync(command, rest, all)
    return stdout || stderr
  }

  private args(code: string): string[] {
    return ['--input-type=module', '--eval', this.prelude + code]
  }

  private async build(store: string): Promise<void> {
    const entry = { store, rows: 'src/testing/conformance/store-rows.ts' }
    const options = { cwd: root, entry, outDir: this.folder, config: false, dts: false } as const
    await build({ ...options, format: 'esm', platform: 'node', logLevel: 'silent' })
  }
}

export interface Started {
  readonly child: ChildProcess
  readonly ended: Promise<number | null>
  /** Whole lines. */
  readonly said: string[]
  readonly hears: (line: string) => Promise<void>
}

interface ProgramOptions {
  readonly uid?: number
  readonly env?: Record<string, string>
  /** What it is started by. */
  readonly wrapper?: readonly string[]
}

/** A disk of so many megabytes for what `wrapper` starts; null where none can be made. */
export function smallDisk(folder: string, megabytes: number): { disk: string; wrapper: string[] } | null {
  const disk = path.join(folder, 'disk')
  mkdirSync(disk)
  const mount = `mount -t tmpfs -o size=${megabytes}m tmpfs "$0" && exec "$@"`
  const wrapper = ['unshare', '-Urm', 'sh', '-c', mount, disk]
  const { status } = spawnSync('unshare', [...wrapper.slice(1), 'true'])
  return status === 0 ? { disk, wrapper } : null
}
