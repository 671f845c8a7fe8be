import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

// "Machines" of one test: network namespaces with a wire each to a bridge of ours. Needs root and `ip`.

const NET = '10.77.9'

/** The address of the machine that the tests run on, as the others see it. */
export const HOME = `${NET}.1`

/** Why there are no machines here; undefined where there are. */
export const noMachines: string | undefined = whyNone()

function whyNone(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'network namespaces need root on Linux'
  try {
    ip('netns', 'list')
    return undefined
  } catch {
    return 'network namespaces need the program ip'
  }
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', args, { stdio: 'pipe' })
}

/** Machines of one test, each with a wire that can be pulled. */
export class Machines {
  private readonly mark = `lg${process.pid}`
  private readonly folder = mkdtempSync(path.join(tmpdir(), 'legate-machines-'))
  private readonly count: number

  constructor(count: number) {
    this.count = count
    const bridge = `${this.mark}b`
    ip('link', 'add', bridge, 'type', 'bridge')
    ip('addr', 'add', `${HOME}/24`, 'dev', bridge)
    ip('link', 'set', bridge, 'up')
    for (let at = 0; at < count; at++) this.add(at, bridge)
  }

  /** Runs what `start` starts on a machine: the program of Node is one that enters it first, and then becomes Node. */
  on<T>(at: number, start: () => T): T {
    const { execPath } = process
    process.execPath = this.program(at, execPath)
    try {
      return start()
    } finally {
      process.execPath = execPath
    }
  }

  /** Pulls the wire of a machine, or puts it back. Nobody is told. */
  setWire(at: number, state: 'up' | 'down'): void {
    ip('link', 'set', this.wire(at), state)
  }

  drop(): void {
    for (let at = 0; at < this.count; at++) {
      ip('link', 'del', this.wire(at))
      ip('netns', 'del', this.name(at))
    }
    ip('link', 'del', `${this.mark}b`)
    rmSync(this.folder, { recursive: true, force: true })
  }

  private add(at: number, bridge: string): void {
    const [name, inside] = [this.name(at), `${this.mark}i${at}`]
    ip('netns', 'add', name)
    ip('link', 'add', this.wire(at), 'type', 'veth', 'peer', 'name', inside)
    ip('link', 'set', this.wire(at), 'master', bridge, 'up')
    ip('link', 'set', inside, 'netns', name)
    ip('-n', name, 'addr', 'add', `${NET}.${at + 11}/24`, 'dev', inside)
    ip('-n', name, 'link', 'set', inside, 'up')
    ip('-n', name, 'link', 'set', 'lo', 'up')
  }

  private name(at: number): string {
    return `${this.mark}n${at}`
  }

  private wire(at: number): string {
    return `${this.mark}w${at}`
  }

  private program(at: number, node: string): string {
    const file = path.join(this.folder, this.name(at))
    const text = `#!/bin/sh\nexec ip netns exec ${this.name(at)} '${node}' "$@"\n`
    if (!existsSync(file)) writeFileSync(file, text, { mode: 0o755 })
    return file
  }
}
